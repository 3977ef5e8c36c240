package program

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/zeebo/blake3"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
)

// Description describes a program's model and data, and what computes. It arrives as JSON in the answer to hello.
type Description struct {
	Name       string   `json:"name" toml:"name"`            // of the model, e.g. "Net"
	Parameters []Tensor `json:"parameters" toml:"parameter"` // trained tensors, in the order of the row
	Buffers    []Tensor `json:"buffers" toml:"buffer"`       // running statistics, in the order of the row
	Train      int      `json:"train" toml:"train"`          // samples; their ids count from 0
	// samples, whose ids follow; 0: brood holds out training samples
	Validation int      `json:"validation" toml:"validation"`
	Test       int      `json:"test" toml:"test"`       // samples, whose ids follow
	Data       string   `json:"data" toml:"data"`       // digest of the samples, as the program computes it
	Score      string   `json:"score" toml:"score"`     // Classes or LossOnly
	Metrics    []string `json:"metrics" toml:"metrics"` // names of further results of an evaluation
	Steps      bool     `json:"steps" toml:"steps"`     // the program takes the steps of optimisers itself
	// State is the size in bytes of the state of the program's own optimiser; 0: it has none. It requires Steps.
	State   int64 `json:"state" toml:"state,omitempty"`
	Threads int   `json:"threads" toml:"threads"` // that one process computes with; 0 means 1

	// The following do not change what is computed in exact arithmetic. Library and Device are part of the kernels of a
	// session, the others only of this machine.
	Library string `json:"library" toml:"-"` // and its version, e.g. "torch 2.4.0"
	Device  string `json:"device" toml:"-"`  // family of what computes, e.g. "cpu avx2" or "NVIDIA H100"
	// Candidates: the program adds the noise of candidates itself, with the bits that brood computes.
	Candidates bool    `json:"candidates" toml:"-"`
	Ahead      int     `json:"ahead" toml:"-"`     // batches of gradients that each process reads ahead; 0: none
	Processes  int     `json:"processes" toml:"-"` // that each worker should use; 0: as many as its threads allow
	Timeout    float64 `json:"timeout" toml:"-"`   // seconds that one task may take; 0: 600
}

// Tensor is a named tensor of float32 elements.
type Tensor struct {
	Name  string `json:"name" toml:"name"`
	Shape []int  `json:"shape" toml:"shape"` // empty: one element
	// an embedding table, which Muon does not treat as a matrix
	Table bool `json:"table,omitempty" toml:"table,omitempty"`
}

// Scores.
const (
	Classes  = "classes" // the loss and a count of correct predictions, so that there is a test error
	LossOnly = "loss"
)

const (
	maxSamples   = 1 << 28 // of all splits; each takes some bytes of memory here
	maxMetrics   = 32
	maxName      = 200 // bytes
	maxProcesses = 1 << 10
	maxThreads   = 1 << 10
	maxTimeout   = 24 * 3600 // seconds
	maxTensors   = 1 << 16
	maxAhead     = 1 << 10
	maxState     = 1 << 36 // bytes; [program.Engine.EstimateMemory] and the blocks count it
)

// parseDescription parses and checks the answer to hello.
func parseDescription(body []byte) (d Description, err error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return d, fmt.Errorf("its description is not as docs/programs.md has it: %w", err)
	}
	return d, d.check()
}

