package safetensors

import (
	"encoding/binary"
	"math"
)

// width returns the bytes of an element; 0 for an unknown type or one of less than a byte.
func width(dtype string) int {
	switch dtype {
	case "BOOL", "I8", "U8", "F8_E4M3", "F8_E5M2":
		return 1
	case "I16", "U16", "F16", "BF16":
		return 2
	case "I32", "U32", "F32":
		return 4
	case "I64", "U64", "F64", "C64":
		return 8
	}
	return 0
}

// floats returns a function that converts an element of the type to float32; nil if the type is not a supported float.
// F16 and BF16 convert exactly, F64 to the nearest.
func floats(dtype string) func(b []byte) float32 {
	switch dtype {
	case "F32":
		return func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }
	case "BF16":
		return func(b []byte) float32 { return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16) }
	case "F16":
		return func(b []byte) float32 { return half(binary.LittleEndian.Uint16(b)) }
	case "F64":
		return func(b []byte) float32 { return float32(math.Float64frombits(binary.LittleEndian.Uint64(b))) }
	}
	return nil
}

// half returns the value of IEEE 754 binary16: a sign, 5 bits of exponent, 10 of fraction.
func half(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, int(h>>10&31), uint32(h&1023)
	switch exponent {
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	case 0: // fraction * 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)*0x1p-24))
	}
	return math.Float32frombits(sign | uint32(exponent-15+127)<<23 | fraction<<13)
}
