package engine

import (
	"encoding/binary"
	"math"
)

// Code is how the values of an all-reduce are written. A short one rounds every leaf, every partial sum and the result
// to values that it can write, whoever hosts what: the bits of a run depend on the code, and on the placement as little
// as ever.
type Code uint8

const (
	Float32 Code = iota // 4 bytes a value, exact
	BF16                // 2 bytes: the upper half of a float32, to nearest, ties to even
	// 65/64 bytes and more: blocks of 64 values q*2^e, |q| <= 127, e the smallest that reaches the largest
	Int8
)

// CodeBlock is the number of values that share an exponent in Int8.
const CodeBlock = 64

// Size is the bytes of n values.
func (c Code) Size(n int) int {
	switch c {
	case BF16:
		return 2 * n
	case Int8:
		return n + 2*((n+CodeBlock-1)/CodeBlock)
	}
	return 4 * n
}

// Cut is the k-th of w slices of m columns that a reduction deals out: blocks are not divided.
func (c Code) Cut(m, k, w int) (lo, hi int) {
	if c != Int8 {
		return Cut(m, k, w)
	}
	lo, hi = Cut((m+CodeBlock-1)/CodeBlock, k, w)
	return min(m, lo*CodeBlock), min(m, hi*CodeBlock)
}

// Round replaces values by those that can be written. v begins at a block.
func (c Code) Round(v []float32) {
	switch c {
	case BF16:
		for i, x := range v {
			v[i] = math.Float32frombits(uint32(toBF16(x)) << 16)
		}
	case Int8:
		for lo := 0; lo < len(v); lo += CodeBlock {
			block := v[lo:min(lo+CodeBlock, len(v))]
			up, down := powers(exponent(block))
			for i, x := range block {
				block[i] = float32(float64(quantum(x, down)) * up)
			}
		}
	}
}

func toBF16(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16) | 0x40 // quiet, and never an infinity
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// Exponents of blocks that hold no numbers, and the least of a block.
const (
	notFinite = math.MaxInt16
	leastExp  = -149 // of the smallest float32
)

// exponent is the smallest e with all |x| <= 127*2^e. Values that were rounded with an exponent are written without a
// loss: a power of two divides exactly.
func exponent(block []float32) int {
	top := 0.0
	for _, x := range block {
		a := math.Abs(float64(x))
		if !(a <= 127*0x1p121) { // nor what lies beyond the largest value of any block
			return notFinite
		}
		top = max(top, a)
	}
	if top == 0 {
		return leastExp
	}
	frac, e := math.Frexp(top) // top = frac*2^e, frac in [0.5, 1)
	if e -= 7; frac > 127.0/128 {
		e++
	}
	return max(e, leastExp)
}

// powers are 2^e and 2^-e, by which a float64 is multiplied exactly: NaN and 0 of a block that is not finite.
func powers(e int) (up, down float64) {
	if e == notFinite {
		return math.NaN(), 0
	}
	return math.Ldexp(1, e), math.Ldexp(1, -e)
}

func quantum(x float32, down float64) int8 {
	if down == 0 {
		return 0
	}
	return int8(math.RoundToEven(float64(x) * down))
}

// Append writes rounded values.
func (c Code) Append(p []byte, v []float32) []byte {
	switch c {
	case BF16:
		for _, x := range v {
			p = binary.LittleEndian.AppendUint16(p, uint16(math.Float32bits(x)>>16))
		}
		return p
	case Int8:
		for lo := 0; lo < len(v); lo += CodeBlock {
			block := v[lo:min(lo+CodeBlock, len(v))]
			e := exponent(block)
			_, down := powers(e)
			p = binary.LittleEndian.AppendUint16(p, uint16(int16(e)))
			for _, x := range block {
				p = append(p, byte(quantum(x, down)))
			}
		}
		return p
	}
	return AppendFloats(p, v)
}

// Read reads c.Size(len(dst)) bytes of p. Whatever they are, it gives numbers or NaN.
func (c Code) Read(dst []float32, p []byte) {
	switch c {
	case BF16:
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(p[2*i:])) << 16)
		}
	case Int8:
		for lo := 0; lo < len(dst); lo += CodeBlock {
			block := dst[lo:min(lo+CodeBlock, len(dst))]
			up, _ := powers(int(int16(binary.LittleEndian.Uint16(p))))
			for i := range block {
				block[i] = float32(float64(int8(p[2+i])) * up)
			}
			p = p[2+len(block):]
		}
	default:
		ReadFloats(dst, p)
	}
}

// Cut is the k-th of w even slices of m columns. m need not divide by w.
func Cut(m, k, w int) (lo, hi int) { return m * k / w, m * (k + 1) / w }
