package data

import (
	"math"
	"slices"
	"testing"

	"brood/models/noise"
)

// byTen is the label of a sample in tests of parts: ten classes.
func byTen(id int32) int32 { return id % 10 }

// checkParts reports an error unless every sample is in exactly one part, and every part has one.
func checkParts(t *testing.T, parts [][]int32, samples []int32) {
	t.Helper()
	for i, p := range parts {
		if len(p) == 0 {
			t.Errorf("part %d of %d is empty", i, len(parts))
		}
	}
	if all := slices.Sorted(slices.Values(slices.Concat(parts...))); !slices.Equal(all, samples) {
		t.Errorf("%d parts hold %d samples, want each of %d once", len(parts), len(all), len(samples))
	}
}

// TestLabelShards: parts are disjoint, cover the samples, and have as many labels as shards if shards fit in labels.
func TestLabelShards(t *testing.T) {
	samples := ids(0, 600)
	for _, c := range []struct {
		n, each, most int
	}{{10, 1, 1}, {10, 2, 2}, {5, 2, 2}, {20, 3, 3}, {7, 2, 4}, {600, 1, 1}} {
		parts := LabelShards(samples, byTen, c.n, c.each, noise.Key{Seed: 5})
		checkParts(t, parts, samples)
		for i, p := range parts {
			labels := map[int32]bool{}
			for _, id := range p {
				labels[byTen(id)] = true
			}
			if len(labels) > c.most {
				t.Errorf("%d parts of %d shards: part %d has %d labels, want at most %d", c.n, c.each, i, len(labels), c.most)
			}
		}
	}
	if a, b := LabelShards(samples, byTen, 5, 2, noise.Key{Seed: 5}),
		LabelShards(samples, byTen, 5, 2, noise.Key{Seed: 6}); slices.Equal(a[0], b[0]) {
		t.Error("the shards of a part do not depend on the seed")
	}
}

// TestDirichlet: parts are disjoint, cover the samples and are never empty. Over seeds, the share of a label that a
// part has is that of a Dirichlet distribution with multinomial counts: its mean is 1/n, its variance p(1-p)*(N +
// n*alpha)/(N*(1 + n*alpha)), p = 1/n.
func TestDirichlet(t *testing.T) {
	const n, each, seeds = 5, 40, 400
	samples := ids(0, 10*each)
	for _, alpha := range []float64{0.1, 1, 100} {
		var sum, squares float64
		for seed := range uint64(seeds) {
			parts := Dirichlet(samples, byTen, n, alpha, noise.Key{Seed: seed})
			checkParts(t, parts, samples)
			for c := range int32(10) {
				has := 0
				for _, id := range parts[2] {
					if byTen(id) == c {
						has++
					}
				}
				share := float64(has) / each
				sum, squares = sum+share, squares+(share-1.0/n)*(share-1.0/n)
			}
		}
		count := float64(10 * seeds)
		want := 1.0 / n * (1 - 1.0/n) * (each + n*alpha) / (each * (1 + n*alpha))
		if mean, v := sum/count, squares/count; math.Abs(mean-1.0/n) > 0.02 || math.Abs(v/want-1) > 0.1 {
			t.Errorf("alpha %g: shares have mean %.4f and variance %.5f, want %.4f and %.5f", alpha, mean, v, 1.0/n, want)
		}
	}
	checkParts(t, Dirichlet(ids(0, 64), byTen, 64, 0.001, noise.Key{Seed: 1}), ids(0, 64))
}
