package averaging

import (
	"context"
	"math"
	"math/bits"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
)

// sparseCode is a messageCode for the vectors of one layout. It cuts each tensor into chunks of consecutive elements
// and sends a fixed number of values of each chunk, those of largest magnitude, with their indices in the chunk. A
// value is sent exactly (32 bits), or in two bits: a sign and the choice between two magnitudes (levels) of its chunk.
type sparseCode struct {
	chunks []sparseChunk
	exact  bool // values are sent as float32, not in two bits
	words  int  // length of a message in 64-bit words
}

// sparseTransform changes the representation in which values are selected and sent, for example to cosines. The zero
// value sends rows unchanged; otherwise all of forward and inverse are set. All functions work in place.
type sparseTransform struct {
	forward func(v []float32) // applied to a copy of a row before it is encoded
	inverse func(v []float32) // applied to a decoded message; undoes forward
	mean    func(v []float32) // applied to the mean of the decoded messages, if not nil; includes the inverse
}

// sparseChunk is elements [lo, lo+n) of a vector, of which keep are sent.
type sparseChunk struct{ lo, n, keep int }

// newSparseCode cuts the tensors of l into chunks of at most chunk elements. A full chunk sends keep values; a shorter
// one sends the same fraction of its elements, rounded up. exact sends values as float32.
func newSparseCode(l engine.Layout, chunk, keep int, exact bool) (c sparseCode) {
	c.exact = exact
	size := 0
	for _, t := range l.Tensors {
		for lo := 0; lo < t.Len; lo += chunk {
			n := min(chunk, t.Len-lo)
			p := sparseChunk{t.Lo + lo, n, min(n, (keep*n+chunk-1)/chunk)}
			c.chunks = append(c.chunks, p)
			size += p.messageBits(exact)
		}
	}
	c.words = (size + 63) / 64
	return c
}

// indexBits returns the bits of an index in the chunk: 0 if all elements are sent, since their order gives the indices.
func (p sparseChunk) indexBits() int {
	if p.keep == p.n {
		return 0
	}
	return bits.Len(uint(p.n - 1))
}

// messageBits returns the bits that the chunk takes in a message: the indices and values sent and, unless exact, two
// levels as float32.
func (p sparseChunk) messageBits(exact bool) int {
	if exact {
		return p.keep * (p.indexBits() + 32)
	}
	return 64 + p.keep*(p.indexBits()+2)
}

func (c sparseCode) messageWords() int { return c.words }

// encode implements messageCode. Elements that are not sent keep their value in x; exactly sent ones become 0, or NaN
// if they were NaN or infinite.
func (c sparseCode) encode(message []uint64, x []float32) {
	clear(message)
	w := bitString{words: message}
	var scratch []uint32
	var sent []int
	for _, p := range c.chunks {
		v := x[p.lo : p.lo+p.n]
		scratch, sent = largest(v, p.keep, scratch, sent)
		var levels [2]float32
		if !c.exact {
			levels = sparseLevels(v, sent)
			w.put(uint64(math.Float32bits(levels[0])), 32)
			w.put(uint64(math.Float32bits(levels[1])), 32)
		}
		for _, i := range sent {
			w.put(uint64(i), p.indexBits())
			if c.exact {
				w.put(uint64(math.Float32bits(v[i])), 32)
				v[i] -= v[i]
				continue
			}
			code := quantize(v[i], levels)
			w.put(code, 2)
			v[i] -= dequantize(code, levels)
		}
	}
}

// decode implements messageCode. It skips an index beyond its chunk.
func (c sparseCode) decode(sum []float32, message []uint64) {
	r := bitString{words: message}
	for _, p := range c.chunks {
		var levels [2]float32
		if !c.exact {
			levels[0], levels[1] = math.Float32frombits(uint32(r.get(32))), math.Float32frombits(uint32(r.get(32)))
		}
		for j := range p.keep {
			i := int(r.get(p.indexBits()))
			if p.indexBits() == 0 {
				i = j
			}
			var x float32
			if c.exact {
				x = math.Float32frombits(uint32(r.get(32)))
			} else {
				x = dequantize(r.get(2), levels)
			}
			if i < p.n {
				sum[p.lo+i] += x
			}
		}
	}
}

// largest returns the indices of the keep values of v of largest magnitude, ascending. Of equal magnitudes it takes the
// first. NaN counts as larger than any number, so that it is sent and not hidden. scratch and indices are reused and
// returned, possibly grown.
func largest(v []float32, keep int, scratch []uint32, indices []int) ([]uint32, []int) {
	scratch, indices = scratch[:0], indices[:0]
	if keep <= insertionLimit {
		scratch = topMagnitudes(v, keep, scratch)
		return scratch, appendTop(v, scratch, indices)
	}
	// Count values by the upper bits of their magnitudes. Only the lowest bucket that is needed has to be sorted.
	var count [1 << (31 - uncountedBits)]int
	for _, x := range v {
		count[magnitude(x)>>uncountedBits]++
	}
	last, equals := len(count)-1, keep
	for ; count[last] < equals; last-- {
		equals -= count[last]
	}
	for _, x := range v {
		if m := magnitude(x); int(m>>uncountedBits) == last {
			scratch = append(scratch, m)
		}
	}
	slices.Sort(scratch)
	return scratch, appendTop(v, scratch[len(scratch)-equals:], indices)
}

