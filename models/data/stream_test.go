package data

import (
	"slices"
	"testing"

	"brood/models/noise"
)

var order = noise.Key{Seed: 7, Purpose: noise.Order, Member: 2}

func drawn(n int, all []int32, k noise.Key, cursor uint64, w Window) []int32 {
	dst := make([]int32, n)
	Batch(dst, all, k, cursor, w)
	return dst
}

// TestPassesDrawEverySampleOnce: every pass draws each sample of the window once, in its own order.
func TestPassesDrawEverySampleOnce(t *testing.T) {
	all := ids(100, 197)
	for _, w := range []Window{{0, 97}, {0, 40}, {80, 40}, {96, 1}} {
		var first, before []int32
		for pass := range uint64(4) {
			got := drawn(w.Len, all, order, pass*uint64(w.Len), w)
			sorted := slices.Sorted(slices.Values(got))
			if len(slices.Compact(sorted)) != w.Len {
				t.Fatalf("window %v, pass %d: a sample twice in %v", w, pass, got)
			}
			if pass == 0 {
				first = sorted
			} else if !slices.Equal(sorted, first) {
				t.Fatalf("window %v: pass %d sees other samples", w, pass)
			}
			if w.Len > 1 && slices.Equal(got, before) {
				t.Errorf("window %v: pass %d repeats the order", w, pass)
			}
			before = got
		}
	}
}

// TestBatchSplitsAnywhere: a batch split anywhere, across passes too, has the same samples.
func TestBatchSplitsAnywhere(t *testing.T) {
	all, w := ids(0, 60), Window{50, 23}
	whole := drawn(64, all, order, 17, w)
	for cut := range 65 {
		parts := append(drawn(cut, all, order, 17, w), drawn(64-cut, all, order, 17+uint64(cut), w)...)
		if !slices.Equal(parts, whole) {
			t.Fatalf("cut at %d differs", cut)
		}
	}
}

func TestStreamsDiffer(t *testing.T) {
	all, w := ids(0, 500), Window{0, 500}
	base := drawn(100, all, order, 0, w)
	member, seed := order, order
	member.Member++
	seed.Seed++
	for name, k := range map[string]noise.Key{"member": member, "seed": seed} {
		if got := drawn(100, all, k, 0, w); slices.Equal(got, base) {
			t.Errorf("another %s draws the same", name)
		}
	}
	ignored := order
	ignored.Round = 9
	if !slices.Equal(drawn(100, all, ignored, 0, w), base) {
		t.Error("the key's round matters")
	}
}

// TestWindowsPartition: windows of one seed are ranges of one permutation: two half windows are disjoint.
func TestWindowsPartition(t *testing.T) {
	all := ids(0, 90)
	other := order
	other.Member = 5
	union := append(drawn(45, all, order, 0, Window{0, 45}), drawn(45, all, other, 0, Window{45, 45})...)
	slices.Sort(union)
	if !slices.Equal(union, all) {
		t.Errorf("two halves cover %v", union)
	}
}

func TestBatchOnBadInput(t *testing.T) {
	all := ids(0, 5)
	for _, w := range []Window{{-3, 2}, {7, 2}, {0, 0}, {0, -1}, {0, 99}} {
		for _, id := range drawn(20, all, order, 3, w) {
			if id < 0 || id > 4 {
				t.Errorf("window %v: id %d", w, id)
			}
		}
	}
	drawn(4, nil, order, 0, Window{0, 4})
}
