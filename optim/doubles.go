package optim

import (
	"context"
	"encoding/binary"
	"math"
	"slices"

	"brood/models/engine"
)

// HostMemoryCounter is implemented by an engine that estimates memory. CountHostMemory adds a row of host memory, width
// elements of the given bytes, that a program allocates for the lifetime of its blocks.
type HostMemoryCounter interface{ CountHostMemory(width, bytes int) }

// inDouble holds rows of float64 in host memory, and a buffer for their transfer.
type inDouble struct {
	rows [][]float64
	used int
	raw  []byte
}

// doublesPiece is the number of elements of one transfer. It bounds the buffer.
const doublesPiece = 1 << 16

// doubles returns the buffers, which the first call allocates.
func (e *Env) doubles() *inDouble {
	if e.inDouble == nil {
		e.inDouble = &inDouble{raw: make([]byte, 0, 4*doublesPiece)}
	}
	return e.inDouble
}

// Doubles waits for all queued tasks and returns a copy of m (1 row) in host memory, for the computations of a program
// in float64. The slice is valid until the end of the round.
func (e *Env) Doubles(ctx context.Context, m engine.Mat) ([]float64, error) {
	d := e.doubles()
	for d.used < len(d.rows) && len(d.rows[d.used]) != m.Cols {
		d.rows = slices.Delete(d.rows, d.used, d.used+1)
	}
	if d.used == len(d.rows) {
		if h, counts := e.Engine.(HostMemoryCounter); counts {
			h.CountHostMemory(m.Cols, 8)
		}
		d.rows = append(d.rows, make([]float64, m.Cols))
	}
	out := d.rows[d.used]
	d.used++
	for lo := 0; lo < m.Cols; lo += doublesPiece {
		hi := min(lo+doublesPiece, m.Cols)
		raw := d.raw[:4*(hi-lo)]
		if err := e.Engine.Read(ctx, raw, engine.Span{Mat: m, Rows: 1, Lo: lo, Hi: hi}); err != nil {
			return nil, err
		}
		for i := range out[lo:hi] {
			out[lo+i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
		}
	}
	return out, nil
}

// SetDoubles copies row to m (1 row), rounded to float32.
func (e *Env) SetDoubles(ctx context.Context, m engine.Mat, row []float64) error {
	for lo := 0; lo < m.Cols; lo += doublesPiece {
		hi := min(lo+doublesPiece, m.Cols)
		raw := e.doubles().raw[:0]
		for _, x := range row[lo:hi] {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(x)))
		}
		if err := e.Engine.Write(ctx, engine.Span{Mat: m, Rows: 1, Lo: lo, Hi: hi}, raw); err != nil {
			return err
		}
	}
	return nil
}
