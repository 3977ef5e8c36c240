package kernel

// Layer is a row of one sample for layer normalisation (Ba et al. 2016), with its mean and its inverse deviation: xhat
// = (x-Mean)*Inverse. All slices of a call have the length of X.
//
// Sums have sixteen lanes, element i in lane i mod 16, folded by halves. All products are rounded.
type Layer struct {
	X             []float32
	Mean, Inverse float32
}

// LayerSum returns the sum of X.
func (k *Kernels) LayerSum(r *Layer) float32 {
	if k.isa.layerSum == nil {
		return k.lanesOf(r, func(_ int, x float32) float32 { return x })
	}
	return k.layerSums(k.isa.layerSum, r, r.X, r.X)[0]
}

// LayerSquares returns the sum of (x-Mean)^2.
func (k *Kernels) LayerSquares(r *Layer) float32 {
	if k.isa.layerSquares == nil {
		return k.lanesOf(r, func(_ int, x float32) float32 {
			d := x - r.Mean
			return float32(d * d)
		})
	}
	return k.layerSums(k.isa.layerSquares, r, r.X, r.X)[0]
}

// LayerApply writes xhat*scale + shift.
func (k *Kernels) LayerApply(y []float32, r *Layer, scale, shift []float32) {
	n := len(r.X)
	y, scale, shift = y[:n], scale[:n], shift[:n]
	if k.isa.layerApply == nil {
		for i, x := range r.X {
			y[i] = float32(float32((x-r.Mean)*r.Inverse)*scale[i]) + shift[i]
		}
		return
	}
	k.layer(k.isa.layerApply, y, r, scale, shift, 0, 0)
}

// LayerBackSums returns the sums of g and of g*xhat, where g = dy*scale.
func (k *Kernels) LayerBackSums(r *Layer, dy, scale []float32) (sum, product float32) {
	n := len(r.X)
	dy, scale = dy[:n], scale[:n]
	if k.isa.layerBackSums == nil {
		sum = k.lanesOf(r, func(i int, _ float32) float32 { return float32(dy[i] * scale[i]) })
		product = k.lanesOf(r, func(i int, x float32) float32 {
			return float32(float32(dy[i]*scale[i]) * float32((x-r.Mean)*r.Inverse))
		})
		return sum, product
	}
	s := k.layerSums(k.isa.layerBackSums, r, dy, scale)
	return s[0], s[1]
}

// LayerBack writes dx = Inverse*((g - sum) - xhat*product), where sum and product are the means of the sums from
// LayerBackSums. dx may be dy.
func (k *Kernels) LayerBack(dx []float32, r *Layer, dy, scale []float32, sum, product float32) {
	n := len(r.X)
	dx, dy, scale = dx[:n], dy[:n], scale[:n]
	if k.isa.layerBack == nil {
		for i, x := range r.X {
			hat := float32((x - r.Mean) * r.Inverse)
			dx[i] = r.Inverse * ((float32(dy[i]*scale[i]) - sum) - float32(hat*product))
		}
		return
	}
	k.layer(k.isa.layerBack, dx, r, dy, scale, sum, product)
}

// LayerScale adds dy*xhat to the gradient of the scale.
func (k *Kernels) LayerScale(d []float32, r *Layer, dy []float32) {
	n := len(r.X)
	d, dy = d[:n], dy[:n]
	if k.isa.layerScale == nil {
		for i, x := range r.X {
			d[i] += float32(dy[i] * float32((x-r.Mean)*r.Inverse))
		}
		return
	}
	k.layer(k.isa.layerScale, d, r, dy, d, 0, 0)
}

// layer calls a kernel with sources x, a and b and destination dst.
func (k *Kernels) layer(f func(*vecArgs), dst []float32, r *Layer, a, b []float32, sum, product float32) {
	if len(r.X) == 0 {
		return
	}
	k.sweep(len(r.X))
	v := &k.vec
	v.dst, v.x[0], v.x[1], v.x[2] = ptr(dst, 0), ptr(r.X, 0), ptr(a, 0), ptr(b, 0)
	v.c[0], v.c[1], v.c[2], v.c[3] = r.Mean, r.Inverse, sum, product
	f(v)
}

// layerSums calls a kernel that computes one or two sums.
func (k *Kernels) layerSums(f func(*vecArgs), r *Layer, a, b []float32) *[Lanes]float32 {
	n := len(r.X)
	v := &k.vec
	v.n, v.bits, v.lanes = n, bits(n%16), lanes(n%16)
	v.dst, v.x[0], v.x[1], v.x[2] = ptr(k.lanes[:], 0), ptr(r.X, 0), ptr(a, 0), ptr(b, 0)
	v.c[0], v.c[1] = r.Mean, r.Inverse
	f(v)
	return &k.lanes
}

// lanesOf returns the sum of f over the elements, for the portable variant.
func (k *Kernels) lanesOf(r *Layer, f func(i int, x float32) float32) float32 {
	var lane [16]float32
	for i, x := range r.X {
		lane[i%16] += f(i, x)
	}
	for h := 8; h > 0; h /= 2 {
		for i := range h {
			lane[i] += lane[i+h]
		}
	}
	return lane[0]
}
