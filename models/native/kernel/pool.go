package kernel

import (
	"fmt"
	"math"
	"unsafe"
)

// PoolShape is pooling of Channels images of H x W with square windows, without padding. Partial windows at the right
// and the bottom are dropped.
type PoolShape struct{ Channels, H, W, Kernel, Stride int }

// Pool is a pooling with its table. It is immutable, safe for concurrent use, and independent of the variant.
type Pool struct {
	PoolShape
	OutH, OutW int
	tab        []int32 // offsets of a window's taps, in bytes
}

// poolArgs is the argument of the pooling kernels; steps are in bytes.
type poolArgs struct {
	x, y, dx, dy, tab unsafe.Pointer
	taps, cols, rows  int
	stepX             int // distance between windows
	nextX             int // from the end of a row of windows to the next
	scale             float32
	a, b, floor       float32 // of a preceding normalisation
	normed            uint64  // not 0: a normalisation precedes
}

// NewPool compiles the table. It fails for a shape without output, or too large for 32-bit offsets.
func NewPool(s PoolShape) (*Pool, error) {
	if s.Channels < 1 || s.H < 1 || s.W < 1 || s.Kernel < 1 || s.Stride < 1 || s.Kernel > min(s.H, s.W) {
		return nil, fmt.Errorf("pooling %+v: sizes must be positive and the window fit the image", s)
	}
	if Plane(s.H, s.W) > math.MaxInt32/row {
		return nil, fmt.Errorf("pooling %+v: too large for 32-bit offsets; use smaller images", s)
	}
	p := &Pool{PoolShape: s, OutH: (s.H-s.Kernel)/s.Stride + 1, OutW: (s.W-s.Kernel)/s.Stride + 1}
	for i := range s.Kernel {
		for j := range s.Kernel {
			p.tab = append(p.tab, int32(row*(i*s.W+j)))
		}
	}
	return p, nil
}

// Inputs and Outputs return the number of floats of one block.
func (p *Pool) Inputs() int  { return p.Channels * Plane(p.H, p.W) * Lanes }
func (p *Pool) Outputs() int { return p.Channels * Plane(p.OutH, p.OutW) * Lanes }

// Tiles reports whether each pixel belongs to exactly one window.
func (p *Pool) Tiles() bool {
	return p.Stride == p.Kernel && p.OutH*p.Kernel == p.H && p.OutW*p.Kernel == p.W
}

// MaxPool writes the maximum of each window of x to y. NaN counts as the maximum only if it is the window's last
// element.
func (k *Kernels) MaxPool(p *Pool, y, x []float32) {
	k.poolWith(k.isa.maxPool, maxPool, p, nil, y, x, nil, nil)
}

// MaxPoolBack writes the gradient dx of the input: dy goes to the first tap that equals the maximum y.
func (k *Kernels) MaxPoolBack(p *Pool, dx, dy, y, x []float32) {
	disjoint := p.Stride >= p.Kernel // windows do not overlap
	if !disjoint || !p.Tiles() {
		clear(dx[:p.Inputs()])
	}
	if disjoint {
		k.poolWith(k.isa.maxPoolSet, maxPoolSet, p, nil, y, x, dy, dx)
	} else {
		k.poolWith(k.isa.maxPoolBack, maxPoolBack, p, nil, y, x, dy, dx)
	}
}

// NormMaxPool computes NormApply followed by MaxPool for the channels of n, without storing the intermediate result.
// The windows must tile the image.
func (k *Kernels) NormMaxPool(n *Norm, p *Pool, y, x []float32) {
	k.poolWith(k.isa.maxPool, maxPool, p, n, y, x, nil, nil)
}

// NormMaxPoolBack computes MaxPoolBack for the result of NormApply; NormBackSums and NormBack take its dx.
func (k *Kernels) NormMaxPoolBack(n *Norm, p *Pool, dx, dy, y, x []float32) {
	k.poolWith(k.isa.maxPoolSet, maxPoolSet, p, n, y, x, dy, dx)
}

// MeanPool writes the mean of each window of x to y; with a window as large as the image it is global.
func (k *Kernels) MeanPool(p *Pool, y, x []float32) {
	k.poolWith(k.isa.meanPool, meanPool, p, nil, y, x, nil, nil)
}

