package kernel

import "unsafe"

// convArgs is the argument of a convolution tile; strides are in bytes.
type convArgs struct {
	a, b, c, bias, tab unsafe.Pointer
	gate               unsafe.Pointer // position of c in the gate
	ldc, k, pixels     int
	stepB, stepC       int
	flags              uint64
}

// ConvForward computes y = conv(x, w) + bias for one block, then max(0, y) with relu. y has c.Outputs() elements, x
// c.Inputs(), w c.Weights() and bias c.Out, or it is nil.
func (k *Kernels) ConvForward(c *Conv, y, x, w, bias []float32, relu bool) {
	y, x, w = y[:c.Outputs()], x[:c.Inputs()], w[:c.Weights()]
	if bias != nil {
		bias = bias[:c.Out]
	}
	j := convJob{
		runs:     c.forward,
		stepB:    c.Stride * row,
		stepC:    row,
		b:        x,
		c:        y,
		channels: c.Out,
		ldc:      c.outPlane * row,
		bias:     bias,
		relu:     relu,
	}
	k.packFilters(&j, c.Weights(), c.forwardWeights(k, w))
	k.convolve(&j, c.Weights()/c.Out)
}

// forwardWeights returns a function that packs the weights of ConvForward.
func (c *Conv) forwardWeights(k *Kernels, w []float32) func(dst []float32, lo, h int) {
	return func(dst []float32, lo, h int) {
		n := c.In * c.Kernel * c.Kernel
		k.transpose(dst, h, w[lo*n:], n, h, n, h)
	}
}

// ConvData computes the gradient dx of the input from dy, the gradient of the result, for one block. With a gate of the
// same length as dx, dx is zero unless the gate is positive: the gradient through a ReLU before the convolution.
func (k *Kernels) ConvData(c *Conv, dx, dy, w, gate []float32) {
	dx, dy, w = dx[:c.Inputs()], dy[:c.Outputs()], w[:c.Weights()]
	if gate != nil {
		gate = gate[:c.Inputs()]
	}
	j := convJob{
		runs:     c.data,
		stepB:    row,
		stepC:    c.Stride * row,
		b:        dy,
		c:        dx,
		channels: c.In,
		ldc:      c.inPlane * row,
		gate:     gate,
	}
	k.packFilters(&j, c.Weights(), func(dst []float32, lo, h int) {
		n := c.Kernel * c.Kernel
		for out := range c.Out {
			src := w[(out*c.In+lo)*n:]
			if n == 1 {
				copy(dst[out*h:(out+1)*h], src)
			} else {
				k.transpose(dst[out*n*h:], h, src, n, h, n, h)
			}
		}
	})
	k.convolve(&j, c.Weights()/c.In)
}

// convJob describes a convolution for the tiles.
type convJob struct {
	runs         []convRun
	stepB, stepC int
	b, c         []float32
	channels     int // of c
	ldc          int // bytes from channel to channel of c
	bias, gate   []float32
	relu         bool
}

// packFilters packs the weights tile by tile, with pack(dst, lo, h) for h channels from lo: a row of h for each tap.
func (k *Kernels) packFilters(j *convJob, weights int, pack func(dst []float32, lo, h int)) {
	k.filters = resize(k.filters, weights)
	taps := weights / j.channels
	height, extra := even(j.channels, max(1, len(k.isa.conv)-1))
	for ch, h := 0, 0; ch < j.channels; ch += h {
		h = next(height, &extra)
		pack(k.filters[ch*taps:(ch+h)*taps], ch, h)
	}
}

