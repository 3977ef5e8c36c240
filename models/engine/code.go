package engine

import (
	"encoding/binary"
	"math"
)

// Code is the encoding of the values of an all-reduce. A short encoding rounds every source, every partial sum and the
// result to representable values, even where they are not sent. The bits of a run therefore depend on the encoding but
// not on the placement of members.
type Code uint8

const (
	Float32 Code = iota // 4 bytes a value, exact
	BF16                // 2 bytes: the upper half of a float32, to nearest, ties to even
	// 66/64 bytes a value: blocks of 64 values q*2^e with |q| <= 127, where e, in 2 bytes, is the smallest exponent with
	// which the largest value of the block is representable
	Int8
)

// CodeBlock is the number of values that share an exponent in Int8.
const CodeBlock = 64

// Size returns the number of bytes of n encoded values.
func (c Code) Size(n int) int {
	switch c {
	case BF16:
		return 2 * n
	case Int8:
		return n + 2*((n+CodeBlock-1)/CodeBlock)
	}
	return 4 * n
}

// Cut returns the bounds of slice k of w slices of m columns for a reduce-scatter. Blocks of Int8 are not divided.
func (c Code) Cut(m, k, w int) (lo, hi int) {
	if c != Int8 {
		return Cut(m, k, w)
	}
	lo, hi = Cut((m+CodeBlock-1)/CodeBlock, k, w)
	return min(m, lo*CodeBlock), min(m, hi*CodeBlock)
}

// Round rounds values to representable ones, in place. v must begin at a block boundary.
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
		return uint16(b>>16) | 0x40 // a quiet NaN; without the bit it could become an infinity
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

const (
	// exponent of a block with a NaN, an infinity or a value too large to encode
	nonFiniteExponent = math.MaxInt16
	minExponent       = -149 // of the smallest positive float32
)

// exponent returns the smallest e, at least minExponent, with all |x| <= 127*2^e, or nonFiniteExponent. Values already
// rounded with an exponent are encoded without loss, since division by a power of two is exact.
func exponent(block []float32) int {
	top := 0.0
	for _, x := range block {
		a := math.Abs(float64(x))
		if !(a <= 127*0x1p121) { // NaN, infinite, or above the largest encodable value
			return nonFiniteExponent
		}
		top = max(top, a)
	}
	if top == 0 {
		return minExponent
	}
	frac, e := math.Frexp(top) // top = frac*2^e, frac in [0.5, 1)
	if e -= 7; frac > 127.0/128 {
		e++
	}
	return max(e, minExponent)
}

// powers returns 2^e and 2^-e; multiplying a float64 by them is exact. For nonFiniteExponent it returns NaN and 0.
func powers(e int) (up, down float64) {
	if e == nonFiniteExponent {
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

// Append appends the encoding of v, whose values must be rounded by Round.
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

// Read decodes c.Size(len(dst)) bytes of p to dst. It accepts any bytes; the result may contain NaN.
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

// Cut returns the bounds of slice k of w slices of m columns whose sizes differ by at most 1.
func Cut(m, k, w int) (lo, hi int) { return m * k / w, m * (k + 1) / w }
