package averaging

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
)

// A sparse code sends a fixed number of values of each chunk of a vector, those of the largest magnitude, with their
// places. Chunks are consecutive elements of one tensor. A value is written in two bits, a sign and one of two
// magnitudes of its chunk, or as it is.

// sparseCode is such a code for one layout.
type sparseCode struct {
	chunks []sparseChunk
	whole  bool // values as they are
	words  int  // of a message, 64 bits each
}

// sparseForm is how a row is seen while it is shared: what is done to a copy before a message is made of it, how what a
// message says becomes a row again, and likewise the mean of messages. The zero form takes rows as they are.
type sparseForm struct{ into, back, mean func(v []float32) }

// sparseChunk is elements [lo, lo+n) of a vector, of which keep are sent.
type sparseChunk struct{ lo, n, keep int }

// sparseOf cuts tensors into chunks of at most so many elements. A chunk of that length sends keep values, a shorter
// one its share, at least one.
func sparseOf(l engine.Layout, chunk, keep int, whole bool) (c sparseCode) {
	c.whole = whole
	size := 0
	for _, t := range l.Tensors {
		for lo := 0; lo < t.Len; lo += chunk {
			n := min(chunk, t.Len-lo)
			p := sparseChunk{t.Lo + lo, n, min(n, (keep*n+chunk-1)/chunk)}
			c.chunks = append(c.chunks, p)
			size += p.bits(whole)
		}
	}
	c.words = (size + 63) / 64
	return c
}

// place is the bits of a value's place: none where all are sent.
func (p sparseChunk) place() int {
	if p.keep == p.n {
		return 0
	}
	return bits.Len(uint(p.n - 1))
}

func (p sparseChunk) bits(whole bool) int {
	if whole {
		return p.keep * (p.place() + 32)
	}
	return 64 + p.keep*(p.place()+2)
}

func (c sparseCode) length() int { return c.words }

func (c sparseCode) encode(message []uint64, x []float32) {
	clear(message)
	w := bitString{words: message}
	var sorted []uint32
	var kept []int
	for _, p := range c.chunks {
		v := x[p.lo : p.lo+p.n]
		sorted, kept = largest(v, p.keep, sorted, kept)
		var levels [2]float32
		if !c.whole {
			levels = levelsOf(v, kept)
			w.put(uint64(math.Float32bits(levels[0])), 32)
			w.put(uint64(math.Float32bits(levels[1])), 32)
		}
		for _, i := range kept {
			w.put(uint64(i), p.place())
			if c.whole {
				w.put(uint64(math.Float32bits(v[i])), 32)
				v[i] -= v[i]
				continue
			}
			code := levelOf(v[i], levels)
			w.put(code, 2)
			v[i] -= valueOf(code, levels)
		}
	}
}

func (c sparseCode) decode(sum []float32, message []uint64) error {
	r := bitString{words: message}
	for _, p := range c.chunks {
		var levels [2]float32
		if !c.whole {
			levels[0], levels[1] = math.Float32frombits(uint32(r.get(32))), math.Float32frombits(uint32(r.get(32)))
		}
		for j := range p.keep {
			i := int(r.get(p.place()))
			if p.place() == 0 {
				i = j
			}
			if i >= p.n {
				return fmt.Errorf("a message names place %d of a chunk of %d", i, p.n)
			}
			if c.whole {
				sum[p.lo+i] += math.Float32frombits(uint32(r.get(32)))
				continue
			}
			sum[p.lo+i] += valueOf(r.get(2), levels)
		}
	}
	return nil
}

// largest lists the places of the keep values of the largest magnitude, ascending; of equals those in front. What is no
// number counts as larger than all that are. Both slices are scratch.
func largest(v []float32, keep int, sorted []uint32, places []int) ([]uint32, []int) {
	sorted, places = sorted[:0], places[:0]
	if keep <= keptInOrder {
		sorted = highest(v, keep, sorted)
		return sorted, atLeast(v, sorted, places)
	}
	var count [1 << (31 - coarse)]int // by the upper bits of magnitudes; those in the last that counts are sorted
	for _, x := range v {
		count[magnitude(x)>>coarse]++
	}
	last, equals := len(count)-1, keep
	for ; count[last] < equals; last-- {
		equals -= count[last]
	}
	for _, x := range v {
		if m := magnitude(x); int(m>>coarse) == last {
			sorted = append(sorted, m)
		}
	}
	slices.Sort(sorted)
	return sorted, atLeast(v, sorted[len(sorted)-equals:], places)
}

// keptInOrder is up to how many values are found by keeping the largest seen so far in their order: to clear the counts
// takes longer.
const keptInOrder = 16

// highest lists the keep largest magnitudes of v, ascending.
func highest(v []float32, keep int, top []uint32) []uint32 {
	for _, x := range v[:keep] {
		top = append(top, magnitude(x))
	}
	slices.Sort(top)
	for _, x := range v[keep:] {
		m := magnitude(x)
		if m <= top[0] {
			continue
		}
		i := 1
		for ; i < keep && top[i] < m; i++ {
			top[i-1] = top[i]
		}
		top[i-1] = m
	}
	return top
}

