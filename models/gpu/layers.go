package gpu

import (
	"fmt"
	"math"

	"brood/models"
)

// images returns the grid of a kernel over elements of a sample, samples and entries.
func (p *pass) images(elements int) [3]int {
	return [3]int{(elements + group - 1) / group, p.most, p.entries}
}

// conv appends y = x * W + b.
func (p *pass) conv(o *op, x, y place) {
	w := p.tensor(p.params, p.lo, o.weight)
	bias, biased, relu := w, uint32(0), uint32(0)
	if o.bias >= 0 {
		bias, biased = p.tensor(p.params, p.lo, o.bias), 1
	}
	if o.rectify {
		relu = 1
	}
	groups, high := p.tiles(o, o.channels, o.plane)
	p.b.grid(p.b.products("conv_tiles"), groups, tileItems, wordsHere{}, p.b.list(o.shape...), p.sizes, uint32(0), high,
		x.m, x.list, x.step,
		w.m, w.list, w.step, w.at, bias.at, biased, relu, y.m, uint32(0), y.m, y.step)
}

// tiles returns the grid of a convolution whose result has this number of channels and of pixels per channel, and the
// number of rows of work items in a group: as few as the channels need.
func (p *pass) tiles(o *op, channels, plane int) (groups [3]int, high uint32) {
	of := int(o.shape[9])
	lines, n := channels/of, 1
	for n < tileHigh && n*tileOwn < lines {
		n *= 2
	}
	down, across := n*tileOwn, tileItems/n*tileOwn
	return [3]int{(p.most*plane + across - 1) / across, (lines + down - 1) / down, p.entries * of}, uint32(n)
}

// Tiles of a convolution's weights have tileTaps outputs and tileTaps taps; groups with fewer than fewOutputs outputs
// use another kernel.
const (
	tileTaps   = 16
	fewOutputs = 3
)

// convBack appends the gradients of weights and bias and, with input, of the input.
func (p *pass) convBack(o *op, dy, dx Memory, g place, input bool) {
	shape, x, step := p.b.list(o.shape...), p.acts[o.in], uint64(p.most*o.nOut)
	w := p.tensor(g, 0, o.weight)
	of := int(o.shape[9])
	lines, wide := o.channels/of, p.e.layout.Tensors[o.weight].Len/o.channels
	if args := []any{wordsHere{}, shape, p.sizes, dy, step, x.m, x.step, w.m, w.at, w.step}; lines < fewOutputs {
		p.b.launch("conv_weights", p.e.layout.Tensors[o.weight].Len, p.entries, args...)
	} else {
		p.b.grid("conv_weight_tiles",
			[3]int{(wide + tileTaps - 1) / tileTaps, (lines + tileTaps - 1) / tileTaps, p.entries * of}, tileItems, args...)
	}
	if o.bias >= 0 {
		bias := p.tensor(g, 0, o.bias)
		p.b.launch("conv_bias", o.channels, p.entries, wordsHere{}, p.sizes, uint32(o.channels), uint32(o.plane), dy, step,
			bias.m, bias.at, bias.step)
	}
	if !input {
		return
	}
	gated := uint32(0)
	if o.rectified {
		gated = 1
	}
	back := p.tensor(p.params, p.lo, o.weight)
	groups, high := p.tiles(o, int(o.shape[0]), int(o.shape[1]*o.shape[2]))
	p.b.grid(p.b.products("conv_tiles"), groups, tileItems, wordsHere{}, shape, p.sizes, uint32(1), high, dy, uint32(none),
		step, back.m, back.list, back.step, back.at,
		uint64(0), uint32(0), uint32(0), x.m, gated, dx, x.step)
}

// windows reports whether a pooling layer takes means, and returns the factor of the sums.
func (o *op) windows() (mean uint32, scale float32) {
	if o.kind == models.AvgPool {
		mean = 1
	}
	return mean, 1 / float32(o.channels)
}

func (p *pass) pool(o *op, x, y place) {
	mean, scale := o.windows()
	p.b.grid("pool", p.images(o.nOut), group, wordsHere{}, p.b.list(o.shape...), p.sizes, mean, scale, x.m, x.list, x.step,
		y.m, y.step)
}

