package objective

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/noise"
	"brood/models/subprocess"
	"brood/models/tomlerr"
	"brood/models/usererr"
)

// Spec is the user's description of an objective's parameters and its evaluation. Zero fields have defaults.
type Spec struct {
	Name      string  `toml:"name,omitempty"`      // default objective
	Timeout   string  `toml:"timeout,omitempty"`   // per evaluation; default 1m
	Processes int     `toml:"processes,omitempty"` // per worker; default one per thread
	Seeds     Seeds   `toml:"seeds"`
	Params    []Param `toml:"param"`
}

// Seeds is the number of seeds per split. Their ids count from 0, in this order.
type Seeds struct {
	Train      int `toml:"train,omitempty"`      // default 1000
	Validation int `toml:"validation,omitempty"` // default 16
	Test       int `toml:"test,omitempty"`       // default 64
}

// Param is one tensor of parameters.
type Param struct {
	Name  string   `toml:"name"`
	Shape []int    `toml:"shape"`
	Low   *float64 `toml:"low,omitempty"`  // lower bound: smaller values are clamped before evaluation
	High  *float64 `toml:"high,omitempty"` // upper bound
	// Init is the distribution of the initial values: zero (the default), normal with standard deviation Scale, or uniform
	// between Low and High, or between -Scale and Scale if one of these is missing. Start is added to each value.
	Init  string  `toml:"init,omitempty"`
	Scale float64 `toml:"scale,omitempty"` // default 1
	Start float64 `toml:"start,omitempty"`
}

// Initial values.
const (
	Zero    = "zero"
	Normal  = "normal"
	Uniform = "uniform"
)

const (
	maxSeeds     = 1 << 20
	maxProcesses = 1 << 10
	maxSpec      = 1 << 20         // bytes of a spec that a program prints
	maxTimeout   = 720 * time.Hour // multiplied by the maximum rows of a batch it does not overflow
)

// Flat returns the spec of n unbounded parameters with initial value zero.
func Flat(n int) Spec { return Spec{Params: []Param{{Name: "x", Shape: []int{n}}}} }

// ParseSpec parses a number of parameters, or reads the spec from the path of a .toml file.
func ParseSpec(text string) (Spec, error) {
	if n, err := strconv.Atoi(text); err == nil {
		s := Flat(n)
		if s.check() != nil {
			return s, usererr.Errorf("params = %d: give how many parameters the objective has, "+
				"1 or more and as many as a model may have", n)
		}
		return s, nil
	}
	const give = "give how many parameters the objective has, or a SPEC.toml (docs/objectives.md)"
	p, err := os.ReadFile(text)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !strings.HasSuffix(text, ".toml"):
		return Spec{}, usererr.Errorf("params = %s is neither a number nor a file: %s", text, give)
	case err != nil:
		return Spec{}, fmt.Errorf("params: %w", usererr.File(err, text, give))
	}
	s, err := ReadSpec(p)
	if err != nil {
		return s, usererr.Errorf("%s: %w", text, err)
	}
	return s, nil
}

// specTimeout is the time in which a program must give its spec: it may import large libraries.
const specTimeout = 5 * time.Minute

// RequestSpec starts the program of a command with BROOD_OBJECTIVE=spec in its environment and returns the spec that it
// prints as TOML. It kills the program when ctx is cancelled.
func RequestSpec(ctx context.Context, command []string) (s Spec, err error) {
	const give = "give how many parameters it has, with --params N or --params SPEC.toml"
	p, err := subprocess.Start(command, []string{environment + "=spec"})
	if err != nil {
		return s, err
	}
	_ = p.In.Close() // a program that does not read the variable waits for a frame
	var text []byte
	err = p.WithDeadline(ctx, specTimeout, func() (err error) {
		text, err = io.ReadAll(io.LimitReader(p.Out, maxSpec+1))
		return err
	})
	switch {
	case err != nil:
	case len(text) == 0:
		err = errors.New("it names no parameters: " + give)
	case len(text) > maxSpec:
		err = fmt.Errorf("it prints more than %d bytes as its parameters: %s", maxSpec, give)
	default:
		if s, err = ReadSpec(text); err == nil {
			p.Shutdown()
			return s, nil
		}
		err = fmt.Errorf("the parameters that it prints are invalid: %w; %s", err, give)
	}
	return s, p.Fail(err)
}

