package bench

import (
	"context"
	"fmt"
	goruntime "runtime"
	"slices"
	"time"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/native"
	"brood/models/native/kernel"
	"brood/models/noise"
	"brood/runtime/view"
)

// samples returns n samples of random bytes with the input shape of a model, and random labels.
func samples(m *models.Model, n int) (*data.Set, error) {
	key := noise.Key{Seed: 1, Purpose: noise.Data}
	r := data.Raster{Pixels: make([]byte, n*m.Features), Labels: make([]uint16, n)}
	for i := range r.Pixels {
		r.Pixels[i] = byte(i * 2654435761 >> 7)
	}
	for i := range r.Labels {
		r.Labels[i] = uint16(key.Below(i, max(1, m.Classes)))
	}
	return data.New(data.Info{Name: "random", Shape: m.Input, Classes: max(1, m.Classes)}, r, data.Raster{}, 0)
}

// Train measures gradients of whole models, compared with their products at the peak rate, and with one member or one
// thread. each is the measuring time of a figure.
func Train(ctx context.Context, each time.Duration, report func(Figure)) error {
	m, err := newMachine(each, report)
	if err != nil {
		return err
	}
	threads := goruntime.NumCPU()
	for _, t := range []struct {
		model string
		batch int
		goal  float64
	}{{"mlp", 128, 0.85}, {"lenet-caffe", 128, 0.7}, {"lenet", 128, 0.5}, {"lenets", 128, 0.5}, {"allcnn", 64,
		0.75}, {"resnet20", 64, 0.6}, {"wrn-28-10", 32, 0.6}, {"cif-300k", 64, 0}} {
		one, err := m.gradients(ctx, t.model, t.batch, 1, 1, 1)
		if err != nil {
			return err
		}
		one.goal = t.goal
		if err := m.measure(ctx, one); err != nil {
			return err
		}
		if t.batch < 128 {
			continue
		}
		steps := []int{1, 1, stepsEach}
		least := []speed{one, {}, {}}
		for i := 1; i < len(least); i++ {
			if least[i], err = m.gradients(ctx, t.model, t.batch, 8, 1, steps[i]); err != nil {
				return err
			}
			least[i].goal, least[i].limits = 1, []limit{m.scaled(one, "one member", 1)}
			if err := m.measure(ctx, least[i]); err != nil {
				return err
			}
		}
		if threads == 1 {
			continue
		}
		for i, less := range least {
			members := int(less.work) / t.batch / steps[i]
			more, err := m.gradients(ctx, t.model, t.batch, members, threads, steps[i])
			if err != nil {
				return err
			}
			more.goal, more.limits = 0.95, []limit{m.scaled(less, "one thread", threads)}
			if err := m.measure(ctx, more); err != nil {
				return err
			}
		}
	}
	return nil
}

// scaled returns the rate of another figure as a limit. For more than one thread it scales the rate with the ratio of
// the peak rates of threads concurrent threads and of one.
func (m *machine) scaled(f speed, name string, threads int) limit {
	return limit{name, func(spell time.Duration) float64 {
		rate := f.work * kernel.Spell(spell, func() { _ = f.call() })
		if threads > 1 {
			rate *= m.peaks(threads, spell) / m.Peak(spell)
		}
		return rate
	}}
}

// stepsEach is the number of consecutive local steps of a member in the figures where each member has its own executor
// thread.
const stepsEach = 8

// gradients returns the figure of gradients of members on threads, in samples per second. Its limit is the register
// arithmetic of the products of the model. If steps is 1, one task computes a gradient of each member; otherwise each
// executor thread computes steps gradients of a member before the next member.
func (m *machine) gradients(ctx context.Context, model string, batch, members, threads, steps int) (speed, error) {
	net, err := models.Load(model)
	if err != nil {
		return speed{}, err
	}
	set, err := samples(net, 2*batch)
	if err != nil {
		return speed{}, err
	}
	e, err := native.NewEngine(net, set, threads, m.variant)
	if err != nil {
		return speed{}, err
	}
	x, stats := engine.NewHost(members, net.Layout.Params, engine.F32),
		engine.NewHost(members, net.Layout.Stats, engine.F32)
	g := engine.Gradients{
		X:     ram.Of(x),
		Rows:  engine.Rows(members),
		Stats: ram.Of(stats),
		Masks: make([]noise.Key, members),
		G:     ram.New(members, net.Layout.Params),
		Loss:  make([]float32, members),
	}
	for i := range members {
		if err := net.Init(1, engine.Member(i), x.Row(engine.Row(i))); err != nil {
			return speed{}, err
		}
		net.Layout.FreshStats(stats.Row(engine.Row(i)))
		g.Masks[i].Member = uint32(i)
		g.Batches = append(g.Batches, set.Train()[i:i+batch])
	}
	_, flops := net.Flops()
	name := fmt.Sprintf("%s, batch %d", model, batch)
	switch {
	case steps > 1:
		name += fmt.Sprintf(", %dx%d steps on %s", members, steps, view.Plural(threads, "thread"))
	case members > 1 || threads > 1:
		name += fmt.Sprintf(", %s on %s", view.Plural(members, "member"), view.Plural(threads, "thread"))
	}
	call := func() error { return e.Do(ctx, g) }
	if steps > 1 {
		call = func() error {
			return engine.Each(ctx, e.ThreadEngines(), members, func(thread engine.Doer, i int) error {
				return thread.Do(ctx, slices.Repeat([]engine.Task{g.Entries(i, i+1)}, steps)...)
			})
		}
	}
	return speed{
		name:   name,
		unit:   "samples/s",
		work:   float64(batch * members * steps),
		limits: []limit{m.registers(flops * 1e-9)},
		call:   call,
	}, nil
}