// convolve runs all tiles of the packed weights, of taps taps per channel, over one cut of a run of pixels after the
// other, so that the run's inputs stay in the cache.
func (k *Kernels) convolve(j *convJob, taps int) {
	height, extra := even(j.channels, max(1, len(k.isa.conv)-1))
	if k.isa.conv == nil {
		convolve(j, k.filters, taps)
		return
	}
	t := &k.conv
	*t = convArgs{ldc: j.ldc, stepB: j.stepB, stepC: j.stepC}
	if j.bias != nil {
		t.flags |= flagBias
	}
	if j.gate != nil {
		t.flags |= flagGate
	}
	if j.relu {
		t.flags |= flagReLU
	}
	b, c, epilogue := ptr(j.b, 0), ptr(j.c, 0), t.flags
	for i := range j.runs {
		r := &j.runs[i]
		n := len(r.tab) / 2
		step := k.cut(j, r)
		for lo := 0; lo == 0 || lo < n; lo += step {
			t.tab, t.k, t.flags = unsafe.Pointer(unsafe.SliceData(r.tab[2*lo:])), min(step, n-lo), 0
			if lo > 0 {
				t.flags = flagLoad
			}
			if lo+step >= n {
				t.flags |= epilogue
			}
			more := extra
			for ch, h := 0, 0; ch < j.channels; ch += h {
				h = next(height, &more)
				t.a = ptr(k.filters, ch*taps)
				if j.bias != nil {
					t.bias = ptr(j.bias, ch)
				}
				for half := 0; half < row; half += 8 * k.isa.vector {
					at := ch*j.ldc + r.c + half
					t.b, t.c, t.pixels = unsafe.Add(b, r.b+half), unsafe.Add(c, at), r.pixels
					if j.gate != nil {
						t.gate = unsafe.Add(ptr(j.gate, 0), at)
					}
					k.convTile(j, t, h)
				}
			}
		}
	}
}

// leastTaps is the number of taps below which a cut is not worth the loads and stores of its sums.
const leastTaps = 48

// cut returns the number of taps of a run that all tiles sum before they continue with the next ones, whole channels of
// the operand: its samples fill the first-level cache at most.
func (k *Kernels) cut(j *convJob, r *convRun) int {
	n := len(r.tab) / 2
	if each := r.rows * r.cols; k.isa.near && each > 0 && j.channels >= len(k.isa.conv) {
		samples := r.rows * (r.cols + (r.pixels-1)*j.stepB/row)
		fit := max(1, k.caches.l1/row/samples)
		if cuts := (n/each + fit - 1) / fit; fit*each >= leastTaps && cuts > 1 {
			return (n/each + cuts - 1) / cuts * each
		}
	}
	return max(1, n)
}

// convTile computes a tile of h channels for the pixels of t. Fours of one channel's pixels have a tile of their own.
func (k *Kernels) convTile(j *convJob, t *convArgs, h int) {
	if fours, rest := t.pixels&^3, t.pixels&3; h == 1 && fours > 0 && k.isa.convRow != nil {
		t.pixels = fours
		k.isa.convRow(t)
		if rest == 0 {
			return
		}
		t.b, t.c, t.pixels = unsafe.Add(t.b, fours*j.stepB), unsafe.Add(t.c, fours*j.stepC), rest
		if j.gate != nil {
			t.gate = unsafe.Add(t.gate, fours*j.stepC)
		}
	}
	k.isa.conv[h](t)
}

// convolve is the portable variant: the same tables, one multiply-add at a time, tiles of one channel.
func convolve(j *convJob, filters []float32, taps int) {
	var sum [Lanes]float32
	for _, r := range j.runs {
		for p := range r.pixels {
			for ch := range j.channels {
				clear(sum[:])
				for q := 0; q < len(r.tab); q += 2 {
					w := filters[ch*taps+int(r.tab[q])]
					fmaRow(sum[:], w, j.b[(r.b+p*j.stepB+int(r.tab[q+1]))/4:])
				}
				at := (ch*j.ldc + r.c + p*j.stepC) / 4
				ep := Epilogue{ReLU: j.relu}
				if j.bias != nil {
					for l := range sum {
						sum[l] += j.bias[ch]
					}
				}
				if j.gate != nil {
					ep.Gate = j.gate[at : at+Lanes]
				}
				finish(j.c[at:at+Lanes], sum[:], 0, 0, &ep, true, true)
			}
		}
	}
}
