package optim

import (
	"encoding/binary"
	"math"
	"unsafe"

	"brood/models/engine"
)

// Rows travel as little-endian elements without framing: lengths follow from the roster on both ends. Machines of that
// order copy memory; only bytes are viewed as floats' memory, never floats as bytes', since bytes need no alignment.

var little = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// bytesOf views elements as their bytes.
func bytesOf(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

func appendFloats(p []byte, v []float32) []byte {
	if little {
		return append(p, bytesOf(v)...)
	}
	for _, x := range v {
		p = binary.LittleEndian.AppendUint32(p, math.Float32bits(x))
	}
	return p
}

// readFloats reads 4*len(dst) bytes of p.
func readFloats(dst []float32, p []byte) {
	if little {
		copy(bytesOf(dst), p[:4*len(dst)])
		return
	}
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(p[4*i:]))
	}
}

func appendRows(p []byte, m engine.Mat, lo, n int) []byte {
	if m.Type == engine.U64 {
		for _, x := range m.U[lo*m.Cols : (lo+n)*m.Cols] {
			p = binary.LittleEndian.AppendUint64(p, x)
		}
		return p
	}
	return appendFloats(p, m.F[lo*m.Cols:(lo+n)*m.Cols])
}

func readRow(m engine.Mat, r engine.Row, p []byte) {
	if m.Type == engine.U64 {
		for i := range m.URow(r) {
			m.URow(r)[i] = binary.LittleEndian.Uint64(p[8*i:])
		}
		return
	}
	readFloats(m.Row(r), p)
}

// AppendRow appends row r of m as little-endian bytes: what digests and checkpoints are made of.
func AppendRow(p []byte, m engine.Mat, r engine.Row) []byte { return appendRows(p, m, int(r), 1) }
