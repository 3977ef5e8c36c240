package kernel

// stripBytes bounds what NormMaxPool has at hand at a time, so that it stays in the first-level cache.
const stripBytes = 20 << 10

// stripRows is the rows of windows of a strip.
func (p *Pool) stripRows() int { return min(max(1, stripBytes/(p.Kernel*p.W*row)), p.OutH) }

// Strip is the floats of a strip.
func (p *Pool) Strip() int { return Plane(p.stripRows()*p.Kernel, p.W) * Lanes }

// Tiles says whether each pixel is in one window.
func (p *Pool) Tiles() bool {
	return p.Stride == p.Kernel && p.OutH*p.Kernel == p.H && p.OutW*p.Kernel == p.W
}

// poolStrip is some rows of windows of a channel: the pixels as one channel, their pooling, and where both begin.
type poolStrip struct {
	n       Norm
	p       Pool
	in, out int
}

// strip is that of channel c of n, an image of p, from row top of the windows on.
func (p *Pool) strip(n *Norm, c, top int) poolStrip {
	s := poolStrip{*n, *p, (c*n.Plane + top*p.Kernel*p.W) * Lanes, (c*Plane(p.OutH, p.OutW) + top*p.OutW) * Lanes}
	s.p.Channels, s.p.OutH = 1, min(p.stripRows(), p.OutH-top)
	s.p.H = s.p.OutH * p.Kernel
	s.n.Channels, s.n.Rows, s.n.Mean, s.n.A, s.n.B = 1, s.p.H*p.W, n.Mean[c:], n.A[c:], n.B[c:]
	return s
}

// NormMaxPool is NormApply and then MaxPool, whose windows tile the image. What lies between has room in scratch, of
// p.Strip floats. Channels are those of n.
func (k *Kernels) NormMaxPool(n *Norm, p *Pool, y, x, scratch []float32) {
	for c := range n.Channels {
		for top := 0; top < p.OutH; top += p.stripRows() {
			s := p.strip(n, c, top)
			k.NormApply(&s.n, scratch, x[s.in:])
			k.MaxPool(&s.p, y[s.out:], scratch)
		}
	}
}

// NormMaxPoolBack is MaxPoolBack of what NormApply gives: NormBackSums and NormBack take the gradient dx on.
func (k *Kernels) NormMaxPoolBack(n *Norm, p *Pool, dx, dy, y, x []float32) {
	for c := range n.Channels {
		for top := 0; top < p.OutH; top += p.stripRows() {
			s := p.strip(n, c, top)
			k.NormApply(&s.n, dx[s.in:], x[s.in:])
			k.MaxPoolBack(&s.p, dx[s.in:], dy[s.out:], y[s.out:], dx[s.in:]) // each value is read before it is written
		}
	}
}
