package wire

import (
	"encoding/binary"
	"fmt"
	"math"
)

// AppendBF16 appends src in 2 bytes a value: the upper half of a float32, rounded to nearest, ties to even.
func AppendBF16(dst []byte, src []float32) []byte {
	for _, x := range src {
		dst = binary.LittleEndian.AppendUint16(dst, toBF16(x))
	}
	return dst
}

func toBF16(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16) | 0x40 // quiet, and never an infinity
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// DecodeBF16 reads len(dst) values; p must hold exactly those.
func DecodeBF16(dst []float32, p []byte) error {
	if len(p) != 2*len(dst) {
		return malformed("%d bytes of bf16 for %d values", len(p), len(dst))
	}
	for i := range dst {
		dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(p[2*i:])) << 16)
	}
	return nil
}

// BlockSize is the number of values that share a scale in int8.
const BlockSize = 64

// Int8Size is the bytes of n values in scaled blocks.
func Int8Size(n int) int { return n + 4*((n+BlockSize-1)/BlockSize) }

// AppendInt8 appends src + residual in scaled blocks and leaves in residual what that loses: the error feedback, which the
// caller keeps for the next message of the same values. It has len(src) values, or is nil for none. src stays as it is.
func AppendInt8(dst []byte, src, residual []float32) ([]byte, error) {
	if residual != nil && len(residual) != len(src) {
		return dst, fmt.Errorf("int8: error feedback of %d values for %d: start it anew", len(residual), len(src))
	}
	var v [BlockSize]float32
	for lo := 0; lo < len(src); lo += BlockSize {
		n := copy(v[:], src[lo:])
		top, finite := float32(0), true
		for i := range v[:n] {
			if residual != nil {
				v[i] += residual[lo+i]
			}
			a := float32(math.Abs(float64(v[i])))
			finite = finite && a <= math.MaxFloat32
			top = max(top, a)
		}
		scale := top / 127
		if !finite {
			scale = float32(math.NaN())
		}
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(scale))
		for i, x := range v[:n] {
			q := int8(0)
			if finite && scale > 0 {
				q = int8(max(-127, min(127, math.RoundToEven(float64(x)/float64(scale)))))
			}
			dst = append(dst, byte(q))
			if residual == nil {
				continue
			}
			residual[lo+i] = 0
			if finite {
				residual[lo+i] = x - float32(float32(q)*scale) // not fused: the same bits everywhere
			}
		}
	}
	return dst, nil
}

// DecodeInt8 reads len(dst) values; p must hold exactly those. A block that held NaN or infinity is all NaN.
func DecodeInt8(dst []float32, p []byte) error {
	if len(p) != Int8Size(len(dst)) {
		return malformed("%d bytes of int8 for %d values", len(p), len(dst))
	}
	for lo := 0; lo < len(dst); lo += BlockSize {
		scale := math.Float32frombits(binary.LittleEndian.Uint32(p))
		if scale < 0 || math.IsInf(float64(scale), 0) {
			return malformed("a scale of %g in int8", scale)
		}
		block := dst[lo:min(lo+BlockSize, len(dst))]
		for i := range block {
			block[i] = scale * float32(int8(p[4+i]))
		}
		p = p[4+len(block):]
	}
	return nil
}
