package native

import (
	"brood/models"
	"brood/models/native/kernel"
)

// minGRU is h[t] = h[t-1] + z[t]*(c[t] - h[t-1]) over the positions of a text. z and c depend only on the input at t,
// so they are two products for all positions at once; only the elementwise recurrence is sequential. The logistic
// function is (1 + tanh(x/2))/2.
type minGRU struct {
	wire
	index             int
	steps, nIn, units int
	sequence          bool
	zero              []float32 // state before the first position
	gate, state       [2]int    // tensors: weight and bias
}

func (p *plan) minGRU(l *models.Layer, in int) int {
	steps := p.model.Features
	w := wire{in: in, with: -1, out: p.buffer(shaped(l.Out, false)), parameters: true}
	o := &minGRU{
		wire:     w,
		index:    len(p.ops),
		steps:    steps,
		nIn:      l.In[0] / steps,
		units:    l.Out[0],
		sequence: l.Steps > 0,
		gate:     [2]int{l.Weight, l.Bias},
		state:    l.State,
	}
	if o.sequence {
		o.units /= steps
	}
	o.zero = make([]float32, o.units)
	return p.to(o)
}

// saves counts z and c, which the backward pass overwrites with their gradients, and the states.
func (o *minGRU) saves(samples int) int { return 3 * samples * o.steps * o.units }

// kept returns z, c and h of the current samples, each [sample][position][unit].
func (o *minGRU) kept(p *pass) (z, c, h []float32) {
	n, kept := p.n*o.steps*o.units, p.saved[o.index]
	return kept[:n], kept[n : 2*n], kept[2*n : 3*n]
}

func (o *minGRU) gemmScratch(k *kernel.Kernels, samples int, gradients bool) kernel.Scratch {
	rows := samples * o.steps
	r := k.GemmScratch(kernel.NT, rows, o.units, o.nIn, o.nIn, o.nIn)
	if gradients {
		r = r.Max(k.GemmScratch(kernel.TN, o.units, o.nIn, rows, o.units, o.nIn)).
			Max(k.GemmScratch(kernel.NN, rows, o.nIn, o.units, o.units, o.nIn))
	}
	return r
}

func (o *minGRU) forward(p *pass) {
	p.spread((*minGRUProducts)(o), strips(o.units))
	p.spread((*minGRUForward)(o), p.blocks())
}

func (o *minGRU) backward(p *pass, input bool) {
	p.spread((*minGRUBack)(o), p.blocks())
	p.spread((*minGRUWeights)(o), strips(o.units))
	if input {
		p.spread((*minGRUData)(o), strips(o.nIn))
	}
}

type minGRUProducts minGRU

func (o *minGRUProducts) run(p *pass, k *kernel.Kernels, lo, hi int) {
	lo, hi = strip*lo, min(strip*hi, o.units)
	m := p.plan.model
	z, c, _ := (*minGRU)(o).kept(p)
	for i, t := range [][2]int{o.gate, o.state} {
		y := [][]float32{z, c}[i][lo:]
		ep := kernel.Epilogue{Bias: tensor(p.params, m, t[1])[lo:hi]}
		k.Gemm(kernel.NT, p.n*o.steps, hi-lo, o.nIn, p.act[o.in], o.nIn, tensor(p.params, m, t[0])[lo*o.nIn:], o.nIn, y,
			o.units, &ep)
	}
}

type minGRUForward minGRU

func (o *minGRUForward) run(p *pass, k *kernel.Kernels, lo, hi int) {
	z, c, h := (*minGRU)(o).kept(p)
	wide := o.steps * o.units
	lo, hi = p.rows(lo, hi)
	for i, v := range z[lo*wide : hi*wide] {
		z[lo*wide+i] = v / 2
	}
	k.Tanh(z[lo*wide:hi*wide], z[lo*wide:hi*wide])
	for s := lo; s < hi; s++ {
		before := o.zero
		for t := range o.steps {
			at := s*wide + t*o.units
			next := h[at : at+o.units]
			follow(next, before, z[at:at+o.units], c[at:at+o.units])
			before = next
		}
		if y := p.act[o.out]; o.sequence {
			copy(y[s*wide:], h[s*wide:(s+1)*wide])
		} else {
			copy(y[s*o.units:], before)
		}
	}
}

