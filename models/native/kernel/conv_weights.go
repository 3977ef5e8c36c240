package kernel

import "unsafe"

// dotArgs is the argument of the tiles of dot products; strides are in bytes.
type dotArgs struct {
	a, b, c, list   unsafe.Pointer
	entries         int
	lda, ldb, stepB int
	ldcA, ldcB      int // strides of C for rows of A and of B
	_, _            int // used by the kernel: the entry's offset in C, and its list
	alpha           float32
	_               [4 * 28]float32 // used by the kernel: the sums of a tile, or of each of its quads
}

// dotJob is a part of the weight gradient, for rows of dy. Its list has an entry for each tap: the tap's offset in the
// weights, the number of pixel segments that meet an input, and for each segment the offset in dy, the offset in x and
// the number of pixels. Offsets are in bytes. With taps above one an entry covers that many adjacent taps.
type dotJob struct {
	taps, entries int
	list          []int32
}

// dotPixels limits a job, so that the rows that a tile reads stay in the first-level cache for all taps.
const dotPixels = 16

// fewInputs is the number of input channels below which a tile covers adjacent taps instead of channels.
const fewInputs = 5

// along returns the outputs [lo, hi), of m, that tap k meets on an axis of n inputs.
func (c *Conv) along(k, n, m int) (lo, hi int) {
	at := k - c.Pad // the input that output 0 meets
	if at >= n {
		return 0, 0
	}
	return max(0, (c.Stride-1-at)/c.Stride), min(m, (n-1-at)/c.Stride+1)
}

func (c *Conv) dotJobs() (jobs []dotJob) {
	rows := max(1, dotPixels/c.OutW)
	for y := 0; y < c.OutH; y += rows {
		single, joint := dotJob{taps: 1}, dotJob{taps: c.Kernel}
		add := func(j *dotJob, ky, kx, lo, hi int) { c.addSegments(j, y, y+rows, ky, kx, lo, hi) }
		for ky := range c.Kernel {
			mlo, mhi := 0, 0
			if c.In < fewInputs { // the part common to all taps of the row, then the remaining part of each
				mlo, _ = c.along(0, c.W, c.OutW)
				_, mhi = c.along(c.Kernel-1, c.W, c.OutW)
				add(&joint, ky, 0, mlo, mhi)
			}
			for kx := range c.Kernel {
				lo, hi := c.along(kx, c.W, c.OutW)
				if mlo < mhi {
					add(&single, ky, kx, lo, mlo)
					add(&single, ky, kx, mhi, hi)
				} else {
					add(&single, ky, kx, lo, hi)
				}
			}
		}
		for _, j := range []dotJob{joint, single} {
			if j.entries > 0 {
				jobs = append(jobs, j)
			}
		}
	}
	return jobs
}

// addSegments adds an entry for tap (ky, kx): columns [xlo, xhi) of the result's rows [y0, y1) that meet an input.
func (c *Conv) addSegments(j *dotJob, y0, y1, ky, kx, xlo, xhi int) {
	ylo, yhi := c.along(ky, c.H, c.OutH)
	ylo, yhi = max(y0, ylo), min(y1, yhi)
	if ylo >= yhi || xlo >= xhi {
		return
	}
	j.entries++
	j.list = append(j.list, int32(4*(ky*c.Kernel+kx)), int32(yhi-ylo))
	for y := ylo; y < yhi; y++ {
		in := (y*c.Stride+ky-c.Pad)*c.W + xlo*c.Stride + kx - c.Pad
		j.list = append(j.list, int32(row*(y*c.OutW+xlo)), int32(row*in), int32(xhi-xlo))
	}
}

// ConvWeights adds alpha times the gradient of the weights of outputs [lo, hi) to dw for one block: alpha is 1 to
// accumulate a gradient, minus the rate to take a step of descent, dw being the weights. Lanes without a sample must be
// zero in dy, and finite in x.
func (k *Kernels) ConvWeights(c *Conv, lo, hi int, dw, dy, x []float32, alpha float32) {
	dw, dy, x = dw[:c.Weights()], dy[:c.Outputs()], x[:c.Inputs()]
	if k.isa.dots == nil {
		c.dots(lo, hi, dw, dy, x, alpha)
		return
	}
	kk := c.Kernel * c.Kernel
	k.dot = dotArgs{lda: c.outPlane * row, stepB: c.Stride * row, ldcA: 4 * c.In * kk, alpha: alpha}
	for i := range c.weights {
		j := &c.weights[i]
		if c.In >= fewInputs {
			k.dot.ldb, k.dot.ldcB = c.inPlane*row, 4*kk
			k.dotTiles(j, lo, hi, c.In, dw, dy, x)
			continue
		}
		k.dot.ldb, k.dot.ldcB = row, 4
		for in := range c.In {
			k.dotTiles(j, lo, hi, j.taps, dw[in*kk:], dy, x[in*c.inPlane*Lanes:])
		}
	}
}

