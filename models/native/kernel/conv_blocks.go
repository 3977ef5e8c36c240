package kernel

import "unsafe"

// bfloat16 convolution by tiles: two neighbouring channels of a pixel's samples form a line of words, like pairs of k
// in a packed panel, so that 32 channels of a tap's pixel form a tile of B without rearrangement, and the weights of a
// tap, as words of two channels, a tile of A. Up to 32 channels form one tile; more are padded to a multiple of 32.

// LeastBlocks is the smallest number of input channels for which Blocks is used: with fewer, a tile is mostly empty.
const LeastBlocks = 8

// amxConvArgs is the argument of a convolution by tiles, of at most 32 result channels; strides are in bytes.
type amxConvArgs struct {
	a, b, c, bias, tab, config unsafe.Pointer
	rowA, tapA                 int // from result channel to channel, and from tap to tap
	ldb, blockB                int // from one pair of channels to the next, and for 32 channels
	ldc                        int
	taps, blocks               int // blocks: blocks of channels per tap
	pixels, stepB, stepC       int
	channels                   int
	flags                      uint64
	doneB, doneC               int // see amxArgs
}

// ConvBlocks computes ConvForward with operands rounded by BF16 and the summation order Blocks over each tap's
// channels. Taps are in order of kernel rows and columns, those outside the image are left out, and a tap's channels
// form blocks of 32. c.In must be at least LeastBlocks.
func (k *Kernels) ConvBlocks(c *Conv, y, x, w, bias []float32, relu bool) {
	y, x, w = y[:c.Outputs()], x[:c.Inputs()], w[:c.Weights()]
	if bias != nil {
		bias = bias[:c.Out]
	}
	need := k.ConvBlocksScratch(c)
	k.rounded, k.filters = resize(k.rounded, need.Rounded), resize(k.filters, need.Filters)
	k.partial = resize(k.partial, need.Sums)
	if k.isa.amxConv == nil {
		k.convByBlocks(c, y, x, w, bias, relu)
		return
	}
	ep := uint64(0)
	if bias != nil {
		ep |= flagBias
	}
	if relu {
		ep |= flagReLU
	}
	words, taps := c.blockWords(), c.Kernel*c.Kernel
	inputs, weights := k.rounded[:words*c.inPlane*Lanes], k.filters[:c.Out*taps*words]
	turned := k.filters[c.Out*taps*words:][:2*taps*words]
	for pair := range words {
		k.joinPair(inputs[pair*c.inPlane*Lanes:][:c.inPlane*Lanes], x, 2*pair, c)
	}
	clear(turned)
	for out := range c.Out {
		k.transpose(turned, 2*words, w[out*c.In*taps:], taps, c.In, taps, c.In)
		k.sweep(len(turned))
		k.vec.dst, k.vec.x[0] = ptr(weights, out*taps*words), ptr(turned, 0)
		k.isa.round16(&k.vec)
	}
	t := &k.amx.conv
	*t = amxConvArgs{config: unsafe.Pointer(&k.amx.config), rowA: 4 * taps * words, tapA: 4 * words, ldb: c.inPlane * row,
		blockB: amxWords * c.inPlane * row,
		ldc:    c.outPlane * row, blocks: (words + amxWords - 1) / amxWords, stepB: c.Stride * row, stepC: row, flags: ep}
	for i := range c.forward {
		r := &c.forward[i]
		t.tab, t.taps = unsafe.Pointer(unsafe.SliceData(r.tab)), len(r.tab)/2/c.In
		for out := 0; out < c.Out; out += amxBlock {
			t.channels, t.pixels, t.doneB, t.doneC = min(amxBlock, c.Out-out), r.pixels, 0, 0
			k.amx.config.set(t.channels)
			k.amx.config.narrow(min(words, amxWords))
			if t.a = ptr(weights, out*taps*words); bias != nil {
				t.bias = ptr(bias, out)
			}
			t.b, t.c = unsafe.Add(ptr(inputs, 0), r.b), unsafe.Add(ptr(y, 0), out*t.ldc+r.c)
			k.isa.amxConv[(t.channels-1)/amxRows](t)
		}
	}
}