func (p *pass) poolBack(o *op, dy, dx Memory) {
	mean, scale := o.windows()
	x, y := p.acts[o.in], p.acts[o.out]
	p.b.grid("pool_back", p.images(o.nIn), group, wordsHere{}, p.b.list(o.shape...), p.sizes, mean, scale, x.m, x.step,
		y.m, dy, y.step, dx)
}

// normLanes is the number of partial sums of a channel, normKept the number of values per channel stored for the
// backward pass.
const (
	normLanes = 32
	normKept  = 7
)

// kept returns the memory for values that a normalisation stores for the backward pass, and for its partial sums.
func (p *pass) kept(o *op) (kept, lanes Memory) {
	// A device error is sticky, so the batch is not issued.
	kept, _ = p.e.scratchMemory(fmt.Sprintf("normalisation %d", o.layer), 4*p.entries*normKept*o.channels)
	lanes, _ = p.e.scratchMemory("lanes of "+fmt.Sprint(o.channels), 4*p.entries*2*normLanes*o.channels)
	return kept, lanes
}

// lanes appends the partial sums of the channels.
func (p *pass) lanes(o *op, what uint32, x place, dy Memory, kept, lanes Memory) {
	p.b.launch("norm_lanes", normLanes*o.channels, p.entries, wordsHere{}, p.sizes, uint32(o.channels), uint32(o.plane),
		what, o.floor(), x.m, x.list, x.step,
		dy, uint64(p.most*o.nOut), kept, lanes)
}

// floor returns 1 if a rectifier follows.
func (o *op) floor() uint32 {
	if o.rectify {
		return 1
	}
	return 0
}

// norm appends y = a*x + b, using the batch's own statistics or given ones.
func (p *pass) norm(o *op, x, y place) {
	kept, lanes := p.kept(o)
	channels, plane := uint32(o.channels), uint32(o.plane)
	given, running, stats := uint32(0), uint32(0), p.stats
	switch {
	case p.given:
		given = 1
	default:
		p.lanes(o, 0, x, x.m, kept, lanes)
		p.b.launch("norm_mean", o.channels, p.entries, wordsHere{}, p.sizes, channels, plane, lanes, kept)
		p.lanes(o, 1, x, x.m, kept, lanes)
		if stats.m != 0 {
			running = 1
		}
	}
	if stats.m == 0 {
		stats = place{m: kept, list: none}
	}
	scale, shift := p.tensor(p.params, p.lo, o.weight), p.tensor(p.params, p.lo, o.bias)
	p.b.launch("norm_factors", o.channels, p.entries, wordsHere{}, p.sizes, channels, plane, lanes, kept, scale.m,
		scale.list, scale.step, scale.at, shift.at,
		stats.m, stats.at, stats.list, stats.step, uint32(o.mean), uint32(o.variance), given, running, p.pace,
		math.Float64bits(models.NormEpsilon))
	p.b.launch("norm_apply", p.most*o.nOut, p.entries, wordsHere{}, channels, plane, o.floor(), x.m, x.list, x.step, kept,
		y.m, y.step)
}

// normBack appends the gradients of scale and shift and, with input, replaces dy by the gradient of the input.
func (p *pass) normBack(o *op, dy Memory, g place, input bool) {
	kept, lanes := p.kept(o)
	channels, plane, x := uint32(o.channels), uint32(o.plane), p.acts[o.in]
	p.lanes(o, 2, x, dy, kept, lanes)
	scale, gscale, gshift := p.tensor(p.params, p.lo, o.weight), p.tensor(g, 0, o.weight), p.tensor(g, 0, o.bias)
	p.b.launch("norm_back_factors", o.channels, p.entries, wordsHere{}, p.sizes, channels, plane, lanes, kept, scale.m,
		scale.list, scale.step, scale.at,
		g.m, uint64(0), g.step, gscale.at, gshift.at)
	if input {
		p.b.launch("norm_back", p.most*o.nOut, p.entries, wordsHere{}, p.sizes, channels, plane, o.floor(), x.m, x.step, dy,
			uint64(p.most*o.nOut), kept)
	}
}

// add appends y = x + z.
func (p *pass) add(o *op, x, z, y place) {
	p.b.launch("add", p.most*o.nOut, p.entries, wordsHere{}, p.b.list(o.shape...), p.sizes, uint32(o.nOut), x.m, x.list,
		x.step, z.m, z.list, z.step, y.m, y.step)
}
