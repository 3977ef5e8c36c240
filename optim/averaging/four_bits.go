package averaging

import (
	"math"

	"brood/models/engine"
)

// messageCode encodes a row of float32 as a message and decodes it. The length of a message does not depend on the
// values in it, so that the bytes of a round are known before it runs.
type messageCode interface {
	// messageWords returns the length of a message in 64-bit words.
	messageWords() int
	// encode writes the message of x to message and subtracts the decoded message from x: the encoding error remains.
	encode(message []uint64, x []float32)
	// decode adds the values of a message to sum. It accepts any message, since a worker may send a wrong one, and adds
	// the same on all workers.
	decode(sum []float32, message []uint64)
}

// fourBits is a messageCode for rows of that number of values. A value takes four bits (e3m0: a sign, an exponent of
// three bits, no mantissa) and decodes to the nearest of zero and the seven magnitudes 2^(top-6) ... 2^top. Each block
// of engine.CodeBlock values has its own top, stored in 16 bits: the exponent of the power of two nearest to its
// largest magnitude.
type fourBits int

const (
	fourBitsNaN    = math.MaxInt16 // the top of a block with a NaN or infinite value; all its values decode to NaN
	fourBitsMaxTop = 127           // the largest exponent of a float32
)

func (c fourBits) messageWords() int {
	blocks := (int(c) + engine.CodeBlock - 1) / engine.CodeBlock
	return (16*blocks + 4*int(c) + 63) / 64
}

func (c fourBits) encode(message []uint64, x []float32) {
	clear(message)
	w := bitString{words: message}
	for lo := 0; lo < len(x); lo += engine.CodeBlock {
		block := x[lo:min(lo+engine.CodeBlock, len(x))]
		top := fourBitsTop(block)
		w.put(uint64(uint16(int16(top))), 16)
		for i, v := range block {
			code := fourBitsCode(v, top)
			w.put(code, 4)
			block[i] -= fourBitsValue(code, top)
		}
	}
}

func (c fourBits) decode(sum []float32, message []uint64) {
	r := bitString{words: message}
	for lo := 0; lo < len(sum); lo += engine.CodeBlock {
		block := sum[lo:min(lo+engine.CodeBlock, len(sum))]
		top := int(int16(r.get(16)))
		var values [16]float32
		for code := range values {
			values[code] = fourBitsValue(uint64(code), top)
		}
		for i := range block {
			block[i] += values[r.get(4)]
		}
	}
}

// fourBitsTop returns the top of a block: fourBitsNaN if a value is NaN or infinite, 0 if all are zero.
func fourBitsTop(block []float32) int {
	top := 0.0
	for _, v := range block {
		m := math.Abs(float64(v))
		if !(m <= math.MaxFloat32) {
			return fourBitsNaN
		}
		top = max(top, m)
	}
	if top == 0 {
		return 0
	}
	return min(fourBitsPower(top), fourBitsMaxTop)
}

// fourBitsPower returns the e for which 2^e is nearest to m, for m > 0; the larger e if two are equally near.
func fourBitsPower(m float64) int {
	frac, e := math.Frexp(m) // m = frac*2^e, frac in [0.5, 1)
	if frac < 0.75 {
		e--
	}
	return e
}

// fourBitsCode returns the code of v in a block with the given top: the sign in bit 3; in the low bits 0 for zero, or
// 1 to 7 for the magnitude 2^(top-7+bits).
func fourBitsCode(v float32, top int) (code uint64) {
	m := math.Abs(float64(v))
	if top == fourBitsNaN || m == 0 {
		return 0
	}
	switch e := fourBitsPower(m) - top + 7; {
	case e >= 1:
		code = uint64(min(e, 7))
	case m >= math.Ldexp(1, top-7): // nearer to the least magnitude than to zero
		code = 1
	}
	if math.Signbit(float64(v)) {
		code |= 8
	}
	return code
}

// fourBitsValue returns the value of a code of fourBitsCode. It accepts any top: one beyond the exponents of float32
// gives zero or an infinity.
func fourBitsValue(code uint64, top int) float32 {
	switch {
	case top == fourBitsNaN:
		return float32(math.NaN())
	case code&7 == 0:
		return 0
	}
	v := float32(math.Ldexp(1, top-7+int(code&7)))
	if code&8 != 0 {
		return -v
	}
	return v
}
