package engine

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// Rows are sent as little-endian elements without framing: both ends know the lengths from the membership. On
// little-endian machines the conversion is a memory copy. Floats are viewed as bytes, never bytes as floats, since
// bytes may be unaligned.

var littleEndianHost = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// bytesOf returns the memory of v as bytes.
func bytesOf[T float32 | uint64](v []T) []byte {
	var one T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), int(unsafe.Sizeof(one))*len(v))
}

// AppendFloats appends v as little-endian bytes.
func AppendFloats(p []byte, v []float32) []byte {
	if littleEndianHost {
		return append(p, bytesOf(v)...)
	}
	for _, x := range v {
		p = binary.LittleEndian.AppendUint32(p, math.Float32bits(x))
	}
	return p
}

// ReadFloats decodes the first 4*len(dst) bytes of p to dst.
func ReadFloats(dst []float32, p []byte) {
	if littleEndianHost {
		copy(bytesOf(dst), p[:4*len(dst)])
		return
	}
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(p[4*i:]))
	}
}

// AppendWords appends v as little-endian bytes.
func AppendWords(p []byte, v []uint64) []byte {
	if littleEndianHost {
		return append(p, bytesOf(v)...)
	}
	for _, x := range v {
		p = binary.LittleEndian.AppendUint64(p, x)
	}
	return p
}

// ReadWords decodes the first 8*len(dst) bytes of p to dst.
func ReadWords(dst []uint64, p []byte) {
	if littleEndianHost {
		copy(bytesOf(dst), p[:8*len(dst)])
		return
	}
	for i := range dst {
		dst[i] = binary.LittleEndian.Uint64(p[8*i:])
	}
}

// AppendRows appends n rows of m from row lo as little-endian bytes. This is the format of messages, digests and
// checkpoints.
func AppendRows(p []byte, m Host, lo Row, n int) []byte {
	m = m.Sub(lo, n)
	return AppendFloats(AppendWords(p, m.U), m.F)
}

// ReadRow decodes row r of m from the first bytes of p.
func ReadRow(m Host, r Row, p []byte) {
	if m.Type == U64 {
		ReadWords(m.URow(r), p)
		return
	}
	ReadFloats(m.Row(r), p)
}
