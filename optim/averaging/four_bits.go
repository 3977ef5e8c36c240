package averaging

import (
	"math"

	"brood/models/engine"
)

// messageCode makes a message of a row and reads it back. The bits of a message do not depend on what is in it.
type messageCode interface {
	// length is the words of a message, 64 bits each.
	length() int
	// encode writes the message of x and takes what it says from x: what is left was not sent.
	encode(message []uint64, x []float32)
	// decode adds what a message says to sum.
	decode(sum []float32, message []uint64) error
}

// fourBits writes each of so many values as a sign and a power of two (e3m0: an exponent of three bits and no
// mantissa): zero, or one of seven magnitudes 2^(top-6) ... 2^top, the nearest. top is of a block of engine.CodeBlock
// values: the power that is nearest to the largest of them, in 16 bits.
type fourBits int

// Tops of blocks that are no exponent: of one that holds what is no number, and the largest of a float32.
const (
	fourBitsNone = math.MaxInt16
	fourBitsMost = 127
)

func (c fourBits) length() int {
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
			code := fourBitsOf(v, top)
			w.put(code, 4)
			block[i] -= fourBitsValue(code, top)
		}
	}
}

func (c fourBits) decode(sum []float32, message []uint64) error {
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
	return nil
}

func fourBitsTop(block []float32) int {
	top := 0.0
	for _, v := range block {
		m := math.Abs(float64(v))
		if !(m <= math.MaxFloat32) {
			return fourBitsNone
		}
		top = max(top, m)
	}
	if top == 0 {
		return 0
	}
	return min(fourBitsPower(top), fourBitsMost)
}

// fourBitsPower is e of the power of two that is nearest to m > 0.
func fourBitsPower(m float64) int {
	frac, e := math.Frexp(m) // m = frac*2^e, frac in [0.5, 1)
	if frac < 0.75 {
		e--
	}
	return e
}

func fourBitsOf(v float32, top int) (code uint64) {
	m := math.Abs(float64(v))
	if top == fourBitsNone || m == 0 {
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

// fourBitsValue reads any bits: what is no exponent of a float32 becomes zero, infinite or no number.
func fourBitsValue(code uint64, top int) float32 {
	switch {
	case top == fourBitsNone:
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
