package message

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/zeebo/blake3"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/event"
)

// ProgressBlock is the name of a block of the runtime: one shared row of counters, a pure function of roster and knobs,
// which determines the last round of a run. All workers compute the same epochs: units of EpochUnit for finished
// segments, rounded down, plus the samples of the current segment. A segment is a range of rounds with a constant
// number of samples per epoch.
const ProgressBlock = "progress"

// EpochUnit is the unit of the epochs of finished segments. Rounding may decrease the epochs by less than one unit at
// the start of a segment.
const EpochUnit = 1.0 / (1 << 32)

// Root returns the hash of a state: BLAKE3 over the digests of all rows of all blocks, sorted by row.
func Root(digests Digests) string {
	h := NewRoot()
	digests = slices.Clone(digests)
	slices.SortFunc(digests, func(a, b Digest) int { return strings.Compare(a.Row, b.Row) })
	for _, d := range digests {
		h.Add(d.Row, d.Sum)
	}
	return h.Sum()
}

// Hash computes a Root incrementally. Rows must be added in the order of their names.
type Hash struct {
	of  *blake3.Hasher
	row []byte // buffered rows that are not hashed yet
}

// NewRoot returns the Hash of no rows.
func NewRoot() *Hash { return &Hash{of: blake3.New()} }

// Add adds the next row.
func (h *Hash) Add(name string, digest [32]byte) {
	h.row = append(append(append(h.row, name...), 0), digest[:]...)
	if len(h.row) >= 8<<10 {
		h.flush()
	}
}

func (h *Hash) flush() {
	h.of.Write(h.row)
	h.row = h.row[:0]
}

// Sum returns the hash of all added rows.
func (h *Hash) Sum() string {
	h.flush()
	return fmt.Sprintf("blake3:%x", h.of.Sum(nil))
}

// MergePoints merges the points of workers into one record for each round and series, ascending by round. Members are
// ascending; the points of one member keep their order.
func MergePoints(done []Done) (out []*event.Points) {
	type key struct {
		round  uint64
		series string
	}
	merged := map[key]*event.Points{}
	for _, d := range done {
		for _, p := range d.Points {
			k := key{p.Round, p.Series}
			if merged[k] == nil {
				merged[k] = &event.Points{Round: p.Round, Series: p.Series}
				out = append(out, merged[k])
			}
			merged[k].Members = append(merged[k].Members, p.Members...)
			merged[k].Values = append(merged[k].Values, p.Values...)
		}
	}
	slices.SortStableFunc(out, func(a, b *event.Points) int { return cmp.Compare(a.Round, b.Round) })
	for _, p := range out {
		sortByMember(p)
	}
	return out
}

func sortByMember(p *event.Points) {
	if slices.IsSorted(p.Members) {
		return
	}
	at := make([]int, len(p.Members))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(a, b int) int { return int(int64(p.Members[a]) - int64(p.Members[b])) })
	m, v := make([]engine.Member, len(at)), make([]float64, len(at))
	for i, j := range at {
		m[i], v[i] = p.Members[j], p.Values[j]
	}
	p.Members, p.Values = m, v
}

// Tally adds the scores of the chunks of all workers in the order of the test set, and of the validation samples if
// validation is above 0. ok is false while a chunk is missing.
func Tally(tests []Test, samples, validation int) (e event.Evaluation, ok bool) {
	var all, validated []Chunk
	for _, t := range tests {
		all, validated = append(all, t.Chunks...), append(validated, t.Validation...)
		e.Round = t.Round
		if t.Centre != "" {
			e.Centre, e.Episode = t.Centre, t.Episode
		}
	}
	test := sumOf(all)
	e.TestError, e.TestLoss, e.Samples, e.Squares = test.Error(), test.Mean(), test.Samples, test.MeanSquare()
	if ok = test.Samples == int64(samples); validation > 0 {
		sum := sumOf(validated)
		e.Validation = &event.Scores{Error: sum.Error(), Loss: sum.Mean(), Samples: sum.Samples, Squares: sum.MeanSquare()}
		ok = ok && sum.Samples == int64(validation)
	}
	return e, ok
}

// sumOf adds the scores of chunks in their order.
func sumOf(all []Chunk) (sum optim.Scores) {
	slices.SortFunc(all, func(a, b Chunk) int { return a.Index - b.Index })
	for _, c := range all {
		sum.Loss += c.Loss
		sum.Correct += c.Correct
		sum.Squares += c.Squares
		sum.Samples += c.Samples
	}
	return sum
}
