package gpu

import (
	"encoding/binary"
	"math"

	"brood/models/engine"
)

// pieceColumns is the number of columns in a piece of a squared distance.
const pieceColumns = 1024

// squares appends the squared distance of each row of x to c, or to zero if c is the zero Mat, as float64 from element
// at of sums.
func (e *Engine) squares(b *batch, x, c engine.Mat, sums Memory, at uint64) error {
	pieces := (x.Cols + pieceColumns - 1) / pieceColumns
	scratch, err := e.scratchMemory("pieces", 8*pieces*x.Rows)
	if err != nil {
		return err
	}
	m, from := behind(x)
	centre, atc := m, uint64(0)
	centred := uint32(0)
	if c.Rows > 0 {
		centre, atc = behind(c)
		centred = 1
	}
	b.grid("squares", [3]int{pieces, x.Rows, 1}, 16, m, from, uint64(x.Cols), centre, atc, centred, scratch)
	b.launch("pairs", x.Rows, 1, scratch, uint32(pieces), uint32(x.Rows), sums, at)
	return nil
}

func (e *Engine) distance(t engine.Distance) error {
	n := len(t.RMS)
	if t.X.Cols == 0 {
		clear(t.RMS)
		return nil
	}
	at, err := e.reserveLog(8*n, func(p []byte) {
		for i := range n {
			t.RMS[i] = math.Sqrt(math.Float64frombits(binary.LittleEndian.Uint64(p[8*i:])) / float64(t.X.Cols))
		}
	})
	if err != nil {
		return err
	}
	b := new(batch)
	if err := e.squares(b, t.X, t.Centre, e.log, at/8); err != nil {
		return err
	}
	return e.issue(b)
}

func (e *Engine) clip(t engine.Clip) error {
	sums, err := e.scratchMemory("sums", 8*t.X.Rows)
	if err != nil || t.X.Cols == 0 {
		return err
	}
	b := new(batch)
	if err := e.squares(b, t.X, engine.Mat{}, sums, 0); err != nil {
		return err
	}
	m, at := behind(t.X)
	return e.issue(b.launch("clip", t.X.Cols, t.X.Rows, m, at, uint64(t.X.Cols), sums, t.Longest))
}

func (e *Engine) finite(t engine.Finite) error {
	n := len(t.OK)
	at, err := e.reserveLog(4*n, func(p []byte) {
		for i := range n {
			t.OK[i] = binary.LittleEndian.Uint32(p[4*i:]) == 0
		}
	})
	if err != nil {
		return err
	}
	m, from := behind(t.X)
	return e.issue(new(batch).launch("zeros", n, 1, e.log, at/4, uint64(n)).
		launch("infinite", t.X.Cols, t.X.Rows, m, from, uint64(t.X.Cols), e.log, at/4))
}

// BLAKE3: words of a chunk and of a hash, and the flag of the last step.
const (
	chunkWords = 256
	hashWords  = 8
	rootFlag   = 8
)

// digest hashes chunks, then pairs of neighbours until one hash is left, with one launch per level.
func (e *Engine) digest(t engine.Digest) error {
	n := len(t.Hash)
	at, err := e.reserveLog(4*hashWords*n, func(p []byte) {
		for i := range n {
			copy(t.Hash[i][:], p[4*hashWords*i:])
		}
	})
	if err != nil {
		return err
	}
	m, from := behind(t.X)
	chunks := max(1, (t.X.Cols+chunkWords-1)/chunkWords)
	var rooms [2]Memory
	for i, name := range []string{"even chunks", "odd chunks"} {
		if rooms[i], err = e.scratchMemory(name, 4*hashWords*n*chunks); err != nil {
			return err
		}
	}
	b := new(batch)
	to := func(left, level int) (Memory, uint64, uint32) {
		if left == 1 {
			return e.log, at / 4, rootFlag
		}
		return rooms[level%2], 0, 0
	}
	out, place, root := to(chunks, 0)
	b.launch("blake_chunks", chunks, n, m, from, uint64(t.X.Cols), uint32(chunks), out, place, root)
	for left, level := chunks, 1; left > 1; level++ {
		next := (left + 1) / 2
		in := out
		out, place, root = to(next, level)
		b.launch("blake_parents", next, n, in, uint32(left), out, place, root)
		left = next
	}
	return e.issue(b)
}
