package kernel

import "unsafe"

// Settling converts the sums of a layer of a whole-number model: X holds Rows x Cols of them, and so does Y if Sign is
// not 0, row by row and contiguous. Each becomes
//
//	((X + Sign*Y + 2^(Shift-1)) >> Shift) + Bias,
//
// with an arithmetic shift, and is then limited to a range. Nothing may overflow int32. Shift must be at least 1.
type Settling struct {
	X, Y       []int32
	Sign       int32
	Bias       []int32 // one per column
	Shift      int
	Rows, Cols int
}

// settleArgs is vecArgs for integers: x holds the addresses of the sums, of Y and of the biases.
type settleArgs struct {
	vecArgs
	sign, half, shift, lo, hi int32
	words                     uint32 // AVX-512: bytes of the last, partial vector in whole words, one bit each
}

// Settle writes the values of s, limited to [0, 255], in rows padded with zeros to whole words of four bytes.
func (k *Kernels) Settle(dst []uint8, s *Settling) {
	ld := (s.Cols + 3) / 4 * 4
	settle(k, k.isa.settle, dst[:s.Rows*ld], ld, ld, s, 0, 255)
}

// SettleWide writes the values of s, limited to [-most, most], in contiguous rows.
func (k *Kernels) SettleWide(dst []int32, s *Settling, most int32) {
	settle(k, k.isa.settleWide, dst[:s.Rows*s.Cols], s.Cols, 4*s.Cols, s, -most, most)
}

// settle runs the kernel f, if there is one; some variants process whole vectors only. The portable variant does the
// rest.
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
		a.x = [4]unsafe.Pointer{unsafe.Pointer(unsafe.SliceData(x)), unsafe.Pointer(unsafe.SliceData(y)),
			unsafe.Pointer(unsafe.SliceData(bias))}
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
