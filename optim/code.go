package optim

import (
	"context"
	"encoding/binary"
	"math"

	"brood/models/engine"
)

// Code is how the values of an all-reduce are written. A short one rounds every leaf, every partial sum and the result to values
// that it can write, whoever hosts what: the bits of a run depend on the code, and on the placement as little as ever.
type Code uint8

const (
	Float32 Code = iota // 4 bytes a value, exact
	BF16                // 2 bytes: the upper half of a float32, to nearest, ties to even
	Int8                // 65/64 bytes and more: blocks of 64 values q*2^e, |q| <= 127, e the smallest that reaches the largest
)

// KnobWire chooses the code of an algorithm's all-reduce of parameters or gradients.
var KnobWire = Knob{Name: "wire", Title: "wire format", Doc: "how the values of an all-reduce are written: exact, or rounded to 16 or 8 bits; what int8 loses is added to the next message (error feedback)",
	Choices: []string{"float32", "bf16", "int8"}, Max: 2}

// codeBlock is the number of values that share an exponent in Int8.
const codeBlock = 64

// size is the bytes of n values.
func (c Code) size(n int) int {
	switch c {
	case BF16:
		return 2 * n
	case Int8:
		return n + 2*((n+codeBlock-1)/codeBlock)
	}
	return 4 * n
}

// cut is the k-th of w slices of m columns that a reduction deals out: blocks are not divided.
func (c Code) cut(m, k, w int) (lo, hi int) {
	if c != Int8 {
		return cut(m, k, w)
	}
	lo, hi = cut((m+codeBlock-1)/codeBlock, k, w)
	return min(m, lo*codeBlock), min(m, hi*codeBlock)
}

// round replaces values by those that can be written. v begins at a block.
func (c Code) round(v []float32) {
	switch c {
	case BF16:
		for i, x := range v {
			v[i] = math.Float32frombits(uint32(toBF16(x)) << 16)
		}
	case Int8:
		for lo := 0; lo < len(v); lo += codeBlock {
			block := v[lo:min(lo+codeBlock, len(v))]
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

// exponent is the smallest e with all |x| <= 127*2^e. Values that were rounded with an exponent are written without a loss: a power
// of two divides exactly.
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

// append writes rounded values.
func (c Code) append(p []byte, v []float32) []byte {
	switch c {
	case BF16:
		for _, x := range v {
			p = binary.LittleEndian.AppendUint16(p, uint16(math.Float32bits(x)>>16))
		}
		return p
	case Int8:
		for lo := 0; lo < len(v); lo += codeBlock {
			block := v[lo:min(lo+codeBlock, len(v))]
			e := exponent(block)
			_, down := powers(e)
			p = binary.LittleEndian.AppendUint16(p, uint16(int16(e)))
			for _, x := range block {
				p = append(p, byte(quantum(x, down)))
			}
		}
		return p
	}
	return appendFloats(p, v)
}

// read reads c.size(len(dst)) bytes of p. Whatever they are, it gives numbers or NaN.
func (c Code) read(dst []float32, p []byte) {
	switch c {
	case BF16:
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(p[2*i:])) << 16)
		}
	case Int8:
		for lo := 0; lo < len(dst); lo += codeBlock {
			block := dst[lo:min(lo+codeBlock, len(dst))]
			up, _ := powers(int(int16(binary.LittleEndian.Uint16(p))))
			for i := range block {
				block[i] = float32(float64(int8(p[2+i])) * up)
			}
			p = p[2+len(block):]
		}
	default:
		readFloats(dst, p)
	}
}

// residual is what each member's messages have lost so far: the error feedback of Int8.
func residual(k Values, l engine.Layout) Block {
	b := Params(BlockResidual, false, EnterZero, l)
	if Code(k.I(KnobWire.Name)) != Int8 {
		b.Cols = 0
	}
	return b
}

// mean writes the mean over all members of the rows of src (one for each hosted here, of Params columns), through the wire's code.
func (e *Env) mean(ctx context.Context, k Values, op Op, src, dst engine.Mat) error {
	code := Code(k.I(KnobWire.Name))
	if lost := e.Block(BlockResidual); lost.Rows > 0 && code == Int8 {
		// send Q(v), v = row + lost; keep v - Q(v)
		sent := e.Scratch(src.Rows, src.Cols)
		for i := range src.Rows {
			v, kept := sent.Row(engine.Row(i)), lost.Row(engine.Row(i))
			for j, x := range src.Row(engine.Row(i)) {
				v[j] = x + kept[j]
				kept[j] = v[j]
			}
			code.round(v)
			for j, x := range v {
				if kept[j] -= x; kept[j] != kept[j] {
					kept[j] = 0 // a block that is not finite: it is not hidden, and not fed back
				}
			}
		}
		src = sent
	}
	return e.Comm.reduce(ctx, op, e.Roster, src, dst, true, code)
}
