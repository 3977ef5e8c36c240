package view

import (
	"math"
	"slices"
)

// track is the history of one quantity: buckets of 2^level rounds, aligned to multiples of that width. Buckets before
// the last one are sealed and never change. levels[k+1] contains the merged complete pairs of levels[k]. So a range
// consists of a few nodes, and removing levels[0] halves the resolution.
//
// Invariants: levels[0] holds the buckets origin .. at-1, open is bucket at, and levels[k] starts with node origin>>k.
type track struct {
	origin uint64 // index of the first bucket: its first round >> level
	at     uint64 // index of the open bucket
	open   Bucket
	levels [][]Bucket
	last   float64 // value of the last point; may be NaN or infinite
	some   bool    // whether there is a point
}

// add adds a point of round r. A value that is not finite extends the track but is not added to a bucket.
func (t *track) add(level uint, r uint64, x float64) {
	i := r >> level
	if !t.some {
		t.some, t.origin, t.at = true, i, i
	}
	t.last = x
	for t.at < i {
		t.seal()
	}
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
	case i < t.at:
		t.late(i, x)
	default:
		t.open.add(x)
	}
}

// seal closes the open bucket and merges it into all parents that it completes.
func (t *track) seal() {
	b := t.open
	for k, i := 0, t.at; ; k, i = k+1, i>>1 {
		if k == len(t.levels) {
			t.levels = append(t.levels, nil)
		}
		t.levels[k] = append(t.levels[k], b)
		if i&1 == 0 {
			break
		}
		if n := len(t.levels[k]); n > 1 {
			left := t.levels[k][n-2]
			left.merge(b)
			b = left
		}
	}
	t.at++
	t.open = Bucket{}
}

// late adds a value to a sealed bucket, or to one before the first. This is rare, so it rebuilds all levels.
func (t *track) late(i uint64, x float64) {
	base := slices.Clone(t.base())
	if i < t.origin {
		base = append(make([]Bucket, t.origin-i), base...)
		t.origin = i
	}
	base[i-t.origin].add(x)
	t.rebuild(base, t.open)
}

func (t *track) base() []Bucket {
	if len(t.levels) == 0 {
		return nil
	}
	return t.levels[0]
}

// rebuild replaces all buckets from the origin on.
func (t *track) rebuild(base []Bucket, open Bucket) {
	t.at, t.levels = t.origin, nil
	for _, b := range base {
		t.open = b
		t.seal()
	}
	t.open = open
}

// halve doubles the width of the buckets.
func (t *track) halve() {
	if t.at&1 == 1 && t.at > t.origin {
		left := t.levels[0][len(t.levels[0])-1]
		left.merge(t.open)
		t.open = left
	}
	if len(t.levels) > 0 {
		t.levels[0] = nil // otherwise the backing array retains it
		t.levels = t.levels[1:]
	}
	t.origin, t.at = t.origin>>1, t.at>>1
}

// truncate removes the buckets that begin after round r.
func (t *track) truncate(level uint, r uint64) {
	i := r >> level
	switch {
	case !t.some || t.at <= i:
	case i < t.origin:
		*t = track{}
	default:
		base := t.base()
		open := base[i-t.origin]
		t.rebuild(base[:i-t.origin], open)
		t.last = open.Mean()
	}
}

// span returns the merged buckets [l, r).
func (t *track) span(l, r uint64) (out Bucket) {
	if !t.some {
		return out
	}
	l = max(l, t.origin)
	if r > t.at {
		r = t.at
		if l <= t.at {
			out = t.open
		}
	}
	for k := 0; l < r; k++ {
		first := t.origin >> k
		if l&1 == 1 {
			out.merge(t.levels[k][l-first])
			l++
		}
		if r&1 == 1 {
			r--
			out.merge(t.levels[k][r-first])
		}
		l, r = l>>1, r>>1
	}
	return out
}

// clone returns a copy that shares the sealed buckets. Appending to the copy reallocates; appending to the original
// does not affect the copy, whose slices are clipped.
func (t *track) clone() track {
	c := *t
	c.levels = make([][]Bucket, len(t.levels))
	for k, row := range t.levels {
		c.levels[k] = slices.Clip(row)
	}
	return c
}
