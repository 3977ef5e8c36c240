package engine

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// Rows travel as little-endian elements without framing: lengths follow from the roster on both ends. Machines of that
// order copy memory; only bytes are viewed as floats' memory, never floats as bytes', since bytes need no alignment.

var little = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// bytesOf views elements as their bytes.
func bytesOf(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// AppendFloats appends v as little-endian bytes.
func AppendFloats(p []byte, v []float32) []byte {
	if little {
		return append(p, bytesOf(v)...)
	}
	for _, x := range v {
		p = binary.LittleEndian.AppendUint32(p, math.Float32bits(x))
	}
	return p
}

// ReadFloats reads 4*len(dst) bytes of p.
func ReadFloats(dst []float32, p []byte) {
	if little {
		copy(bytesOf(dst), p[:4*len(dst)])
		return
	}
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(p[4*i:]))
	}
}

// AppendRows appends n rows of m from row lo as little-endian bytes: what travels, and what digests and checkpoints are
// made of.
func AppendRows(p []byte, m Host, lo Row, n int) []byte {
	m = m.Sub(lo, n)
	for _, x := range m.U {
		p = binary.LittleEndian.AppendUint64(p, x)
	}
	return AppendFloats(p, m.F)
}

// ReadRow reads row r of m from as many bytes of p.
func ReadRow(m Host, r Row, p []byte) {
	if m.Type == U64 {
		for i := range m.URow(r) {
			m.URow(r)[i] = binary.LittleEndian.Uint64(p[8*i:])
		}
		return
	}
	ReadFloats(m.Row(r), p)
}