// atLeast appends the places of the values that are larger than the least of these magnitudes, which are ascending and
// among the largest of v, and of as many that are equal to it as there are.
func atLeast(v []float32, top []uint32, places []int) []int {
	least, equals := top[0], 0
	for equals < len(top) && top[equals] == least {
		equals++
	}
	for i, x := range v {
		switch m := magnitude(x); {
		case m > least:
			places = append(places, i)
		case m == least && equals > 0:
			places = append(places, i)
			equals--
		}
	}
	return places
}

// coarse is the lower bits of a magnitude that are not counted: an exponent and three bits are.
const coarse = 20

// magnitude orders values as their magnitudes are ordered, and all that are no numbers behind.
func magnitude(x float32) uint32 { return math.Float32bits(x) &^ (1 << 31) }

// levelsOf are two magnitudes: the mean of those values at these places that are at most as large as the mean of all,
// and the mean of the others, or the first where there are none. They are NaN where a value is not finite.
func levelsOf(v []float32, places []int) (levels [2]float32) {
	mean := func(lo, hi float64) (float64, int) {
		sum, n := 0.0, 0
		for _, i := range places {
			if m := math.Abs(float64(v[i])); !(m <= lo) && !(m > hi) {
				sum += m
				n++
			}
		}
		return sum / float64(max(1, n)), n
	}
	all, _ := mean(-1, math.Inf(1))
	low, _ := mean(-1, all)
	high, n := mean(all, math.Inf(1))
	if levels = [2]float32{float32(low), float32(high)}; n == 0 {
		levels[1] = levels[0]
	}
	if !(all <= math.MaxFloat32) {
		levels = [2]float32{float32(math.NaN()), float32(math.NaN())}
	}
	return levels
}

// levelOf is the code of x: the nearer level, and the sign in the second bit.
func levelOf(x float32, levels [2]float32) (code uint64) {
	m := math.Abs(float64(x))
	if m-float64(levels[0]) > float64(levels[1])-m {
		code = 1
	}
	if math.Signbit(float64(x)) {
		code |= 2
	}
	return code
}

func valueOf(code uint64, levels [2]float32) float32 {
	if code&2 != 0 {
		return -levels[code&1]
	}
	return levels[code&1]
}

// bitString writes and reads numbers of up to 32 bits, one behind the other, the lowest bit first.
type bitString struct {
	words []uint64
	at    int
}

func (b *bitString) put(x uint64, n int) {
	for left := n; left > 0; {
		word, off := b.at/64, b.at%64
		some := min(left, 64-off)
		b.words[word] |= (x & (1<<some - 1)) << off
		x >>= some
		b.at += some
		left -= some
	}
}

func (b *bitString) get(n int) (x uint64) {
	for got := 0; got < n; {
		word, off := b.at/64, b.at%64
		some := min(n-got, 64-off)
		x |= b.words[word] >> off & (1<<some - 1) << got
		b.at += some
		got += some
	}
	return x
}

// sparseMean sends a message of each hosted member's row of v, in a form, to everybody, takes what it says from the
// row, and writes the mean of what all members' messages say into dst (1 row). Members are added in the order of their
// ids, on every worker alike.
func sparseMean(ctx context.Context, e *optim.Env, op collective.Op, c messageCode, f sparseForm, v, dst engine.Mat) error {
	todo, err := beginSparseMean(ctx, e, op, c, f, v, dst)
	if err != nil {
		return err
	}
	return todo.Run(ctx)
}

// beginSparseMean begins a sparseMean: v is done with when it returns, and dst is there after the last phase.
func beginSparseMean(ctx context.Context, e *optim.Env, op collective.Op, c messageCode, f sparseForm, v, dst engine.Mat) (collective.Phases, error) {
	mine, all := engine.NewHost(len(e.Mine), c.length(), engine.U64), engine.NewHost(len(e.Roster.Members), c.length(), engine.U64)
	for i := range e.Mine {
		r := engine.Row(i)
		row, err := engine.Download(ctx, e.Engine, v.Sub(r, 1))
		if err != nil {
			return nil, err
		}
		if f.into == nil {
			c.encode(mine.URow(r), row.F)
		} else if err := f.take(c, mine.URow(r), row.F); err != nil {
			return nil, err
		}
		if err := e.Engine.Write(ctx, engine.RowOf(v, r), engine.AppendRows(nil, row, 0, 1)); err != nil {
			return nil, err
		}
	}
	todo, err := e.Comm.BeginAllGather(op, mine, all)
	if err != nil {
		return nil, err
	}
	return todo.Then(func(ctx context.Context) error {
		sum := engine.NewHost(1, v.Cols, engine.F32)
		for i := range all.Rows {
			if err := c.decode(sum.F, all.URow(engine.Row(i))); err != nil {
				return fmt.Errorf("%s: of member %d: %w", op, e.Roster.Members[i], err)
			}
		}
		for i := range sum.F {
			sum.F[i] /= float32(all.Rows)
		}
		if f.mean != nil {
			f.mean(sum.F)
		}
		return e.Engine.Write(ctx, engine.All(dst), engine.AppendRows(nil, sum, 0, 1))
	}), nil
}

// take writes the message of x in its form, and takes what it says from x.
func (f sparseForm) take(c messageCode, message []uint64, x []float32) error {
	form, said := slices.Clone(x), make([]float32, len(x))
	f.into(form)
	c.encode(message, form)
	if err := c.decode(said, message); err != nil {
		return err
	}
	f.back(said)
	for i, s := range said {
		x[i] -= s
	}
	return nil
}
