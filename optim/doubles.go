package optim

import (
	"context"
	"encoding/binary"
	"math"
	"slices"

	"brood/models/engine"
)

// Holder is an engine that counts what a run will need: it is told of host memory that a programme holds as long as its
// blocks, by the width of the rows it is for, in bytes an element.
type Holder interface{ Hold(width, bytes int) }

// inDouble are rows in double precision in host memory, and the bytes through which they come and go.
type inDouble struct {
	rows [][]float64
	used int
	raw  []byte
}

// doublesPiece is how many elements come and go at once, so that no second copy of a row is made.
const doublesPiece = 1 << 16

// Doubles copies m (1 row) into host memory of this round, once all that was queued before is done, for what a
// programme computes itself in double precision.
func (e *Env) Doubles(ctx context.Context, m engine.Mat) ([]float64, error) {
	if e.inDouble == nil {
		e.inDouble = &inDouble{raw: make([]byte, 0, 4*doublesPiece)}
	}
	d := e.inDouble
	for d.used < len(d.rows) && len(d.rows[d.used]) != m.Cols {
		d.rows = slices.Delete(d.rows, d.used, d.used+1)
	}
	if d.used == len(d.rows) {
		if h, counts := e.Engine.(Holder); counts {
			h.Hold(m.Cols, 8)
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

// SetDoubles copies what [Env.Doubles] gave to m, rounded.
func (e *Env) SetDoubles(ctx context.Context, m engine.Mat, row []float64) error {
	for lo := 0; lo < m.Cols; lo += doublesPiece {
		hi := min(lo+doublesPiece, m.Cols)
		raw := e.inDouble.raw[:0]
		for _, x := range row[lo:hi] {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(x)))
		}
		if err := e.Engine.Write(ctx, engine.Span{Mat: m, Rows: 1, Lo: lo, Hi: hi}, raw); err != nil {
			return err
		}
	}
	return nil
}
