package kernel

import (
	"math"
	"unsafe"
)

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

// relu is the portable variant.
func relu(dst, x []float32) {
	for i, v := range x {
		if v < 0 {
			v = 0
		}
		dst[i] = v
	}
}

// ByteTable is a function of bytes: its values, and their bytes, the lowest bytes of all values first.
type ByteTable struct {
	values [256]float32
	bytes  [4][256]byte
}

// ByteTableBytes is the memory of a ByteTable.
const ByteTableBytes = int64(unsafe.Sizeof(ByteTable{}))

// NewByteTable returns the table of 256 values.
func NewByteTable(values [256]float32) *ByteTable {
	t := &ByteTable{values: values}
	for i, v := range values {
		for b := range t.bytes {
			t.bytes[b][i] = byte(math.Float32bits(v) >> (8 * b))
		}
	}
	return t
}

// Lookup writes the values of t at src to dst. Variants with a kernel for it also prefetch as many bytes of next,
// unless nil, into the nearest cache: samples are scattered in memory.
func (k *Kernels) Lookup(dst []float32, src []byte, t *ByteTable, next []byte) {
	n, from := len(dst), 0
	src = src[:n]
	if next == nil {
		next = src
	}
	next = next[:n]
	look := func(f func(*vecArgs), table unsafe.Pointer, to int) {
		k.sweep(to - from)
		v := &k.vec
		v.dst, v.x[0], v.x[1], v.x[2] = ptr(dst, from), unsafe.Pointer(&src[from]), table, unsafe.Pointer(&next[from])
		f(v)
		from = to
	}
	if k.isa.lookupBytes != nil && n >= lookupStep {
		look(k.isa.lookupBytes, unsafe.Pointer(&t.bytes), n-n%lookupStep)
	}
	if k.isa.lookup != nil && from < n {
		look(k.isa.lookup, unsafe.Pointer(&t.values), n)
	}
	for i := from; i < n; i++ {
		dst[i] = t.values[src[i]]
	}
}

// lookupStep is the number of bytes that the kernel lookupBytes takes at a time.
const lookupStep = 64