// MeanPoolBack writes the gradient dx of the input.
func (k *Kernels) MeanPoolBack(p *Pool, dx, dy []float32) {
	clear(dx[:p.Inputs()])
	k.poolWith(k.isa.meanPoolBack, meanPoolBack, p, nil, nil, nil, dy, dx)
}

// poolWith runs a kernel on all channels, or on the channels of n if a normalisation precedes.
func (k *Kernels) poolWith(kernel func(*poolArgs), portable func(*window), p *Pool, n *Norm, y, x, dy, dx []float32) {
	channels, in, out := p.Channels, Plane(p.H, p.W)*Lanes, Plane(p.OutH, p.OutW)*Lanes // floats per channel
	if n != nil {
		channels = n.Channels
	}
	a := poolArgs{tab: unsafe.Pointer(&p.tab[0]), taps: len(p.tab), cols: p.OutW, rows: p.OutH, stepX: p.Stride * row,
		nextX: p.Stride * (p.W - p.OutW) * row,
		scale: 1 / float32(p.Kernel*p.Kernel)}
	for c := range channels {
		if n != nil {
			a.a, a.b, a.floor, a.normed = n.A[c], n.B[c], n.floor(), 1
		}
		at := func(s []float32, plane, pixels int) unsafe.Pointer {
			if s == nil {
				return unsafe.Pointer(&k.lanes) // not read
			}
			return ptr(s[:c*plane+pixels*Lanes], c*plane)
		}
		a.x, a.dx, a.y, a.dy = at(x, in, p.H*p.W), at(dx, in, p.H*p.W), at(y, out, p.OutH*p.OutW), at(dy, out, p.OutH*p.OutW)
		if kernel == nil {
			k.windows(portable, p, &a, c, y, x, dy, dx)
			continue
		}
		k.pool = a
		kernel(&k.pool)
	}
}

// window is one window of the portable variant: y and dy are one pixel's samples, x and dx begin at the window's first
// tap.
type window struct {
	y, x, dy, dx []float32
	tab          []int32
	scale        float32
	a, b, floor  float32 // of a preceding normalisation
	normed       bool
}

// windows is the portable variant's loop over channel c.
func (k *Kernels) windows(f func(*window), p *Pool, a *poolArgs, c int, y, x, dy, dx []float32) {
	from := func(s []float32, i int) []float32 {
		if s == nil {
			return nil
		}
		return s[i*Lanes:]
	}
	w := &k.window
	*w = window{tab: p.tab, scale: a.scale, a: a.a, b: a.b, floor: a.floor, normed: a.normed > 0}
	for i := range p.OutH {
		for j := range p.OutW {
			out, in := c*Plane(p.OutH, p.OutW)+i*p.OutW+j, c*Plane(p.H, p.W)+i*p.Stride*p.W+j*p.Stride
			w.y, w.dy, w.x, w.dx = from(y, out), from(dy, out), from(x, in), from(dx, in)
			f(w)
		}
	}
}

// value returns the value of input i, normalised if a normalisation precedes.
func (w *window) value(i int) float32 {
	if v := w.x[i]; !w.normed {
		return v
	} else if v = float32(w.a*v) + w.b; v < w.floor {
		return w.floor
	} else {
		return v
	}
}

func maxPool(w *window) {
	for l := range Lanes {
		m := w.value(l)
		for _, t := range w.tab {
			if v := w.value(int(t)/4 + l); !(m > v) {
				m = v
			}
		}
		w.y[l] = m
	}
}

func maxPoolBack(w *window) {
	for l := range Lanes {
		g := w.dy[l]
		for _, t := range w.tab {
			i, won := int(t)/4+l, float32(0)
			if w.value(i) == w.y[l] {
				won, g = g, 0
			}
			w.dx[i] += won
		}
	}
}

func maxPoolSet(w *window) {
	for l := range Lanes {
		g := w.dy[l]
		for _, t := range w.tab {
			i, won := int(t)/4+l, float32(0)
			if w.value(i) == w.y[l] {
				won, g = g, 0
			}
			w.dx[i] = won
		}
	}
}

func meanPool(w *window) {
	for l := range Lanes {
		var s float32
		for _, t := range w.tab {
			s += w.x[int(t)/4+l]
		}
		w.y[l] = s * w.scale
	}
}

func meanPoolBack(w *window) {
	for l := range Lanes {
		g := float32(w.dy[l] * w.scale)
		for _, t := range w.tab {
			w.dx[int(t)/4+l] += g
		}
	}
}
