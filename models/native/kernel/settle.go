package kernel

import "unsafe"

// Settling says what becomes of the sums of a layer of whole numbers: Rows x Cols of them lie in X, and in Y where Sign
// is not 0, row by row without a gap. Each becomes
//
//	((X + Sign*Y + 2^(Shift-1)) >> Shift) + Bias,
//
// shifted with the sign, and then held to bounds. Nothing may overflow an int32. Shift is at least 1.
type Settling struct {
	X, Y       []int32
	Sign       int32
	Bias       []int32 // one a column
	Shift      int
	Rows, Cols int
}

// settleArgs is vecArgs with whole numbers: x are the sums, those of Y and the biases.
type settleArgs struct {
	vecArgs
	sign, half, shift, lo, hi int32
	words                     uint32 // AVX-512: bytes of the last, partial vector in whole words, one bit each
}

// Settle writes the values of s, held to [0, 255], in rows of whole words of four bytes; behind a row's columns are
// zeros.
func (k *Kernels) Settle(dst []uint8, s *Settling) {
	ld := (s.Cols + 3) / 4 * 4
	settle(k, k.isa.settle, dst[:s.Rows*ld], ld, ld, s, 0, 255)
}

// SettleWide writes the values of s, held to [-most, most], in rows without a gap.
func (k *Kernels) SettleWide(dst []int32, s *Settling, most int32) {
	settle(k, k.isa.settleWide, dst[:s.Rows*s.Cols], s.Cols, 4*s.Cols, s, -most, most)
}

// settle runs f, if there is one: on whole vectors alone where a variant has no others. The portable variant does the rest.
func settle[T uint8 | int32](k *Kernels, f func(*settleArgs), dst []T, ld, bytes int, s *Settling, lo, hi int32) {
	n, y, from := s.Rows*s.Cols, s.Y, 0
	if s.Sign == 0 {
		y = s.X
	}
	x, y, bias, half := s.X[:n], y[:n], s.Bias[:s.Cols], int32(1)<<(s.Shift-1)
	if f != nil {
		if from = s.Cols; k.isa.whole {
			from -= s.Cols % k.isa.vector
		}
	}
	if from > 0 && n > 0 {
		k.sweep(s.Cols)
		a := &k.settling
		a.vecArgs = k.vec
		a.dst, a.rows, a.ld = unsafe.Pointer(unsafe.SliceData(dst)), s.Rows, bytes
		a.x = [4]unsafe.Pointer{unsafe.Pointer(unsafe.SliceData(x)), unsafe.Pointer(unsafe.SliceData(y)), unsafe.Pointer(unsafe.SliceData(bias))}
		a.sign, a.half, a.shift, a.lo, a.hi = s.Sign, half, int32(s.Shift), lo, hi
		a.words = uint32(bits((s.Cols%k.isa.vector + 3) / 4 * 4))
		f(a)
	}
	for i := 0; i < s.Rows && from < s.Cols; i++ {
		x, y, row := x[i*s.Cols:][:s.Cols], y[i*s.Cols:][:s.Cols], dst[i*ld:][:ld]
		for j := from; j < s.Cols; j++ {
			row[j] = T(min(max((x[j]+s.Sign*y[j]+half)>>s.Shift+bias[j], lo), hi))
		}
		clear(row[s.Cols:])
	}
}
