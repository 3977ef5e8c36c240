package native

import (
	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/native/kernel"
	"brood/models/noise"
)

// mode is what a pass is for.
type mode uint8

const (
	training   mode = iota // dropout, the batch's own statistics folded into the running ones, gradients
	batchStats             // no dropout, the batch's own statistics
	running                // no dropout, given statistics
)

// pass is one lane's way through a plan: its kernels, its buffers and what it works on. The buffers hold the largest
// batch so far; a pass of that size or less allocates nothing.
type pass struct {
	plan *plan
	k    *kernel.Kernels
	room int // samples that the buffers hold, whole blocks

	act    [][]float32 // by activation
	saved  [][]float32 // by op: what its backward needs besides activations
	dy, dx []float32   // gradients of the present activation and of the one before
	labels []int32
	losses []float32
	twin   candidates
	own    []float32 // statistics of one batch
	lanes  [][kernel.Lanes]float32

	n      int // samples of this pass
	mode   mode
	params []float32
	grad   []float32
	stats  []float32 // nil: the batch's own are used and not kept
	mask   noise.Key
	keys   *noise.Schedule // of the mask's key
	keyed  noise.Key
}

// saver is an op that keeps something of its own from forward to backward: so many floats for so many samples.
type saver interface{ saves(samples int) int }

func newPass(pl *plan, k *kernel.Kernels) *pass {
	return &pass{plan: pl, k: k, act: make([][]float32, len(pl.buffers)), saved: make([][]float32, len(pl.ops))}
}

func (p *pass) blocks() int { return (p.n + kernel.Lanes - 1) / kernel.Lanes }

// live is the samples of block b.
func (p *pass) live(b int) int { return min(kernel.Lanes, p.n-b*kernel.Lanes) }

func (p *pass) swap() { p.dy, p.dx = p.dx, p.dy }

// floats is what the buffers of a pass over so many samples hold, with or without gradients.
func (pl *plan) floats(samples int, gradients bool) (n int) {
	samples = whole(samples)
	for _, b := range pl.buffers {
		n += samples * b.floats()
	}
	for _, o := range pl.ops {
		if s, ok := o.(saver); ok {
			n += s.saves(samples)
		}
	}
	if gradients {
		n += 2 * samples * pl.widest()
	}
	return n
}

func (pl *plan) widest() (n int) {
	for _, b := range pl.buffers {
		n = max(n, b.floats())
	}
	return n
}

func whole(samples int) int { return (samples + kernel.Lanes - 1) / kernel.Lanes * kernel.Lanes }

// reserve grows the buffers.
func (p *pass) reserve(samples int, gradients bool) {
	if samples = whole(samples); samples > p.room {
		p.room, p.dy, p.dx = samples, nil, nil
		for i, b := range p.plan.buffers {
			p.act[i] = make([]float32, samples*b.floats())
		}
		for i, o := range p.plan.ops {
			if s, ok := o.(saver); ok {
				p.saved[i] = make([]float32, s.saves(samples))
			}
		}
		p.labels, p.losses = make([]int32, samples), make([]float32, samples)
	}
	if gradients && p.dy == nil {
		n := p.room * p.plan.widest()
		p.dy, p.dx = make([]float32, n), make([]float32, n)
	}
}

// load gathers the samples of a batch.
func (p *pass) load(set *data.Set, ids []int32, gradients bool) error {
	p.reserve(len(ids), gradients)
	p.n = len(ids)
	return set.Gather(ids, p.act[0][:p.n*p.plan.model.Features], p.labels[:p.n])
}

// forward computes the logits.
func (p *pass) forward() []float32 {
	for _, o := range p.plan.ops {
		o.forward(p)
	}
	return p.act[len(p.act)-1]
}

// gradient is a step forward and back: the gradient of the mean loss goes to grad, the summed loss is returned.
func (p *pass) gradient() (float64, error) {
	z, classes := p.forward(), p.plan.model.Classes
	if err := p.k.CrossEntropy(p.losses, p.dy, classes, z, classes, classes, p.labels[:p.n], 1/float32(p.n)); err != nil {
		return 0, err
	}
	for i := len(p.plan.ops) - 1; i >= max(0, p.plan.first); i-- {
		p.plan.ops[i].backward(p, i > p.plan.first)
	}
	return sum(p.losses[:p.n]), nil
}

// score is the summed loss and the correct predictions of the loaded samples.
func (p *pass) score() (loss float64, correct int64, err error) { return p.tally(p.forward()) }

// tally is the summed loss and the correct predictions of logits.
func (p *pass) tally(z []float32) (loss float64, correct int64, err error) {
	classes := p.plan.model.Classes
	if err := p.k.CrossEntropy(p.losses, nil, 0, z, classes, classes, p.labels[:p.n], 1); err != nil {
		return 0, 0, err
	}
	for s, l := range p.labels[:p.n] {
		row, best := z[s*classes:(s+1)*classes], 0
		for c, v := range row {
			if v > row[best] {
				best = c
			}
		}
		if best == int(l) {
			correct++
		}
	}
	return sum(p.losses[:p.n]), correct, nil
}

func sum(x []float32) (s float64) {
	for _, v := range x {
		s += float64(v)
	}
	return s
}

// tensor is the part of a flat vector that belongs to tensor i.
func tensor(flat []float32, m *models.Model, i int) []float32 {
	return part(flat, &m.Layout.Tensors[i])
}

func part(flat []float32, t *engine.Tensor) []float32 { return flat[t.Lo : t.Lo+t.Len : t.Lo+t.Len] }