// blockWords returns the number of words of two channels per tap, padded to whole blocks if there are several.
func (c *Conv) blockWords() int {
	if c.In <= blockK {
		return (c.In + 1) / 2
	}
	return wholeSteps((c.In + 1) / 2)
}

// joinPair writes channels ch and ch+1 of x as words, the second in the upper halves; missing channels are zero.
func (k *Kernels) joinPair(dst, x []float32, ch int, c *Conv) {
	n := len(dst)
	if ch >= c.In {
		clear(dst)
		return
	}
	k.sweep(n)
	k.vec.dst, k.vec.x[0], k.vec.x[1] = ptr(dst, 0), ptr(x, ch*n), nil
	if ch+1 < c.In {
		k.vec.x[1] = ptr(x, (ch+1)*n)
	}
	k.isa.join16(&k.vec)
	k.vec.x[1] = nil
}

// excess is the padding after a table, see convRun.
var excess [2 * ahead]int32

// convByBlocks computes ConvBlocks with float32 convolutions over every other channel of a block.
func (k *Kernels) convByBlocks(c *Conv, y, x, w, bias []float32, relu bool) {
	rounded := k.rounded[:c.Inputs()+c.Weights()]
	k.roundSwapped(rounded, x) // their number is even
	for i := 0; i < len(x); i += 2 {
		rounded[i], rounded[i+1] = rounded[i+1], rounded[i]
	}
	for i, v := range w {
		rounded[c.Inputs()+i] = BF16(v)
	}
	const run = convPixels * Lanes
	sums := k.partial[:2*c.Out*run]
	j := convJob{stepB: c.Stride * row, stepC: row, b: rounded[:c.Inputs()], channels: c.Out, ldc: 4 * run}
	k.packFilters(&j, c.Weights(), c.forwardWeights(k, rounded[c.Inputs():]))
	for i := range c.forward {
		r := &c.forward[i]
		taps := len(r.tab) / 2 / c.In
		for tap := 0; tap == 0 || tap < taps; tap++ {
			for lo := 0; lo < c.In; lo += blockK {
				for parity := range 2 {
					k.every = k.every[:0]
					for ch := lo + parity; ch < min(lo+blockK, c.In) && taps > 0; ch += 2 {
						k.every = append(k.every, r.tab[2*(ch*taps+tap)], r.tab[2*(ch*taps+tap)+1])
					}
					n := len(k.every)
					k.every = append(k.every, excess[:]...)
					k.part[0] = convRun{tab: k.every[:n], b: r.b, pixels: r.pixels}
					j.runs, j.c = k.part[:], sums[parity*c.Out*run:]
					k.convolve(&j, c.Weights()/c.Out)
				}
				for ch := range c.Out {
					to := y[ch*c.outPlane*Lanes+r.c/4:][:r.pixels*Lanes]
					even, odd := sums[ch*run:][:len(to)], sums[(c.Out+ch)*run:][:len(to)]
					k.Add(even, even, odd)
					if tap == 0 && lo == 0 {
						copy(to, even)
					} else {
						k.Add(to, to, even)
					}
				}
			}
		}
	}
	for ch := range c.Out {
		to := y[ch*c.outPlane*Lanes:][:c.OutH*c.OutW*Lanes]
		if bias != nil {
			for i := range to {
				to[i] += bias[ch]
			}
		}
		if relu {
			k.Relu(to, to)
		}
	}
}

// ConvBlocksScratch returns the scratch memory of ConvBlocks.
func (k *Kernels) ConvBlocksScratch(c *Conv) Scratch {
	if words, taps := c.blockWords(), c.Kernel*c.Kernel; k.isa.amxConv != nil {
		return Scratch{Rounded: words * c.inPlane * Lanes, Filters: (c.Out + 2) * taps * words}
	}
	return Scratch{Rounded: c.Inputs() + c.Weights(), Filters: c.Weights(), Sums: 2 * c.Out * convPixels * Lanes}
}