// Arithmetics of candidates other than float32.
const bf16, amx = "bf16", "amx"

// Candidates measures evaluations of perturbed candidates, compared with products of full rank at the peak rate, and
// whole generations, compared with inference. each is the measuring time of a figure.
func Candidates(ctx context.Context, each time.Duration, report func(Figure)) error {
	m, err := newMachine(each, report)
	if err != nil {
		return err
	}
	for _, t := range candidateFigures {
		for _, threads := range []int{1, goruntime.NumCPU()} {
			if err := t.measure(ctx, m, threads); err != nil {
				return err
			}
			if goruntime.NumCPU() == 1 {
				break
			}
		}
	}
	return nil
}

// candidateFigure is a figure of [Candidates]. The kind is part of its name and selects the engine.
type candidateFigure struct {
	model string
	batch int
	kind  string
	noise engine.Noise
	goal  float64
	// Every candidate has its own batch and the weighted sum of the noise is included; the limit is the evaluation of the
	// unperturbed model on the same batches.
	generation bool
}

var candidateFigures = []candidateFigure{
	{"mlp", 256, "antithetic", engine.Noise{}, 1.2, false},
	{"mlp", 256, "integer", engine.Noise{Integer: true}, 2.5, false},
	{"mlp", 256, "rank 1", engine.Noise{Rank: 1}, 0, false},
	{"mlp-small", 256, "antithetic", engine.Noise{}, 0, false},
	{"mlp-small", 256, "integer", engine.Noise{Integer: true}, 0, false},
	{"mlp-small", 256, "rank 1", engine.Noise{Rank: 1}, 0, false},
	{"lenet-caffe", 128, "antithetic", engine.Noise{}, 0.75, false},
	{"lenet-caffe", 128, "integer", engine.Noise{Integer: true}, 0, false},
	{"lenet-caffe", 128, "rank 1", engine.Noise{Rank: 1}, 0, false},
	{"darwinn-10k", 128, "antithetic", engine.Noise{}, 0, false},
	{"mlp", 256, bf16, engine.Noise{}, 0, false},
	{"mlp-small", 256, bf16, engine.Noise{}, 0, false},
	{"mlp", 256, amx, engine.Noise{}, 0, false},
	{"mlp-small", 256, amx, engine.Noise{}, 0, false},
	{"mlp", 256, "generation", engine.Noise{}, 0, true},
	{"mlp", 256, "generation, integer", engine.Noise{Integer: true}, 0, true},
	{"mlp", 256, "generation, rank 1", engine.Noise{Rank: 1}, 0.91, true},
}

// measure measures the figure with this number of threads.
func (t candidateFigure) measure(ctx context.Context, m *machine, threads int) error {
	net, err := models.Load(t.model)
	if err != nil {
		return err
	}
	const n = 128 // amortizes the work that candidates share
	batches := 1
	if t.generation {
		batches = n
	}
	set, err := samples(net, batches*t.batch)
	if err != nil {
		return err
	}
	open := native.NewEngine
	switch t.kind {
	case bf16:
		open = native.NewBF16
	case amx:
		open = native.NewAMX
	}
	e, err := open(net, set, threads, m.variant)
	if err != nil {
		return err
	}
	theta := engine.NewHost(1, net.Layout.Params, engine.F32)
	if err := net.Init(1, 0, theta.F); err != nil {
		return err
	}
	task := engine.Candidates{
		Noise:      t.noise,
		Theta:      ram.Of(theta),
		Sigma:      0.01,
		Antithetic: true,
		Batches:    slices.Collect(slices.Chunk(set.Train(), t.batch)),
		Fitness:    make([]float32, n),
	}
	for i := range n {
		task.IDs = append(task.IDs, engine.Member(i))
	}
	flops, _ := net.Flops()
	name := fmt.Sprintf("%s, batch %d, %s", t.model, t.batch, t.kind)
	if threads > 1 {
		name += fmt.Sprintf(", %d threads", threads)
	}
	work := flops * float64(t.batch) * 1e-9
	f := speed{
		name: name,
		unit: "evaluations/s",
		work: n,
		goal: t.goal,
		limits: []limit{{"products of full rank in registers",
			func(spell time.Duration) float64 { return m.peaks(threads, spell) / work }}},
		call: func() error { return e.Do(ctx, task) },
	}
	if t.generation {
		infer := engine.Evaluate{
			X:       task.Theta,
			Rows:    make([]engine.Row, n),
			Batches: task.Batches,
			Loss:    make([]float64, n),
			Correct: make([]int64, n),
		}
		sum := engine.NoiseSum{
			Dst:        engine.All(ram.New(1, net.Layout.Params)),
			Noise:      t.noise,
			Weights:    make([]float32, n),
			Antithetic: true,
			IDs:        task.IDs,
		}
		f.call = func() error { return e.Do(ctx, task, sum) }
		f.limits = []limit{{"inference", func(spell time.Duration) float64 {
			return n * kernel.Spell(spell, func() { _ = e.Do(ctx, infer) })
		}}}
	}
	return m.measure(ctx, f)
}
