package optim

import (
	"encoding/binary"
	"math"

	"brood/models/engine"
)

// Rows travel as little-endian elements without framing: lengths follow from the roster on both ends.

func appendFloats(p []byte, v []float32) []byte {
	n := len(p)
	p = append(p, make([]byte, 4*len(v))...)
	for i, x := range v {
		binary.LittleEndian.PutUint32(p[n+4*i:], math.Float32bits(x))
	}
	return p
}

func readFloats(dst []float32, p []byte) {
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
