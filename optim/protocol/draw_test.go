package protocol

import (
	"math"
	"testing"

	"brood/models/noise"
)

func testSource(seed uint64) *source {
	return newSource(noise.Key{Seed: seed, Purpose: noise.Pair, Member: 1})
}

// chiSquare compares counts with expected ones and returns the z score of the statistic (Wilson and Hilferty). It pools
// cells from the left until each expects 10. The score exceeds 3.7 with probability 1e-4.
func chiSquare(got []int, want []float64) float64 {
	var x2, g, w float64
	cells := -1
	for i := range got {
		g, w = g+float64(got[i]), w+want[i]
		if w >= 10 {
			x2 += (g - w) * (g - w) / w
			cells++
			g, w = 0, 0
		}
	}
	if w > 0 { // the remainder is one more cell, with an expected value of at least 1
		x2 += (g - w) * (g - w) / max(w, 1)
		cells++
	}
	k := float64(max(cells, 1))
	return (math.Cbrt(x2/k) - (1 - 2/(9*k))) / math.Sqrt(2/(9*k))
}

const surprising = 3.7 // z score of probability 1e-4; seeds are fixed

func choose(n, k float64) float64 {
	a, _ := math.Lgamma(n + 1)
	b, _ := math.Lgamma(k + 1)
	c, _ := math.Lgamma(n - k + 1)
	return a - b - c
}

// TestHypergeometric compares every method of drawing with the probabilities.
func TestHypergeometric(t *testing.T) {
	const draws = 40000
	for _, c := range [][3]uint64{{10, 3, 4}, {50, 20, 12}, {50, 20, 13}, {60, 30, 30}, {100, 90, 40}, {100, 40, 90},
		{1000, 14, 500}, {1000, 400, 300},
		{100000, 50000, 300}, {100000, 100, 50000}, {1 << 20, 3, 1 << 19}, {5, 5, 3}, {5, 0, 3}, {7, 2, 7}, {200, 100, 100}} {
		all, good, m := c[0], c[1], c[2]
		r := testSource(all + good + m)
		got, want := make([]int, m+1), make([]float64, m+1)
		for range draws {
			x := r.hypergeometric(all, good, m)
			if x > m || x > good || m-x > all-good {
				t.Fatalf("%v: drew %d", c, x)
			}
			got[x]++
		}
		for x := range want {
			if f := float64(x); uint64(x) <= good && m-uint64(x) <= all-good {
				want[x] = draws * math.Exp(choose(float64(good), f)+
					choose(float64(all-good), float64(m)-f)-choose(float64(all), float64(m)))
			}
		}
		if z := chiSquare(got, want); z > surprising {
			t.Errorf("%v: z = %.2f", c, z)
		}
	}
}

// TestNulls: failures before the first success, also for probabilities far below the spacing of floats at 1.
func TestNulls(t *testing.T) {
	const draws = 40000
	r := testSource(1)
	for _, p := range []float64{0.9, 0.5, 0.1, 0.01} {
		got, want := make([]int, 600), make([]float64, 600)
		for range draws {
			got[min(r.nullMeetings(uint64(p*1000), 1000, 1<<62), 599)]++
		}
		for i := range want {
			want[i] = draws * p * math.Pow(1-p, float64(i))
		}
		want[599] /= p
		if z := chiSquare(got, want); z > surprising {
			t.Errorf("p = %g: z = %.2f", p, z)
		}
	}
	var mean float64
	const all = uint64(999999999) * 1000000000
	for range draws {
		mean += float64(r.nullMeetings(2, all, 1<<63)) / draws
	}
	if want := float64(all) / 2; math.Abs(mean-want) > 4*want/math.Sqrt(draws) {
		t.Errorf("mean %.4g, want %.4g", mean, want)
	}
	if got := r.nullMeetings(1, 1<<60, 100); got > 100 {
		t.Errorf("limit 100: %d", got)
	}
}

// TestUntilCommon compares with naively drawn meetings.
func TestUntilCommon(t *testing.T) {
	const draws = 40000
	for _, n := range []uint64{2, 3, 4, 10, 101} {
		r, table := testSource(n), disjoint(n)
		got, want := make([]int, n), make([]float64, n)
		for range draws {
			got[r.untilCollision(table)]++
		}
		for l := range want[:min(len(table), int(n))] {
			want[l] = draws * table[l]
			if l+1 < len(table) {
				want[l] -= draws * table[l+1]
			}
		}
		if z := chiSquare(got, want); z > surprising {
			t.Errorf("n = %d against the table: z = %.2f", n, z)
		}
		naive := make([]int, n)
		for range draws {
			used := map[uint64]bool{}
			for {
				i, j := r.distinctPair(n)
				if used[i] || used[j] {
					break
				}
				used[i], used[j] = true, true
			}
			naive[len(used)/2]++
		}
		if z := chiSquare(naive, want); z > surprising {
			t.Errorf("n = %d, meetings drawn one by one: z = %.2f", n, z)
		}
	}
}

// TestBelow: values are below bounds on both sides of 2^32, and uniform.
func TestBelow(t *testing.T) {
	r := testSource(2)
	for _, n := range []uint64{1, 2, 3, 1<<32 - 1, 1 << 32, 1<<32 + 1, 3 << 61, 1<<64 - 1} {
		got, want := make([]int, 7), make([]float64, 7)
		for range 20000 {
			x := r.below(n)
			if x >= n {
				t.Fatalf("%d of %d", x, n)
			}
			got[int(float64(x)/float64(n)*7)%7]++
		}
		if n > 7 {
			for i := range want {
				want[i] = 20000.0 / 7
			}
			if z := chiSquare(got, want); z > surprising {
				t.Errorf("below %d: z = %.2f", n, z)
			}
		}
	}
}

// TestFrozen: recorded sessions depend on the draws of a key. Never change these numbers.
func TestFrozen(t *testing.T) {
	r := testSource(7)
	var got [6]uint64
	got[0], got[1], got[2] = r.below(1000), r.below(1<<40), uint64(r.unit()*1e15)
	got[3], got[4], got[5] = r.hypergeometric(1e9, 3e8, 2e4), r.nullMeetings(1, 1e6, 1<<60),
		r.untilCollision(disjoint(1e6))
	if want := [6]uint64{454, 858121252751, 340863146184393, 6079, 227037, 131}; got != want {
		t.Errorf("drew %d, frozen %d", got, want)
	}
}
