package kernel

import (
	"math"
	"unsafe"
)

// Norm describes the channels of one block for batch normalisation: channel c has Rows rows of Lanes samples and begins
// at row c*Plane of the given slices. Live is the number of samples in the block. Coefficients have an element for each
// channel.
type Norm struct {
	Channels, Rows, Plane, Live int
	Mean, A, B                  []float32 // of the forward pass: y = A*x + B
	ReLU                        bool      // then max(0, y)
}

// normArgs is the argument of these kernels; plane is in bytes.
type normArgs struct {
	x, dy, out            unsafe.Pointer
	sums                  [2]unsafe.Pointer
	coef                  [6]unsafe.Pointer // mean, a, b, k, c, d
	rows, channels, plane int
	floor                 float32
	bits                  uint64
	lanes                 unsafe.Pointer
}

// liveLanes holds Lanes used words and Lanes unused words: the mask of n samples starts at word Lanes-n.
var liveLanes = func() (w [2 * Lanes]int32) {
	for i := range Lanes {
		w[i] = -1
	}
	return w
}()

// floor returns the lower bound of results.
func (n *Norm) floor() float32 {
	if n.ReLU {
		return 0
	}
	return float32(math.Inf(-1))
}

// normArgs fills the argument of a kernel; a nil slice is not used by it.
func (k *Kernels) normArgs(n *Norm, x, dy, out []float32, sums, more [][Lanes]float32, c [3][]float32) *normArgs {
	a := &k.norm
	address := func(s []float32, need int) unsafe.Pointer {
		if s == nil {
			return unsafe.Pointer(&k.lanes) // not read
		}
		return ptr(s[:need], 0)
	}
	whole := ((n.Channels-1)*n.Plane + n.Rows) * Lanes
	*a = normArgs{x: address(x, whole), dy: address(dy, whole), out: address(out, whole), rows: n.Rows,
		channels: n.Channels, plane: n.Plane * row,
		floor: n.floor(), bits: bits(n.Live), lanes: unsafe.Pointer(&liveLanes[Lanes-n.Live])}
	for i, s := range [...][][Lanes]float32{sums, more} {
		if s != nil {
			a.sums[i] = unsafe.Pointer(unsafe.SliceData(s[:n.Channels]))
		}
	}
	for i, s := range [...][]float32{n.Mean, n.A, n.B, c[0], c[1], c[2]} {
		a.coef[i] = address(s, n.Channels)
	}
	return a
}

// NormSums adds the rows of each channel to its sums, in order; lanes without a sample are left out.
func (k *Kernels) NormSums(n *Norm, sums [][Lanes]float32, x []float32) {
	if k.isa.normSums != nil {
		k.isa.normSums(k.normArgs(n, x, nil, nil, sums, nil, [3][]float32{}))
		return
	}
	n.each(func(c, at int) {
		s := &sums[c]
		for l, v := range x[at:][:n.Live] {
			s[l] += v
		}
	})
}

// NormSquares adds (x-Mean)^2 in the same way.
func (k *Kernels) NormSquares(n *Norm, sums [][Lanes]float32, x []float32) {
	if k.isa.normSquares != nil {
		k.isa.normSquares(k.normArgs(n, x, nil, nil, sums, nil, [3][]float32{}))
		return
	}
	n.each(func(c, at int) {
		s, m := &sums[c], n.Mean[c]
		for l, v := range x[at:][:n.Live] {
			d := v - m
			s[l] += float32(d * d)
		}
	})
}

// NormApply writes A*x + B, or max(0, ...), in all lanes.
func (k *Kernels) NormApply(n *Norm, y, x []float32) {
	if k.isa.normApply != nil {
		k.isa.normApply(k.normArgs(n, x, nil, y, nil, nil, [3][]float32{}))
		return
	}
	floor := n.floor()
	n.each(func(c, at int) {
		a, b, out := n.A[c], n.B[c], y[at:][:Lanes]
		for l, v := range x[at:][:Lanes] {
			v = float32(a*v) + b
			if v < floor {
				v = floor
			}
			out[l] = v
		}
	})
}

// NormBackSums adds g and g*(x-Mean) of all lanes to the sums of each channel. g is dy; with ReLU it is zero unless the
// result was positive.
func (k *Kernels) NormBackSums(n *Norm, sums, products [][Lanes]float32, dy, x []float32) {
	if k.isa.normBackSums != nil {
		k.isa.normBackSums(k.normArgs(n, x, dy, nil, sums, products, [3][]float32{}))
		return
	}
	n.back(&k.lanes, dy, x, func(c, at int, g *[Lanes]float32) {
		s, p, m := &sums[c], &products[c], n.Mean[c]
		for l, v := range x[at:][:Lanes] {
			s[l] += g[l]
			p[l] += float32(g[l] * (v - m))
		}
	})
}

// NormBack writes dx = K*g + C*(x-Mean) + D, from the left, and zero in lanes without a sample. dx may be dy.
func (k *Kernels) NormBack(n *Norm, dx, dy, x, kk, c, d []float32) {
	if k.isa.normBack != nil {
		k.isa.normBack(k.normArgs(n, x, dy, dx, nil, nil, [3][]float32{kk, c, d}))
		return
	}
	n.back(&k.lanes, dy, x, func(ch, at int, g *[Lanes]float32) {
		kc, c, d, m, out := kk[ch], c[ch], d[ch], n.Mean[ch], dx[at:][:Lanes]
		for l, v := range x[at:][:n.Live] {
			out[l] = float32(kc*g[l]) + float32(c*(v-m)) + d
		}
		clear(out[n.Live:])
	})
}

// each calls f with the rows of all channels, for the portable variant; at is the first lane.
func (n *Norm) each(f func(c, at int)) {
	for c := range n.Channels {
		for r := range n.Rows {
			f(c, (c*n.Plane+r)*Lanes)
		}
	}
}

// back calls f with each row and its gradients g, which are zero where the result was not above the floor.
func (n *Norm) back(g *[Lanes]float32, dy, x []float32, f func(c, at int, g *[Lanes]float32)) {
	floor := n.floor()
	n.each(func(c, at int) {
		a, b, in := n.A[c], n.B[c], x[at:][:Lanes]
		for l, d := range dy[at:][:Lanes] {
			g[l] = 0
			if float32(a*in[l])+b > floor {
				g[l] = d
			}
		}
		f(c, at, g)
	})
}
