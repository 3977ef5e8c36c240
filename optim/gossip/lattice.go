package gossip

import (
	"context"
	"math"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// A lattice code sends a vector as one byte an element: its coordinate on the lattice of multiples of a cell, modulo
// 256. The receiver chooses the candidate nearest to its own vector. That is the value sent if the two vectors differ
// by less than about 127 cells; a checksum of the full coordinates detects when it is not. (Davies, Gurunathan,
// Moshrefi, Ashkboos, Alistarh: New bounds for distributed mean estimation and variance reduction, 2020.)

// latticeWords returns the length of the code of cols elements in 64-bit words: eight elements a word, and the
// checksum.
func latticeWords(cols int) int { return (cols+7)/8 + 1 }

// coordinate returns floor(x/cell + u), the lattice coordinate of x rounded down after a shift of u cells. ok is false
// if its magnitude is 2^40 or more, and for NaN.
func coordinate(x float32, cell, u float64) (l int64, ok bool) {
	v := math.Floor(float64(x)/cell + u)
	if !(math.Abs(v) < 1<<40) {
		return 0, false
	}
	return int64(v), true
}

// latticeSum adds a coordinate to a checksum, as FNV-1a does for a byte. It always detects a single wrong coordinate.
func latticeSum(sum uint64, l int64) uint64 { return (sum ^ uint64(l)) * 0x100000001b3 }

// latticeEncode writes the code of x. Coordinates are rounded at random, with random words of key, so that the code is
// unbiased. If a coordinate is out of range, it inverts the checksum so that decoding fails.
func latticeEncode(code []uint64, x []float32, cell float64, key noise.Key) {
	clear(code)
	s, fits, sum := key.Schedule(), true, uint64(0)
	var w [4]uint32
	for i, v := range x {
		if i%4 == 0 {
			w = s.Block(key.Counter(uint32(i / 4)))
		}
		l, ok := coordinate(v, cell, float64(w[i%4])/(1<<32))
		fits = fits && ok
		code[i/8] |= uint64(uint8(l)) << (8 * (i % 8))
		sum = latticeSum(sum, l)
	}
	if !fits {
		sum = ^sum
	}
	code[len(code)-1] = sum
}

// latticeDecode writes the vector nearest to x that has the given code. ok is false if the checksum does not match: the
// encoded vector is too far from x, or out of range.
func latticeDecode(dst []float32, code []uint64, x []float32, cell float64) (ok bool) {
	sum := uint64(0)
	for i, v := range x {
		near, _ := coordinate(v, cell, 0.5)
		l := near + int64(int8(uint8(code[i/8]>>(8*(i%8)))-uint8(near)))
		dst[i] = float32(float64(l) * cell)
		sum = latticeSum(sum, l)
	}
	return sum == code[len(code)-1]
}

// moveLattice is Comm.Move for rows of src as lattice codes, decoded against the receiving member's x. A member must be
// the end of at most one edge. Rows whose code does not decode are sent again in full. Every worker receives the
// verdicts on all codes, so that all know the edges of this fallback, which moveLattice returns. salt distinguishes the
// calls of a round, so that each draws other random numbers. spare is scratch with a row for each hosted member.
func moveLattice(
	ctx context.Context, e *optim.Env, cell float64, round uint64, salt int, edges []collective.Edge,
	src, dst, spare engine.Mat,
) ([]collective.Edge, error) {
	in, words := e.Incoming(edges), latticeWords(src.Cols)
	codes, got := engine.NewHost(len(e.Mine), words, engine.U64), engine.NewHost(len(in), words, engine.U64)
	for _, edge := range edges {
		if r := e.Row(edge.From); r >= 0 {
			row, err := engine.Download(ctx, e.Engine, src.Sub(r, 1))
			if err != nil {
				return nil, err
			}
			key := e.Rand(noise.Pair, round, edge.From)
			key.Stream = uint32(1 + salt)
			latticeEncode(codes.URow(r), row.F, cell, key)
		}
	}
	if err := e.Comm.MoveRecords(ctx, "exchange", edges, codes, got); err != nil {
		return nil, err
	}
	// Verdict of each member: 1 if the code that it received did not decode.
	mine, all := engine.NewHost(len(e.Mine), 1, engine.F32), engine.NewHost(len(e.Roster.Members), 1, engine.F32)
	for i, edge := range in {
		r := e.Row(edge.To)
		near, err := engine.Download(ctx, e.Engine, e.Block(optim.BlockX).Sub(r, 1))
		if err != nil {
			return nil, err
		}
		row := engine.NewHost(1, dst.Cols, engine.F32)
		if !latticeDecode(row.F, got.URow(engine.Row(i)), near.F, cell) {
			mine.F[r] = 1
		}
		if err := e.Engine.Write(ctx, engine.RowOf(dst, engine.Row(i)), engine.AppendRows(nil, row, 0, 1)); err != nil {
			return nil, err
		}
	}
	if err := e.Comm.AllGather(ctx, "verdict", mine, all); err != nil {
		return nil, err
	}
	var fallback []collective.Edge
	for _, edge := range edges {
		if all.F[e.Roster.Rank(edge.To)] == 1 {
			fallback = append(fallback, collective.Edge{From: edge.From, To: edge.To, Op: "fallback"})
		}
	}
	full := spare.Sub(0, len(e.Incoming(fallback)))
	if err := e.Comm.Move(ctx, "fallback", fallback, src, full); err != nil {
		return nil, err
	}
	var tasks []engine.Task
	next := engine.Row(0)
	for i, edge := range in {
		if mine.F[e.Row(edge.To)] == 1 {
			tasks = append(tasks, engine.Copy{Dst: engine.RowOf(dst, engine.Row(i)), Src: engine.RowOf(full, next)})
			next++
		}
	}
	return fallback, e.Engine.Do(ctx, tasks...)
}