// ReadSpec reads a spec as TOML.
func ReadSpec(p []byte) (s Spec, err error) {
	if err = tomlerr.Decode(p, &s); err != nil {
		return s, fmt.Errorf("%w: the keys are name, timeout, processes, [seeds] and [[param]] (docs/objectives.md)", err)
	}
	return s, s.check()
}

func (s *Spec) check() error {
	if d, err := s.timeout(); err != nil || d <= 0 || d > maxTimeout {
		return usererr.Errorf("timeout = %q: give a duration above 0, such as \"30s\", and at most %s", s.Timeout, maxTimeout)
	}
	if s.Processes < 0 || s.Processes > maxProcesses {
		return usererr.Errorf("processes = %d: give 1 to %d", s.Processes, maxProcesses)
	}
	for _, n := range []int{s.Seeds.Train, s.Seeds.Validation, s.Seeds.Test} {
		if n < 0 || n > maxSeeds {
			return usererr.Errorf("%d seeds: give 1 to %d", n, maxSeeds)
		}
	}
	for i := range s.Params {
		p := &s.Params[i]
		low, high := p.bounds()
		switch {
		case strings.ContainsAny(p.Name, "\n\r") || len(p.Name) > 200:
			return usererr.Errorf("parameter %d is named %.40q: give a name of one line and at most 200 bytes", i+1, p.Name)
		case len(p.Shape) > 8:
			return usererr.Errorf("parameter %s has %d sizes: give at most 8", p.Name, len(p.Shape))
		case !(low < high):
			return usererr.Errorf("parameter %s: low %v is not below high %v", p.Name, low, high)
		case p.Init != "" && p.Init != Zero && p.Init != Normal && p.Init != Uniform:
			return usererr.Errorf("parameter %s: init %q: choose %s, %s or %s", p.Name, p.Init, Zero, Normal, Uniform)
		case p.Init == Uniform && p.Low != nil && p.High != nil && !finite(float64(high)-float64(low)):
			return usererr.Errorf("parameter %s: uniform within %v and %v, whose distance float32 does not hold: "+
				"give nearer bounds, or another init", p.Name, low, high)
		case !finite(p.Scale) || p.Scale < 0 || !finite(p.Start):
			return usererr.Errorf("parameter %s: scale %v and start %v: give finite numbers, and a scale of 0 or more",
				p.Name, p.Scale, p.Start)
		}
	}
	_, err := s.Model()
	return err
}

func finite(x float64) bool { return math.Abs(x) <= math.MaxFloat32 }

func (p *Param) bounds() (low, high float32) {
	low, high = float32(math.Inf(-1)), float32(math.Inf(1))
	if p.Low != nil {
		low = float32(*p.Low)
	}
	if p.High != nil {
		high = float32(*p.High)
	}
	return low, high
}

func (s *Spec) timeout() (time.Duration, error) {
	if s.Timeout == "" {
		return time.Minute, nil
	}
	return time.ParseDuration(s.Timeout)
}

// toTOML returns the spec as TOML.
func (s Spec) toTOML() (string, error) {
	p, err := toml.Marshal(s)
	return string(p), err
}

// Model returns the parameters as a model without layers and classes.
func (s *Spec) Model() (*models.Model, error) {
	var tensors []engine.Tensor
	for _, p := range s.Params {
		tensors = append(tensors, engine.Tensor{Name: p.Name, Shape: p.Shape})
	}
	name := s.Name
	if name == "" {
		name = "objective"
	}
	return models.Measured(name, tensors)
}

// Data returns the seeds as samples.
func (s *Spec) Data() *data.Set {
	or := func(n, otherwise int) int {
		if n == 0 {
			return otherwise
		}
		return n
	}
	return data.Seeds(or(s.Seeds.Train, 1000), or(s.Seeds.Validation, 16), or(s.Seeds.Test, 64))
}

// Init writes the initial values of tensor i to dst. They depend only on the spec and the noise address key.
func (s *Spec) Init(key noise.Key, i int, dst []float32) {
	p := &s.Params[i]
	scale := float32(p.Scale)
	if scale == 0 {
		scale = 1
	}
	low, high := p.bounds()
	if p.Low == nil || p.High == nil {
		low, high = -scale, scale
	}
	clear(dst)
	switch p.Init {
	case Normal:
		key.Each(0, len(dst), len(dst), func(at int, eps []float32) {
			for j, x := range eps {
				dst[at+j] = float32(scale * x)
			}
		})
	case Uniform:
		for o := range dst {
			dst[o] = low + float32((high-low)*key.Uniform(o))
		}
	}
	for o := range dst {
		dst[o] += float32(p.Start)
	}
}
