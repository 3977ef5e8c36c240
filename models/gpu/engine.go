// Package gpu computes on a device behind a driver: device memory behind matrices, tasks as launches of kernels in
// OpenCL C. It holds the arithmetic f32/1, bit by bit (docs/arithmetic.md), as models/native does, which is the
// reference of every task.
//
//	d, err := opencl.Driver{}.Open(0)
//	e, err := gpu.New(d, model, set)
//
// A task becomes a batch: the words it needs (rows, keys, sample ids, shapes), which are sent in one write, and
// launches. What a task writes out goes to a log in device memory, which Wait and Read bring home at once. Nothing here
// depends on how many members there are, nor on the device: shapes decide the order of every sum.
package gpu

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"brood/models"
	"brood/models/arith"
	"brood/models/data"
	"brood/models/engine"
)

//go:embed kernels/*.cl
var sources embed.FS

// Engine runs all tasks for one model and one data set on one device. It is used from one goroutine.
type Engine struct {
	dev     Device // memory, until Close
	memory  *counted
	model   *models.Model
	set     *data.Set
	layout  *engine.Layout
	bounds  engine.Bounds
	kernels map[string]Kernel
	kind    string // the arithmetic, as logs have it
	tensor  string // of Tensors: how products of the model are computed; "": as f32/1 has them
	used    int64  // bytes that Alloc gave
	sticky  error  // of the device, for ever
	queued  int    // launches since the queue was empty

	words, table Memory // what the present batch reads; the layout's tensors
	wordRoom     int
	tiles        []int // the first tile of noise of each tensor, and their number

	log     Memory // what tasks write out
	logRoom int
	logged  int
	told    []func(p []byte) // how it is read

	scratch map[string]*spare
	old     []Memory // outgrown, freed after the present batch
	plan    *plan
	samples samples
}

// spare is scratch memory.
type spare struct {
	m     Memory
	bytes int
}

// New compiles the model for the device, which the engine owns from then on, with or without an error. It fails with an
// UncoveredError where kernels are missing, and with a sentence where the device does not compute as f32/1 says.
func New(d Device, m *models.Model, set *data.Set) (*Engine, error) { return newEngine(d, "", m, set) }

// NewTensor is New for an arithmetic of [Tensors], which the device's tensor cores compute. It fails with a sentence
// where there are none, or where they do not compute as the arithmetic says.
func NewTensor(d Device, arithmetic string, m *models.Model, set *data.Set) (*Engine, error) {
	return newEngine(d, arithmetic, m, set)
}