// follow computes one position: z is tanh(x/2) on entry and the logistic function of x on return.
func follow(h, before, z, c []float32) {
	before, z, c = before[:len(h)], z[:len(h)], c[:len(h)]
	for i := range h {
		z[i] = 0.5 + float32(0.5*z[i])
		h[i] = before[i] + float32(z[i]*(c[i]-before[i]))
	}
}

type minGRUBack minGRU

// run overwrites z and c with the gradients of the products' results, from the last position to the first. With d[t]
// the gradient of h[t],
//
//	d[t-1] = d[t]*(1 - z[t]) + the incoming gradient of h[t-1]
//
// is stored in place of h[t-1], which is not needed any more.
func (o *minGRUBack) run(p *pass, k *kernel.Kernels, lo, hi int) {
	z, c, h := (*minGRU)(o).kept(p)
	wide := o.steps * o.units
	lo, hi = p.rows(lo, hi)
	for s := lo; s < hi; s++ {
		for t := o.steps - 1; t >= 0; t-- {
			at := s*wide + t*o.units
			d := h[at : at+o.units]
			switch last := t == o.steps-1; {
			case last && o.sequence:
				copy(d, p.dy[at:])
			case last:
				copy(d, p.dy[s*o.units:])
			case o.sequence:
				k.Add(d, d, p.dy[at:at+o.units])
			}
			if t > 0 {
				unfollow(d, h[at-o.units:at], z[at:at+o.units], c[at:at+o.units])
			} else {
				begin(d, z[at:at+o.units], c[at:at+o.units])
			}
		}
	}
}

// unfollow is one position of the backward pass: the gradient of c is d*z, of the gate d*(c - h[t-1])*z*(1 - z), and
// d*(1 - z) replaces h[t-1].
func unfollow(d, before, z, c []float32) {
	before, z, c = before[:len(d)], z[:len(d)], c[:len(d)]
	for i, d := range d {
		open := z[i]
		shut := 1 - open
		z[i] = float32(float32(d*(c[i]-before[i])) * float32(open*shut))
		c[i] = float32(d * open)
		before[i] = float32(d * shut)
	}
}

// begin is unfollow for the first position, whose previous state is zero.
func begin(d, z, c []float32) {
	z, c = z[:len(d)], c[:len(d)]
	for i, d := range d {
		open := z[i]
		z[i] = float32(float32(d*c[i]) * float32(open*(1-open)))
		c[i] = float32(d * open)
	}
}

type minGRUWeights minGRU

func (o *minGRUWeights) run(p *pass, k *kernel.Kernels, lo, hi int) {
	lo, hi = strip*lo, min(strip*hi, o.units)
	m, rows := p.plan.model, p.n*o.steps
	dz, dc, _ := (*minGRU)(o).kept(p)
	for i, t := range [][2]int{o.gate, o.state} {
		d := [][]float32{dz, dc}[i][lo:]
		k.Gemm(kernel.TN, hi-lo, o.nIn, rows, d, o.units, p.act[o.in], o.nIn, tensor(p.grad, m, t[0])[lo*o.nIn:], o.nIn, nil)
		k.ColSum(tensor(p.grad, m, t[1])[lo:hi], 0, d, o.units, rows, 1)
	}
}

type minGRUData minGRU

func (o *minGRUData) run(p *pass, k *kernel.Kernels, lo, hi int) {
	lo, hi = strip*lo, min(strip*hi, o.nIn)
	m, rows := p.plan.model, p.n*o.steps
	dz, dc, _ := (*minGRU)(o).kept(p)
	k.Gemm(kernel.NN, rows, hi-lo, o.units, dz, o.units, tensor(p.params, m, o.gate[0])[lo:], o.nIn, p.dx[lo:], o.nIn, nil)
	k.Gemm(kernel.NN, rows, hi-lo, o.units, dc, o.units, tensor(p.params, m, o.state[0])[lo:], o.nIn, p.dx[lo:], o.nIn,
		&kernel.Epilogue{Add: true, Alpha: 1})
}