// insertionLimit is the largest number of values for which largest uses insertion into a sorted list. For so few
// values, clearing the counts takes longer.
const insertionLimit = 16

// topMagnitudes appends the keep largest magnitudes of v to the empty slice top, ascending.
func topMagnitudes(v []float32, keep int, top []uint32) []uint32 {
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

// appendTop appends the indices of all values of v whose magnitude exceeds top[0], and of the first values equal to
// top[0], as many as top contains. top is ascending and a part of the largest magnitudes of v.
func appendTop(v []float32, top []uint32, indices []int) []int {
	least, equals := top[0], 0
	for equals < len(top) && top[equals] == least {
		equals++
	}
	for i, x := range v {
		switch m := magnitude(x); {
		case m > least:
			indices = append(indices, i)
		case m == least && equals > 0:
			indices = append(indices, i)
			equals--
		}
	}
	return indices
}

// uncountedBits is the number of low bits of a magnitude that the counts of largest ignore. The exponent and three bits
// of the mantissa remain.
const uncountedBits = 20

// magnitude returns the bits of |x|. As integers they are ordered like the magnitudes, with NaN last.
func magnitude(x float32) uint32 { return math.Float32bits(x) &^ (1 << 31) }

// sparseLevels returns the two levels of a chunk v whose elements at indices are sent. levels[0] is the mean of the
// sent magnitudes up to their overall mean. levels[1] is the mean of the others, or levels[0] if there are none. Both
// are NaN if a sent value is NaN or infinite.
func sparseLevels(v []float32, indices []int) (levels [2]float32) {
	mean := func(lo, hi float64) (float64, int) { // of the magnitudes in (lo, hi], and their number
		sum, n := 0.0, 0
		for _, i := range indices {
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

// quantize returns the code of x: bit 0 selects the nearer level, the lower one at equal distance; bit 1 is the sign.
func quantize(x float32, levels [2]float32) (code uint64) {
	m := math.Abs(float64(x))
	if m-float64(levels[0]) > float64(levels[1])-m {
		code = 1
	}
	if math.Signbit(float64(x)) {
		code |= 2
	}
	return code
}

// dequantize returns the value of a code of quantize.
func dequantize(code uint64, levels [2]float32) float32 {
	if code&2 != 0 {
		return -levels[code&1]
	}
	return levels[code&1]
}

// bitString writes or reads consecutive integers of up to 32 bits, lowest bit first. To be written, words must be zero.
type bitString struct {
	words []uint64
	at    int // position of the next bit
}

// put appends the low n bits of x.
func (b *bitString) put(x uint64, n int) {
	for left := n; left > 0; {
		word, off := b.at/64, b.at%64
		step := min(left, 64-off)
		b.words[word] |= (x & (1<<step - 1)) << off
		x >>= step
		b.at += step
		left -= step
	}
}

// get reads the next n bits.
func (b *bitString) get(n int) (x uint64) {
	for got := 0; got < n; {
		word, off := b.at/64, b.at%64
		step := min(n-got, 64-off)
		x |= b.words[word] >> off & (1<<step - 1) << got
		b.at += step
		got += step
	}
	return x
}

// sparseMean encodes each hosted member's row of v as a message, sends it to every worker, and writes the mean of the
// decoded messages of all members into dst (1 row). It subtracts each decoded message from its row of v, so that v
// keeps what was not sent. Messages are added in the order of member ids, so that all workers compute the same bits.
func sparseMean(
	ctx context.Context, e *optim.Env, op collective.Op, c messageCode, f sparseTransform, v, dst engine.Mat,
) error {
	phases, err := beginSparseMean(ctx, e, op, c, f, v, dst)
	if err != nil {
		return err
	}
	return phases.Run(ctx)
}

// beginSparseMean begins a sparseMean. v has its final contents when it returns; the last phase fills dst.
func beginSparseMean(
	ctx context.Context, e *optim.Env, op collective.Op, c messageCode, f sparseTransform, v, dst engine.Mat,
) (collective.Phases, error) {
	mine := engine.NewHost(len(e.Mine), c.messageWords(), engine.U64)
	all := engine.NewHost(len(e.Roster.Members), c.messageWords(), engine.U64)
	for i := range e.Mine {
		r := engine.Row(i)
		row, err := engine.Download(ctx, e.Engine, v.Sub(r, 1))
		if err != nil {
			return nil, err
		}
		if f.forward == nil {
			c.encode(mine.URow(r), row.F)
		} else {
			f.encode(c, mine.URow(r), row.F)
		}
		if err := e.Engine.Write(ctx, engine.RowOf(v, r), engine.AppendRows(nil, row, 0, 1)); err != nil {
			return nil, err
		}
	}
	phases, err := e.Comm.BeginAllGather(op, mine, all)
	if err != nil {
		return nil, err
	}
	return phases.Then(func(ctx context.Context) error {
		sum := engine.NewHost(1, v.Cols, engine.F32)
		for i := range all.Rows {
			c.decode(sum.F, all.URow(engine.Row(i)))
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

// encode writes the message of the transformed x, and subtracts the decoded and inversely transformed message from x.
func (f sparseTransform) encode(c messageCode, message []uint64, x []float32) {
	transformed, decoded := slices.Clone(x), make([]float32, len(x))
	f.forward(transformed)
	c.encode(message, transformed)
	c.decode(decoded, message)
	f.inverse(decoded)
	for i, s := range decoded {
		x[i] -= s
	}
}