// check returns an error if a field is missing or out of range.
func (d *Description) check() error {
	for what, text := range map[string]string{
		"name": d.Name, "data": d.Data, "library": d.Library, "device": d.Device,
	} {
		if !printable(text) {
			return fmt.Errorf("its description has the %s %.80q: give text of 1 to %d bytes on one line", what, text, maxName)
		}
	}
	if strings.Contains(d.Library+d.Device, "/") {
		return fmt.Errorf("its description has the library %q and the device %q: leave the / out", d.Library, d.Device)
	}
	switch {
	case d.Score != Classes && d.Score != LossOnly:
		return fmt.Errorf("its description has the score %.80q: give %s or %s", d.Score, Classes, LossOnly)
	case d.Train < 1 || d.Validation < 0 || d.Test < 0 || d.Train > maxSamples ||
		d.Validation > maxSamples-d.Train || d.Test > maxSamples-d.Train-d.Validation:
		return fmt.Errorf("its description has %d training, %d validation and %d test samples: give at most %d in all, "+
			"and 1 training sample or more", d.Train, d.Validation, d.Test, maxSamples)
	case len(d.Metrics) > maxMetrics:
		return fmt.Errorf("its description has %d metrics: give at most %d", len(d.Metrics), maxMetrics)
	case d.Threads < 0 || d.Threads > maxThreads || d.Processes < 0 || d.Processes > maxProcesses:
		return fmt.Errorf("its description wishes for %d processes of %d threads: give at most %d and %d",
			d.Processes, d.Threads, maxProcesses, maxThreads)
	case d.Ahead < 0 || d.Ahead > maxAhead:
		return fmt.Errorf("its description reads %d batches ahead: give 0 to %d", d.Ahead, maxAhead)
	case !(d.Timeout >= 0 && d.Timeout <= maxTimeout):
		return fmt.Errorf("its description has a timeout of %g s: give at most %d s", d.Timeout, maxTimeout)
	case d.State < 0 || d.State > maxState:
		return fmt.Errorf("its description has a state of %d bytes: give 0 to %d", d.State, int64(maxState))
	case d.State > 0 && !d.Steps:
		return fmt.Errorf("its description has a state of an optimiser and takes no steps: set steps too")
	case len(d.Parameters) == 0:
		return fmt.Errorf("its description has no parameters: there is nothing to train")
	case len(d.Parameters)+len(d.Buffers) > maxTensors:
		return fmt.Errorf("its description has %d tensors: at most %d are possible",
			len(d.Parameters)+len(d.Buffers), maxTensors)
	}
	for i, name := range d.Metrics {
		if !printable(name) || strings.HasSuffix(name, ".min") || strings.HasSuffix(name, ".max") {
			return fmt.Errorf("its metric %d is named %.80q: give a name of one line that does not end in .min or .max",
				i+1, name)
		}
		if slices.Contains(d.Metrics[:i], name) {
			return fmt.Errorf("its metrics %d and %d have one name, %q: give each its own",
				slices.Index(d.Metrics, name)+1, i+1, name)
		}
	}
	names := map[string]bool{}
	for _, t := range append(d.Parameters[:len(d.Parameters):len(d.Parameters)], d.Buffers...) {
		if names[t.Name] || !printable(t.Name) {
			return fmt.Errorf("its tensor %.80q has no name of one line, or shares it with another", t.Name)
		}
		names[t.Name] = true
	}
	_, err := d.model()
	return err
}

func printable(s string) bool {
	return s != "" && len(s) <= maxName && utf8.ValidString(s) &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// model returns the parameters and buffers as a model without layers.
func (d *Description) model() (*models.Model, error) {
	loss := models.CrossEntropy
	if d.Score == LossOnly {
		loss = models.Distance
	}
	m, err := models.External(d.Name, tensors(d.Parameters), tensors(d.Buffers), loss)
	if err != nil {
		return nil, err
	}
	m.Layout.State = int((d.State + 7) / 8)
	return m, nil
}

func tensors(list []Tensor) (out []engine.Tensor) {
	for _, t := range list {
		shape := t.Shape
		if len(shape) == 0 {
			shape = []int{1}
		}
		out = append(out, engine.Tensor{Name: t.Name, Shape: shape, Table: t.Table})
	}
	return out
}

// samples returns the ids of the program's samples as a data set without content, with a name for people.
func (d *Description) samples(name string) *data.Set {
	return data.Elsewhere(name, d.Data, d.Train, d.Validation, d.Test)
}

// text returns the description as TOML, without what does not change the computation.
func (d *Description) text() (string, error) {
	p, err := toml.Marshal(d)
	return string(p), err
}

// digest returns the first bytes of the BLAKE3 digest of a text, in hexadecimal.
func digest(text string) string {
	h := blake3.Sum256([]byte(text))
	return hex.EncodeToString(h[:6])
}
