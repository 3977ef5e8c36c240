package kernel

import "math"

// Numbers of bfloat16 are the upper halves of float32: eight significant bits. A product of two is exact in float32, so
// that multiply-adds of rounded operands have one result wherever each step is rounded once. AVX-512 has an instruction
// that does two of them, the second of a pair of operands before the first; other twins do the same steps by float32.
//
// That instruction takes numbers below 2^-126 for zero, which others do not. None ever comes about: an operand below
// 2^-55 is rounded to zero, so that products are whole multiples of 2^-124 = (2^-55 * 2^-7)^2, and so are their sums.

// tiny is the bits of 2^-55, notANumber those of what any NaN is rounded to.
const (
	tiny       = (127 - 55) << 23
	infinite   = 0xff << 23
	notANumber = 0x7fc0
)

// BF16 is x as an operand of GemmBF16: its upper half, to the nearest with ties to even; below 2^-55 it is zero.
func BF16(x float32) float32 { return math.Float32frombits(uint32(upper(x)) << 16) }

func upper(x float32) uint16 {
	bits := math.Float32bits(x)
	switch size := bits &^ (1 << 31); {
	case size < tiny:
		return 0
	case size > infinite:
		return notANumber
	}
	return uint16((bits + 1<<15 - 1 + bits>>16&1) >> 16)
}

// GemmBF16 computes C = A B', m x n, with the epilogue ep, which may be nil, of operands that are rounded by BF16: A is
// m x kk, B n x kk. Each element of C is one chain of multiply-adds in float32 that takes k in pairs, 1, 0, 3, 2 and so
// on; where kk is odd the last k has a zero before it. The epilogue neither gates nor adds.
func (k *Kernels) GemmBF16(m, n, kk int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, ep *Epilogue) {
	if m <= 0 || n <= 0 {
		return
	}
	if ep != nil && (ep.Gate != nil || ep.Add) {
		panic("kernel: a product of bfloat16 that is gated or added")
	}
	wide := k.stride16(kk)
	if need := (m + n) * wide; len(k.rounded) < need {
		k.rounded = aligned(need)
	}
	x, y := k.rounded[:m*wide], k.rounded[m*wide:(m+n)*wide]
	k.round16(x, wide, matrix(a, m, kk, lda), m, kk, lda)
	k.round16(y, wide, matrix(b, n, kk, ldb), n, kk, ldb)
	k.paired = true
	defer func() { k.paired = false }()
	k.Gemm(NT, m, n, wide, x, wide, y, wide, c, ldc, ep)
}

// stride16 is the elements of a rounded row: words of two numbers, or floats in the order in which they are multiplied.
func (k *Kernels) stride16(kk int) int {
	if k.isa.pairs != nil {
		return (kk + 1) / 2
	}
	return (kk + 1) / 2 * 2
}

// round16 rounds rows of cols numbers.
func (k *Kernels) round16(dst []float32, wide int, src []float32, rows, cols, ld int) {
	for i := range rows {
		to, row := dst[i*wide:(i+1)*wide], src[min(i*ld, len(src)):]
		switch {
		case cols == 0:
		case k.isa.pairs != nil:
			to[wide-1] = 0 // the upper half of an odd row's last word
			k.sweep(cols)
			k.vec.dst, k.vec.x[0] = ptr(to, 0), ptr(row, 0)
			k.isa.round16(&k.vec)
		default:
			for j := range to {
				to[j] = 0
				if at := j ^ 1; at < cols {
					to[j] = BF16(row[at])
				}
			}
		}
	}
}
