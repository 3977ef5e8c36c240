package kernel

import "math"

// bfloat16 numbers are the upper halves of float32: eight significant bits. A product of two is exact in float32, so
// that multiply-adds of rounded operands have one result if each step is rounded once. AVX-512 has an instruction that
// does two of them, the second of a pair of operands before the first; other variants do the same steps in float32.
//
// That instruction flushes numbers below 2^-126 to zero, others do not. No such number occurs: an operand below 2^-55
// is rounded to zero, so products are multiples of 2^-124 = (2^-55 * 2^-7)^2, and so are their sums.

// tiny is the bits of 2^-55, notANumber the bits to which the portable variant rounds every NaN.
const (
	tiny       = (127 - 55) << 23
	infinite   = 0xff << 23
	notANumber = 0x7fc0
)

// BF16 returns x as an operand of GemmBF16: its upper half, rounded to nearest with ties to even; zero below 2^-55.
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

// Order is the summation order of a bfloat16 product.
type Order uint8

const (
	// Pairs is one chain of multiply-adds in float32 that takes k in pairs: 1, 0, 3, 2 and so on; with an odd length a
	// zero precedes the last one. AVX-512 has an instruction for it.
	Pairs Order = iota
	// Blocks takes k in blocks of 32, the last padded with zeros. In a block, the even k are one chain of multiply-adds
	// starting at zero, the odd ones another; the second is added to the first, and the result to the sum of the
	// previous blocks. AMX tiles compute this.
	Blocks
)

// Fast returns the order in which this variant multiplies bfloat16 faster than float32; false if there is none.
func (k *Kernels) Fast() (Order, bool) {
	if k.isa.amxPairs != nil {
		return Blocks, true
	}
	return Pairs, k.isa.pairs != nil
}

// blockK is the number of k in a block of Blocks.
const blockK = 32

// GemmBF16 computes C = A B', m x n, of operands rounded by BF16, with the epilogue ep, which may be nil: A is m x kk,
// B n x kk. Each element of C is summed in the given order. The epilogue must not gate or add.
func (k *Kernels) GemmBF16(order Order, m, n, kk int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int,
	ep *Epilogue) {
	if m <= 0 || n <= 0 {
		return
	}
	if ep == nil {
		ep = &Epilogue{}
	}
	if ep.Gate != nil || ep.Add {
		panic("kernel: a product of bfloat16 that is gated or added")
	}
	if ep.Bias != nil {
		_ = ep.Bias[n-1]
	}
	wide := k.stride16(order, kk)
	k.rounded = resize(k.rounded, (m+n)*wide)
	x, y := k.rounded[:m*wide], k.rounded[m*wide:(m+n)*wide]
	k.round16(order, x, wide, matrix(a, m, kk, lda), m, kk, lda)
	k.round16(order, y, wide, matrix(b, n, kk, ldb), n, kk, ldb)
	switch {
	case order == Pairs:
		k.paired = true
		defer func() { k.paired = false }()
		k.Gemm(NT, m, n, wide, x, wide, y, wide, c, ldc, ep)
	case k.isa.amxPairs != nil && kk > 0:
		t := &k.amx.args
		t.flags = 0
		if ep.Bias != nil {
			t.flags |= flagBias
		}
		if ep.ReLU {
			t.flags |= flagReLU
		}
		k.byTiles(k.isa.amxPairs, m, n, wide, x, wide, y, wide, matrix(c, m, n, ldc), ldc, ep.Bias)
	default:
		k.byBlocks(m, n, wide, x, y, c, ldc, ep)
	}
}

// byBlocks computes Blocks with float32 products: rows of wide floats have the even numbers of each block before its
// odd ones.
func (k *Kernels) byBlocks(m, n, wide int, x, y, c []float32, ldc int, ep *Epilogue) {
	const half = blockK / 2
	k.partial = resize(k.partial, m*n)
	sums := k.partial[:m*n]
	c = matrix(c, m, n, ldc)
	for at := 0; at == 0 || at < wide; at += blockK {
		length := min(half, wide)
		even, odd := min(at, len(x)), min(at+half, len(x))
		k.Gemm(NT, m, n, length, x[even:], wide, y[min(at, len(y)):], wide, sums, n, nil)
		k.Gemm(NT, m, n, length, x[odd:], wide, y[min(at+half, len(y)):], wide, sums, n, &Epilogue{Add: true, Alpha: 1})
		for i := range m {
			row, sum := c[i*ldc:][:n], sums[i*n:][:n]
			if at == 0 {
				copy(row, sum)
			} else {
				k.Add(row, row, sum)
			}
			if at+blockK < wide {
				continue
			}
			if ep.Bias != nil {
				k.Add(row, row, ep.Bias[:n])
			}
			if ep.ReLU {
				k.Relu(row, row)
			}
		}
	}
}

// stride16 returns the elements of a rounded row: words of two numbers, or floats in the order of multiplication.
func (k *Kernels) stride16(order Order, kk int) int {
	switch {
	case order == Blocks && k.isa.amxPairs != nil:
		return wholeSteps((kk + 1) / 2)
	case order == Blocks:
		return (kk + blockK - 1) / blockK * blockK
	case k.isa.pairs != nil:
		return (kk + 1) / 2
	}
	return (kk + 1) / 2 * 2
}

// round16 rounds rows of cols numbers.
func (k *Kernels) round16(order Order, dst []float32, wide int, src []float32, rows, cols, ld int) {
	words := order == Pairs && k.isa.pairs != nil || order == Blocks && k.isa.amxPairs != nil
	for i := range rows {
		to, row := dst[i*wide:(i+1)*wide], src[min(i*ld, len(src)):]
		switch {
		case cols == 0:
		case words:
			clear(to[cols/2:]) // the upper half of an odd row's last word, and the padding of a block
			k.sweep(cols)
			k.vec.dst, k.vec.x[0] = ptr(to, 0), ptr(row, 0)
			k.isa.round16(&k.vec)
		case order == Pairs:
			clear(to[cols:])
			k.roundSwapped(to, row[:cols])
		default:
			k.line = resize(k.line, line)
			for lo := 0; lo < cols; lo += line {
				n := min(line, cols-lo)
				clear(k.line[n:min(line, wide-lo)])
				k.roundSwapped(k.line, row[lo:][:n])
				for at := lo; at < lo+n; at += blockK {
					from, out := (*[blockK]float32)(k.line[at-lo:]), (*[blockK]float32)(to[at:])
					for j := range blockK / 2 {
						out[j], out[j+blockK/2] = from[2*j+1], from[2*j]
					}
				}
			}
		}
	}
}

// roundSwapped rounds src to dst and swaps neighbours; with an odd number, the last has a zero before it.
func (k *Kernels) roundSwapped(dst, src []float32) {
	done := 0
	if k.isa.roundFloats != nil && len(src) > 1 {
		done = len(src) &^ 1
		k.sweep(done)
		k.vec.dst, k.vec.x[0] = ptr(dst, 0), ptr(src, 0)
		k.isa.roundFloats(&k.vec)
	}
	for ; done < len(src); done += 2 {
		dst[done+1] = BF16(src[done])
		if dst[done] = 0; done+1 < len(src) {
			dst[done] = BF16(src[done+1])
		}
	}
}