func newEngine(d Device, tensor string, m *models.Model, set *data.Set) (*Engine, error) {
	memory := count(d)
	e := &Engine{
		dev:     memory,
		memory:  memory,
		kernels: map[string]Kernel{},
		kind:    arith.Name,
		tensor:  tensor,
		scratch: map[string]*spare{},
	}
	if tensor != "" {
		e.kind = TensorKind(tensor, d.Info().Tensor)
	}
	if err := e.start(m, set); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

func (e *Engine) start(m *models.Model, set *data.Set) (err error) {
	if m == nil || set == nil {
		return errors.New("gpu: needs a model and a data set")
	}
	if err := m.Fits(set.Info); err != nil {
		return fmt.Errorf("gpu: data %s: %w", set.Name, err)
	}
	e.model, e.set, e.layout, e.bounds = m, set, &m.Layout, m.Bounds(set)
	if e.plan, err = compile(m); err != nil {
		return err
	}
	if err := SelfTest(e.dev); err != nil {
		return err
	}
	text, err := Source("kernels")
	if err != nil {
		return err
	}
	if err := e.dev.Load("kernels", text); err != nil {
		return fmt.Errorf("%s: %w", e.dev.Info().Name, err)
	}
	if e.tensor != "" {
		if err := TensorTest(e.dev, e.tensor); err != nil {
			return err
		}
	}
	return e.ready()
}

// Sources are the texts of kernels that a device is given, by name: the self-test, all that f32/1 needs, and for each
// of [Tensors] its products.
var Sources = append([]string{"selftest", "kernels"}, Tensors...)

// Source is a text of kernels, by a name of [Sources]; others are refused. All but that of the self-test begin with
// common.cl.
func Source(name string) (string, error) {
	names := []string{"kernels/common.cl", "kernels/tensor.cl"}
	text := ""
	switch {
	case name == "selftest":
		names = []string{"kernels/selftest.cl"}
	case name == "bf16":
		text = "#define BF16_PRODUCTS\n"
	case name == "tf32":
	case name == "kernels":
		all, err := fs.Glob(sources, "kernels/*.cl")
		if err != nil {
			return "", err
		}
		names = names[:1]
		for _, name := range all {
			if !slices.Contains([]string{"kernels/common.cl", "kernels/selftest.cl", "kernels/tensor.cl"}, name) {
				names = append(names, name)
			}
		}
	default:
		return "", fmt.Errorf("gpu: there is no source %q", name)
	}
	for _, name := range names {
		p, err := sources.ReadFile(name)
		if err != nil {
			return "", err
		}
		text += string(p)
	}
	return text, nil
}

// Kernels names the arithmetic.
func (e *Engine) Kernels() string { return e.kind }

// Close gives the device and all its memory back. Every later call fails, but Free, which does nothing then.
func (e *Engine) Close() {
	if e.dev == nil {
		return
	}
	for _, m := range append(e.old, e.words, e.table, e.log, e.samples.labels, e.samples.weights, e.samples.targets,
		e.samples.pixels, e.samples.values, e.samples.tables) {
		if m != 0 {
			e.dev.Free(m)
		}
	}
	for _, s := range e.scratch {
		if s.m != 0 {
			e.dev.Free(s.m)
		}
	}
	e.dev.Close()
	e.dev, e.sticky = nil, errors.New("gpu: the engine is closed")
}

// Do checks the tasks and queues them, in order, some that follow each other in one launch. It stops at the first that
// does not fit.
func (e *Engine) Do(ctx context.Context, tasks ...engine.Task) error {
	for len(tasks) > 0 {
		if err := e.open(ctx); err != nil {
			return err
		}
		n, err := e.together(tasks)
		if err != nil {
			return err
		}
		tasks = tasks[n:]
	}
	return nil
}

// together does the first of the tasks, and those behind it that go into its launch. It says how many they are.
func (e *Engine) together(tasks []engine.Task) (n int, err error) {
	if list := e.alike(tasks); len(list) > 0 {
		return len(list), e.adam(list)
	}
	if n, err = e.walk(tasks); n > 0 || err != nil {
		return n, err
	}
	return 1, e.do(tasks[0])
}

// Wait empties the queue and has outputs in their places.
func (e *Engine) Wait(ctx context.Context) error {
	if err := e.open(ctx); err != nil {
		return err
	}
	return e.settle()
}

// open says why a call cannot be taken.
func (e *Engine) open(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return e.sticky
}

func (e *Engine) do(t engine.Task) error {
	switch t := t.(type) {
	case engine.Gradients:
		return e.gradients(t)
	case engine.Evaluate:
		return e.evaluate(t)
	case engine.Statistics:
		return e.statistics(t)
	case engine.Candidates:
		return e.candidates(t)
	}
	if err := e.layout.Vector(t, e.held); err != nil {
		return err
	}
	switch t := t.(type) {
	case engine.Update, engine.Adam: // of no rows, or no statements: the others are done together
		return nil
	case engine.Muon:
		return e.muon(t)
	case engine.NaturalStep:
		return e.naturalStep(t)
	case engine.Sum:
		return e.sum(t)
	case engine.Feedback:
		return e.feedback(t)
	case engine.Copy:
		return e.copy(t)
	case engine.Fill:
		return e.fill(t)
	case engine.Product:
		return e.product(t)
	case engine.Clip:
		return e.clip(t)
	case engine.Finite:
		return e.finite(t)
	case engine.Digest:
		return e.digest(t)
	case engine.NoiseSum:
		return e.noiseSum(t)
	case engine.Perturb:
		return e.perturb(t)
	case engine.Crossover:
		return e.crossover(t)
	case engine.Distance:
		return e.distance(t)
	}
	return &engine.UnsupportedError{Task: t}
}

// fail keeps the first error of the device.
func (e *Engine) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	if e.sticky == nil {
		e.sticky = &engine.DeviceError{Device: e.dev.Info().Name, Op: op, Err: err}
	}
	return e.sticky
}
