// Package gpu is an engine that computes on a device: matrices live in device memory, and tasks become launches of
// kernels in OpenCL C. Its results equal the arithmetic f32/1 bit by bit (docs/arithmetic.md), whose reference is
// models/native.
//
//	d, err := opencl.Driver{}.Open(0)
//	e, err := gpu.New(d, model, set)
//
// A task becomes a batch: the words that it needs (rows, keys, sample ids, shapes), sent in one write, and launches.
// Results of tasks go to a log in device memory, which Wait and Read copy to the host at once. No result depends on the
// number of members or on the device: shapes alone determine the order of every sum.
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

// Engine runs all tasks for one model and one data set on one device. One goroutine may use it at a time.
type Engine struct {
	dev     Device // same as memory; nil after Close
	memory  *counted
	model   *models.Model
	set     *data.Set
	layout  *engine.Layout
	bounds  engine.Bounds
	kernels map[string]Kernel
	kind    string // the arithmetic's name in logs
	tensor  string // the arithmetic of Tensors that computes the model's products; "": f32/1
	used    int64  // bytes allocated by Alloc
	sticky  error  // first error of the device, returned by every later call
	queued  int    // launches since the queue was last empty

	words, table Memory // words of the current batch; table of the layout's tensors
	wordRoom     int
	tiles        []int // first noise tile of each tensor, then the total number of tiles

	log     Memory // results of tasks
	logRoom int
	logged  int
	readers []func(p []byte) // readers of the log's reservations

	scratch map[string]*spare
	old     []Memory // outgrown memory, freed after the current batch
	plan    *plan
	samples samples
}

// spare is scratch memory.
type spare struct {
	m     Memory
	bytes int
}

// New compiles the model for the device. The engine owns the device, even if New fails. It returns an UncoveredError if
// the model needs kernels that do not exist, and an error if the device does not compute as f32/1 requires.
func New(d Device, m *models.Model, set *data.Set) (*Engine, error) { return newEngine(d, "", m, set) }

// NewTensor is like New for an arithmetic of [Tensors], which the device's tensor cores compute. It fails if there are
// none, or if they do not compute as the arithmetic requires.
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

// Sources lists the names of the kernel sources given to a device: the self-test, all kernels of f32/1, and the
// products of each arithmetic of [Tensors].
var Sources = append([]string{"selftest", "kernels"}, Tensors...)

// Source returns a kernel source by its name in [Sources]. All but the self-test begin with common.cl.
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

// Kernels returns the name of the arithmetic.
func (e *Engine) Kernels() string { return e.kind }

// Close frees the device and all its memory. Every later call fails, except Free, which does nothing.
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

// Do checks and queues the tasks in order; consecutive tasks may share a launch. It stops at the first invalid task.
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

// together queues the first of the tasks with the following ones that fit into its launch, and returns their number.
func (e *Engine) together(tasks []engine.Task) (n int, err error) {
	if list := e.equalAdams(tasks); len(list) > 0 {
		return len(list), e.adam(list)
	}
	if n, err = e.walk(tasks); n > 0 || err != nil {
		return n, err
	}
	return 1, e.do(tasks[0])
}

// Wait empties the queue and stores the outputs of tasks.
func (e *Engine) Wait(ctx context.Context) error {
	if err := e.open(ctx); err != nil {
		return err
	}
	return e.settle()
}

// open returns the error of a call that cannot be accepted.
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
	case engine.Update, engine.Adam: // without rows or statements: together handles the others
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
	case engine.CopyColumns:
		return e.copyColumns(t)
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

// fail stores the first error of the device and returns it.
func (e *Engine) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	if e.sticky == nil {
		e.sticky = &engine.DeviceError{Device: e.dev.Info().Name, Op: op, Err: err}
	}
	return e.sticky
}
