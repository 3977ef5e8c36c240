package native

import (
	"brood/models"
	"brood/models/native/kernel"
)

// minGRU is h[t] = h[t-1] + z[t]*(c[t] - h[t-1]) over the positions of a text, z and c being products of the input
// there alone: they are two products for all positions at once, and what is left goes along the positions value by
// value. The logistic function is (1 + tanh(x/2))/2.
type minGRU struct {
	wire
	index             int
	steps, nIn, units int
	sequence          bool
	gate, state       [2]int // tensors: weight and bias
}

func (p *plan) minGRU(l *models.Layer, in int) int {
	steps := p.model.Features
	w := wire{in: in, with: -1, out: p.buffer(shaped(l.Out, false)), parameters: true}
	o := &minGRU{wire: w, index: len(p.ops), steps: steps, nIn: l.In[0] / steps, units: l.Out[0], sequence: l.Steps > 0, gate: [2]int{l.Weight, l.Bias}, state: l.State}
	if o.sequence {
		o.units /= steps
	}
	return p.to(o)
}

// saves z and c, which the way back overwrites with their gradients, and the states.
func (o *minGRU) saves(samples int) int { return 3 * samples * o.steps * o.units }

// kept are z, c and h of the present samples, each [sample][position][unit].
func (o *minGRU) kept(p *pass) (z, c, h []float32) {
	n, kept := p.n*o.steps*o.units, p.saved[o.index]
	return kept[:n], kept[n : 2*n], kept[2*n : 3*n]
}

func (o *minGRU) packs(k *kernel.Kernels, samples int, gradients bool) kernel.Room {
	rows := samples * o.steps
	r := k.GemmRoom(kernel.NT, rows, o.units, o.nIn, o.nIn, o.nIn)
	if gradients {
		r = r.Max(k.GemmRoom(kernel.TN, o.units, o.nIn, rows, o.units, o.nIn)).Max(k.GemmRoom(kernel.NN, rows, o.nIn, o.units, o.units, o.nIn))
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
		k.Gemm(kernel.NT, p.n*o.steps, hi-lo, o.nIn, p.act[o.in], o.nIn, tensor(p.params, m, t[0])[lo*o.nIn:], o.nIn, y, o.units, &ep)
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
		zs, cs, hs := z[s*wide:(s+1)*wide], c[s*wide:(s+1)*wide], h[s*wide:(s+1)*wide]
		for i, t := range zs {
			before := float32(0)
			if i >= o.units {
				before = hs[i-o.units]
			}
			zs[i] = 0.5 + float32(0.5*t)
			hs[i] = before + float32(zs[i]*(cs[i]-before))
		}
		if y := p.act[o.out]; o.sequence {
			copy(y[s*wide:], hs)
		} else {
			copy(y[s*o.units:], hs[wide-o.units:])
		}
	}
}

type minGRUBack minGRU

// run writes the gradients of what the products gave over z and c: with d[t] that of h[t],
//
//	d[t-1] = d[t]*(1 - z[t]) + what the result's asks for,  of c[t] d[t]*z[t],  of the gate d[t]*(c[t] - h[t-1])*z[t]*(1 - z[t])
func (o *minGRUBack) run(p *pass, _ *kernel.Kernels, lo, hi int) {
	z, c, h := (*minGRU)(o).kept(p)
	wide := o.steps * o.units
	lo, hi = p.rows(lo, hi)
	for s := lo; s < hi; s++ {
		for unit := range o.units {
			d := float32(0)
			if !o.sequence {
				d = p.dy[s*o.units+unit]
			}
			for i := (s+1)*wide - o.units + unit; i >= s*wide; i -= o.units {
				if o.sequence {
					d += p.dy[i]
				}
				before := float32(0)
				if i-o.units >= s*wide {
					before = h[i-o.units]
				}
				open := z[i]
				shut := 1 - open
				z[i] = float32(float32(d*(c[i]-before)) * float32(open*shut))
				c[i] = float32(d * open)
				d = float32(d * shut)
			}
		}
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
	k.Gemm(kernel.NN, rows, hi-lo, o.units, dc, o.units, tensor(p.params, m, o.state[0])[lo:], o.nIn, p.dx[lo:], o.nIn, &kernel.Epilogue{Add: true, Alpha: 1})
}
