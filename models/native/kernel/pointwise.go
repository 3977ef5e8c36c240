package kernel

import "unsafe"

// Relu computes dst = max(0, x) element by element; NaN stays NaN. dst may be x.
func (k *Kernels) Relu(dst, x []float32) {
	x = x[:len(dst)]
	if k.isa.relu == nil {
		relu(dst, x)
		return
	}
	k.pointwise(k.isa.relu, dst, x, x)
}

// Gate computes dst = dy where y > 0, else 0: the gradient through y = max(0, x). dst may be dy.
func (k *Kernels) Gate(dst, dy, y []float32) {
	dy, y = dy[:len(dst)], y[:len(dst)]
	if k.isa.gate == nil {
		for i, v := range y {
			if v > 0 {
				dst[i] = dy[i]
			} else {
				dst[i] = 0
			}
		}
		return
	}
	k.pointwise(k.isa.gate, dst, dy, y)
}

// Mul computes dst = a*b. dst may be a or b.
func (k *Kernels) Mul(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	if k.isa.mul == nil {
		for i, v := range a {
			dst[i] = v * b[i]
		}
		return
	}
	k.pointwise(k.isa.mul, dst, a, b)
}

func (k *Kernels) pointwise(f func(*vecArgs), dst, a, b []float32) {
	if len(dst) == 0 {
		return
	}
	k.sweep(len(dst))
	v := &k.vec
	v.dst, v.x[0], v.x[1] = ptr(dst, 0), ptr(a, 0), ptr(b, 0)
	f(v)
}

// relu is the portable twin.
func relu(dst, x []float32) {
	for i, v := range x {
		if v < 0 {
			v = 0
		}
		dst[i] = v
	}
}

// Lookup computes dst[i] = table[src[i]]. Meanwhile it fetches as much of next, unless that is nil, into the nearest
// cache: samples are drawn from all over memory.
func (k *Kernels) Lookup(dst []float32, src []byte, table *[256]float32, next []byte) {
	src = src[:len(dst)]
	if next == nil {
		next = src
	}
	next = next[:len(dst)]
	if k.isa.lookup == nil || len(dst) == 0 {
		for i, b := range src {
			dst[i] = table[b]
		}
		return
	}
	k.sweep(len(dst))
	v := &k.vec
	v.dst, v.x[0], v.x[1] = ptr(dst, 0), unsafe.Pointer(unsafe.SliceData(src)), ptr(table[:], 0)
	v.x[2] = unsafe.Pointer(unsafe.SliceData(next))
	k.isa.lookup(v)
}
