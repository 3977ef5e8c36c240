package protocol

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// TestBatch compares the joint distribution of the number of meetings of one batch and the counts after it with
// meetings drawn one by one until an agent meets again, including that meeting. The rule distinguishes initiator and
// responder, and no pair is null.
func TestBatch(t *testing.T) {
	const draws = 60000
	table := must(newTable("mix", []string{"0", "1", "2"}, make([]string, 3), goal{kind: silent},
		func(a, b uint16) (uint16, uint16) { return a, (a + 2*b + 1) % 3 }))
	for i, first := range [][]uint64{{3, 2, 2}, {1, 1, 0}, {2, 1, 1}, {3, 2, 2}, {2, 1, 1}} {
		var n uint64
		var agents []uint64
		for s, c := range first {
			n += c
			agents = append(agents, slices.Repeat([]uint64{uint64(s)}, int(c))...)
		}
		got, want := map[string]int{}, map[string]int{}
		c, r := newCountSimulator(table, n), testSource(n)
		c.oneByOne = i > 2
		for range draws {
			count := slices.Clone(first)
			met, _ := c.batch(count, 1<<40, r)
			got[fmt.Sprint(met, count)]++

			now, used, count := slices.Clone(agents), make([]bool, n), slices.Clone(first)
			for met, common := uint64(1), false; !common; met++ {
				i, j := r.distinctPair(n)
				common = used[i] || used[j]
				used[i], used[j] = true, true
				x, y := table.meet(uint16(now[i]), uint16(now[j]))
				count[now[i]]--
				count[now[j]]--
				count[x]++
				count[y]++
				if now[i], now[j] = uint64(x), uint64(y); common {
					want[fmt.Sprint(met, count)]++
				}
			}
		}
		if z := twoSamples(got, want); z > surprising {
			t.Errorf("from %d: z = %.2f", first, z)
		}
	}
}

// twoSamples is chiSquare for two samples of equal size.
func twoSamples(a, b map[string]int) float64 {
	for k := range b {
		a[k] += 0
	}
	var x2 float64
	cells := -1
	for k, x := range a {
		if both := float64(x + b[k]); both >= 20 {
			d := float64(x - b[k])
			x2 += d * d / both
			cells++
		}
	}
	k := float64(max(cells, 1))
	return (math.Cbrt(x2/k) - (1 - 2/(9*k))) / math.Sqrt(2/(9*k))
}
