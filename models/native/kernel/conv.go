package kernel

import (
	"fmt"
	"math"
)

// ConvShape is a square convolution of In channels of H x W pixels to Out channels. Weights are
// [Out][In][Kernel][Kernel], as PyTorch stores them.
type ConvShape struct{ In, H, W, Out, Kernel, Stride, Pad int }

// Conv is a convolution with its tables. It is immutable, safe for concurrent use, and independent of the variant.
type Conv struct {
	ConvShape
	OutH, OutW        int
	inPlane, outPlane int // rows per channel
	forward, data     []convRun
	weights           []dotJob
}

// convRun is a run of result pixels that have the same taps. tab contains pairs: the row of the packed weights and the
// offset in bytes of the operand's samples. ahead extra pairs follow, for the next pixel, for prefetching its
// samples.
type convRun struct {
	tab        []int32
	b, c       int // offsets of the first pixel
	pixels     int
	rows, cols int // taps of a channel, if its taps are adjacent in tab
}

// row is the size in bytes of one pixel's samples.
const row = 4 * Lanes

// ahead equals the constant in gen.
const ahead = 16

// convPixels limits a run, so that its inputs stay in the second-level cache for all tiles of channels.
const convPixels = 8

// NewConv compiles the tables. It fails for a shape without output, or too large for 32-bit offsets.
func NewConv(s ConvShape) (*Conv, error) {
	if s.In < 1 || s.H < 1 || s.W < 1 || s.Out < 1 || s.Kernel < 1 || s.Stride < 1 || s.Pad < 0 ||
		s.Kernel > min(s.H, s.W)+2*s.Pad {
		return nil, fmt.Errorf("convolution %+v: sizes must be positive and the kernel fit the padded image", s)
	}
	c := &Conv{ConvShape: s, OutH: (s.H+2*s.Pad-s.Kernel)/s.Stride + 1, OutW: (s.W+2*s.Pad-s.Kernel)/s.Stride + 1}
	c.inPlane, c.outPlane = Plane(s.H, s.W), Plane(c.OutH, c.OutW)
	if max(s.In*c.inPlane, s.Out*c.outPlane) > math.MaxInt32/row || s.In*s.Out*s.Kernel*s.Kernel > math.MaxInt32/4 {
		return nil, fmt.Errorf("convolution %+v: too large for 32-bit offsets; use fewer channels or smaller images", s)
	}
	c.forward, c.data = c.forwardRuns(), c.dataRuns()
	c.weights = c.dotJobs()
	return c, nil
}

// Inputs, Outputs and Weights return the number of floats of one block of the input and of the result, and of the
// weights.
func (c *Conv) Inputs() int  { return c.In * c.inPlane * Lanes }
func (c *Conv) Outputs() int { return c.Out * c.outPlane * Lanes }
func (c *Conv) Weights() int { return c.Out * c.In * c.Kernel * c.Kernel }

// Products returns the number of pairs of an output pixel and a tap inside the image, for one input and one output
// channel.
func (c *Conv) Products() int {
	axis := func(n, m int) (sum int) {
		for o := range m {
			sum += c.reads(o, n).n
		}
		return sum
	}
	return axis(c.H, c.OutH) * axis(c.W, c.OutW)
}

// taps are n taps from first on; place is the operand coordinate of the first one.
type taps struct{ first, n, place int }

// reads returns the taps of output coordinate o along an axis of n inputs.
func (c *Conv) reads(o, n int) taps {
	at := o*c.Stride - c.Pad
	lo, hi := max(0, -at), min(c.Kernel, n-at)
	return taps{lo, max(0, hi-lo), at + lo}
}

// feeds returns the taps through which input coordinate i affects n outputs; ascending taps belong to descending
// outputs.
func (c *Conv) feeds(i, n int) taps {
	var t taps
	for k := c.Kernel - 1; k >= 0; k-- {
		if o := i + c.Pad - k; o >= 0 && o%c.Stride == 0 && o/c.Stride < n {
			t.first, t.place = k, o/c.Stride
			t.n++
		}
	}
	return t
}

// forwardRuns returns the runs of the forward pass: all pixels with the same taps share a table.
func (c *Conv) forwardRuns() []convRun {
	b := runBuilder{stepB: c.Stride * row, stepC: row, tables: map[[2]taps][]int32{}}
	for y := range c.OutH {
		ty := c.reads(y, c.H)
		for x := range c.OutW {
			tx := c.reads(x, c.W)
			b.pixel(ty, tx, (ty.place*c.W+tx.place)*row, (y*c.OutW+x)*row, c.In, func(in, i, j int) (int, int) {
				return c.tap(in, ty.first+i, tx.first+j), in*c.inPlane + i*c.W + j
			})
		}
		b.end()
	}
	return b.runs
}

// dataRuns returns the runs of the input gradient: input pixels whose coordinates have the same remainder modulo the
// stride share a table.
func (c *Conv) dataRuns() []convRun {
	b := runBuilder{stepB: row, stepC: c.Stride * row, tables: map[[2]taps][]int32{}}
	for y := range c.H {
		ty := c.feeds(y, c.OutH)
		for r := range min(c.Stride, c.W) {
			for x := r; x < c.W; x += c.Stride {
				tx := c.feeds(x, c.OutW)
				b.pixel(ty, tx, (ty.place*c.OutW+tx.place)*row, (y*c.W+x)*row, c.Out, func(out, i, j int) (int, int) {
					return c.tap(out, ty.first+i*c.Stride, tx.first+j*c.Stride), out*c.outPlane - i*c.OutW - j
				})
			}
			b.end()
		}
	}
	return b.runs
}

// tap returns the row of a tap in the packed weights.
func (c *Conv) tap(channel, ky, kx int) int { return (channel*c.Kernel+ky)*c.Kernel + kx }

// runBuilder joins pixels into runs.
type runBuilder struct {
	stepB, stepC int // bytes between pixels of a run
	tables       map[[2]taps][]int32
	runs         []convRun
	open         [2]taps // taps of the current run, while it may grow
	growing      bool
}

// pixel adds one pixel whose operand begins at b and whose result begins at c; entry returns the row of the weights and
// the pixel of the operand for tap (i, j) of a channel.
func (r *runBuilder) pixel(ty, tx taps, b, c, channels int, entry func(channel, i, j int) (int, int)) {
	ty.place, tx.place = 0, 0
	class := [2]taps{ty, tx}
	if r.growing && r.open == class {
		if l := &r.runs[len(r.runs)-1]; l.pixels < convPixels && l.b+l.pixels*r.stepB == b {
			l.pixels++
			return
		}
	}
	tab, ok := r.tables[class]
	if !ok {
		for ch := range channels {
			for i := range ty.n {
				for j := range tx.n {
					weight, pixel := entry(ch, i, j)
					tab = append(tab, int32(weight), int32(row*pixel))
				}
			}
		}
		n := len(tab)
		for i := 0; n > 0 && i < 2*ahead; i += 2 {
			tab = append(tab, tab[i], tab[i+1]+int32(r.stepB))
		}
		tab = tab[:n]
		r.tables[class] = tab
	}
	if len(tab) == 0 {
		b = 0 // nothing is read, and b may be out of range
	}
	r.runs = append(r.runs, convRun{tab: tab, b: b, c: c, pixels: 1, rows: ty.n, cols: tx.n})
	r.open, r.growing = class, true
}

func (r *runBuilder) end() { r.growing = false }
