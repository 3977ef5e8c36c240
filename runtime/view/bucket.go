package view

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Bucket summarises the finite values of a range of rounds. The zero Bucket is empty.
type Bucket struct {
	Min, Max, Sum float64
	Count         uint64
}

// Empty reports whether the range has no values.
func (b Bucket) Empty() bool { return b.Count == 0 }

// Mean returns the mean of the values; NaN for an empty bucket.
func (b Bucket) Mean() float64 {
	if b.Count == 0 {
		return math.NaN()
	}
	return b.Sum / float64(b.Count)
}

func (b *Bucket) add(x float64) {
	if b.Count == 0 {
		*b = Bucket{x, x, x, 1}
		return
	}
	b.Min, b.Max, b.Sum, b.Count = min(b.Min, x), max(b.Max, x), b.Sum+x, b.Count+1
}

func (b *Bucket) merge(o Bucket) {
	switch {
	case o.Count == 0:
	case b.Count == 0:
		*b = o
	default:
		b.Min, b.Max, b.Sum, b.Count = min(b.Min, o.Min), max(b.Max, o.Max), b.Sum+o.Sum, b.Count+o.Count
	}
}

// appendTo appends the encoded bucket to p: the count, then nothing if it is 0, the value if it is 1, otherwise min,
// max and sum.
func (b Bucket) appendTo(p []byte) []byte {
	p = binary.AppendUvarint(p, b.Count)
	if b.Count == 0 {
		return p
	}
	p = binary.LittleEndian.AppendUint64(p, math.Float64bits(b.Min))
	if b.Count > 1 {
		p = binary.LittleEndian.AppendUint64(p, math.Float64bits(b.Max))
		p = binary.LittleEndian.AppendUint64(p, math.Float64bits(b.Sum))
	}
	return p
}

func readBucket(p []byte) (b Bucket, rest []byte, err error) {
	n, k := binary.Uvarint(p)
	if k <= 0 {
		return b, nil, errShort
	}
	p = p[k:]
	if n == 0 {
		return b, p, nil
	}
	words := 1
	if n > 1 {
		words = 3
	}
	if len(p) < 8*words {
		return b, nil, errShort
	}
	f := func(i int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(p[8*i:])) }
	b = Bucket{f(0), f(0), f(0), n}
	if n > 1 {
		b.Max, b.Sum = f(1), f(2)
	}
	return b, p[8*words:], nil
}

var errShort = fmt.Errorf("series: the buckets end early: the snapshot is damaged, attach again")
