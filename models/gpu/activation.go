package gpu

import (
	"fmt"
	"math"

	"brood/models"
)

// curve maps an activation to its number in the kernels.
var curve = map[models.Kind]uint32{models.LeakyReLU: 0, models.Tanh: 1, models.SiLU: 2, models.GELU: 3, models.Scale: 4}

// activation appends y = f(x).
func (p *pass) activation(o *op, x, y place) {
	p.b.launch("activation", p.most*o.nOut, p.entries, wordsHere{}, curve[o.kind], o.slope, x.list, y.m, y.step, x.m,
		x.step)
}

// activationBack replaces the gradient dy of the result by the gradient of the operand.
func (p *pass) activationBack(o *op, dy Memory) {
	x, n := p.acts[o.in], p.entries*p.most*o.nOut
	if o.kind == models.Tanh {
		x = p.acts[o.out]
	}
	p.b.launch("activation_back", n, 1, curve[o.kind], o.slope, dy, x.m, uint64(n))
}

// samplesAGroup is the number of samples per work group of these kernels.
const samplesAGroup = 4

// layers returns the grid of a kernel that normalises rows of samples.
func (p *pass) layers(o *op) [3]int {
	return [3]int{(p.most*o.rows + samplesAGroup - 1) / samplesAGroup, p.entries, 1}
}

// layerKept returns the memory for values that a normalisation of rows stores in the forward pass for the backward
// pass.
func (p *pass) layerKept(o *op) Memory {
	// A device error is sticky, so the batch is not issued.
	kept, _ := p.e.scratchMemory(fmt.Sprintf("normalisation %d", o.layer), 4*p.entries*p.most*o.rows*2)
	return kept
}

// layerNorm appends y = xhat*scale + shift.
func (p *pass) layerNorm(o *op, x, y place) {
	scale, shift := p.tensor(p.params, p.lo, o.weight), p.tensor(p.params, p.lo, o.bias)
	p.b.grid("layer_norm", p.layers(o), group, wordsHere{}, p.along(o.rows), uint32(p.most*o.rows), uint32(o.nIn/o.rows),
		x.m, x.list, x.step,
		scale.m, scale.list, scale.step, scale.at, shift.at, p.layerKept(o), y.m, y.step,
		math.Float64bits(models.NormEpsilon))
}

// layerNormBack appends the gradients of scale and shift; with input, it also replaces dy by the gradient of the
// operand.
func (p *pass) layerNormBack(o *op, dy Memory, g place, input bool) {
	kept, x, step := p.layerKept(o), p.acts[o.in], uint64(p.most*o.nOut)
	rows, wide := uint32(p.most*o.rows), o.nIn/o.rows
	dScale, dShift := p.tensor(g, 0, o.weight), p.tensor(g, 0, o.bias)
	p.b.launch("layer_norm_scale", wide, p.entries, wordsHere{}, p.along(o.rows), rows, uint32(wide), x.m, x.step, dy,
		step, kept, dScale.m, dScale.at, dScale.step)
	p.b.launch("column_sums", wide, p.entries, wordsHere{}, p.along(o.rows), uint32(wide), dy, step, dShift.m, dShift.at,
		dShift.step)
	if input {
		scale := p.tensor(p.params, p.lo, o.weight)
		p.b.grid("layer_norm_back", p.layers(o), group, wordsHere{}, p.along(o.rows), rows, uint32(wide), x.m, x.step,
			scale.m, scale.list, scale.step, scale.at, kept, dy, step)
	}
}