// dotTiles runs the tiles of output channels [from, to) by n input channels, or by n adjacent taps.
func (k *Kernels) dotTiles(j *dotJob, from, to, n int, dw, dy, x []float32) {
	t := &k.dot
	t.list = unsafe.Pointer(unsafe.SliceData(j.list))
	for lo, w := 0, 0; lo < n; lo += w {
		w = k.dotWidth(n - lo)
		tiles := k.isa.dots[w]
		t.b = ptr(x, lo*t.ldb/4)
		height, extra := even(to-from, len(tiles)-1)
		for out, h := from, 0; out < to; out += h {
			h = next(height, &extra)
			t.a, t.c, t.entries = ptr(dy, out*t.lda/4), ptr(dw, (out*t.ldcA+lo*t.ldcB)/4), j.entries
			tiles[h](t)
		}
	}
}

// dotWidth returns the number of rows of B of the next tile, of n that remain: the largest for which there are tiles,
// except that no single row remains if two tiles of several rows cover n. A tile of one row loads more than it
// multiplies.
func (k *Kernels) dotWidth(n int) (best int) {
	for w, tiles := range k.isa.dots {
		if rest := n - w; tiles != nil && (rest == 0 || rest > 1 || rest == 1 && best == 0) {
			best = w
		}
	}
	return best
}

// dots is the portable variant of ConvWeights.
func (c *Conv) dots(lo, hi int, dw, dy, x []float32, alpha float32) {
	kk := c.Kernel * c.Kernel
	for _, j := range c.weights {
		for list := j.list; len(list) > 0; {
			place, segs := int(list[0])/4, list[2:2+3*list[1]]
			list = list[2+3*list[1]:]
			for out := lo; out < hi; out++ {
				for in := range c.In {
					for tap := range j.taps {
						var s sixteen
						for i := 0; i < len(segs); i += 3 {
							a, b := out*c.outPlane*Lanes+int(segs[i])/4, (in*c.inPlane+tap)*Lanes+int(segs[i+1])/4
							for p := range int(segs[i+2]) {
								s.add(dy[a+p*Lanes:], x[b+p*c.Stride*Lanes:])
							}
						}
						d := &dw[(out*c.In+in)*kk+place+tap]
						*d = fma(alpha, s.total(), *d)
					}
				}
			}
		}
	}
}

// sixteen holds the sums of a dot product: element e is added to sum e%16, in order.
type sixteen [16]float32

// add adds the products of Lanes elements.
func (s *sixteen) add(a, b []float32) {
	fmaEach(s[:], a, b)
	fmaEach(s[:], a[16:Lanes], b[16:Lanes])
}

// total folds the sums of each quad by halves, then the quads by halves.
func (s *sixteen) total() float32 {
	var quad [4]float32
	for i := range quad {
		quad[i] = (s[4*i] + s[4*i+2]) + (s[4*i+1] + s[4*i+3])
	}
	return (quad[0] + quad[2]) + (quad[1] + quad[3])
}

// fold adds by halves; the length must be a power of two.
func fold(s []float32) float32 {
	for h := len(s) / 2; h > 0; h /= 2 {
		for i := range h {
			s[i] += s[i+h]
		}
	}
	return s[0]
}

// ConvBias adds alpha times the gradient of the bias of outputs [lo, hi), the sum of dy over pixels and samples, to db
// for one block.
func (k *Kernels) ConvBias(c *Conv, lo, hi int, db, dy []float32, alpha float32) {
	db, dy = db[:c.Out], dy[:c.Outputs()]
	for o := lo; o < hi; o++ {
		s := k.lanes[:]
		k.ColSum(s, 0, dy[o*c.outPlane*Lanes:], Lanes, c.OutH*c.OutW, 1)
		db[o] += float32(alpha * fold(s))
	}
}
