package protocol

import (
	"fmt"
	"slices"
	"testing"

	"brood/optim"
)

// TestSplitJoinConservesValues: for all pairs of states of up to 65536 agents a meeting conserves the sum of the
// values, two agents of one sign keep it, and the table has the states that the doc promises.
func TestSplitJoinConservesValues(t *testing.T) {
	for levels := 1; levels <= 16; levels++ {
		table := must(splitJoin(levels))
		if want := levels*levels + levels + 4; len(table.States) != want {
			t.Errorf("L = %d: %d states, want %d", levels, len(table.States), want)
		}
		value := make([]int, len(table.States))
		for s, name := range table.States {
			var x, y int
			if _, err := fmt.Sscanf(name[1:], "<%d,%d>", &x, &y); err != nil {
				t.Fatal(name, err)
			}
			value[s] = x - y
		}
		for a := range table.States {
			for b := range table.States {
				c, d := table.meet(uint16(a), uint16(b))
				if value[a]+value[b] != value[c]+value[d] {
					t.Fatalf("%s,%s -> %s,%s", table.States[a], table.States[b], table.States[c], table.States[d])
				}
			}
		}
	}
}

// TestSplitJoinRules: meetings that exercise one step each, by hand from the paper's rules.
func TestSplitJoinRules(t *testing.T) {
	table := must(splitJoin(4))
	for _, c := range [][4]string{
		{"A<16,0>", "B<0,16>", "A<0,0>", "A<0,0>"}, // cancel; + where both values are 0
		{"B<0,1>", "A<2,0>", "A<0,0>", "A<1,0>"},   // cancel with a factor of 2
		{"B<0,4>", "A<8,0>", "A<2,0>", "A<2,0>"},   // cancel, then split
		{"A<16,2>", "A<8,2>", "A<16,4>", "A<8,0>"}, // join
		{"A<16,1>", "A<4,1>", "A<16,2>", "A<4,0>"}, // join
		{"B<1,8>", "B<1,4>", "B<2,8>", "B<0,4>"},   // join of negative values
		{"A<16,0>", "B<0,0>", "A<8,0>", "A<8,0>"},  // split
		{"B<0,8>", "A<0,0>", "B<0,4>", "B<0,4>"},   // split
		{"B<0,1>", "A<0,0>", "B<0,1>", "B<0,0>"},   // the sign spreads
		{"A<16,0>", "B<0,1>", "A<8,0>", "A<8,1>"},  // split; the y stays
		{"A<0,0>", "B<0,0>", "A<0,0>", "B<0,0>"},
	} {
		at := func(name string) uint16 { return uint16(slices.Index(table.States, name)) }
		x, y := table.meet(at(c[0]), at(c[1]))
		if got := [2]string{table.States[x], table.States[y]}; got != [2]string{c[2], c[3]} {
			t.Errorf("%s,%s -> %s, want %s", c[0], c[1], got, c[2:])
		}
	}
}

// TestExactFromEverywhere: exact majority protocols cannot miss. Every configuration that is reachable from the
// smallest lead can reach the consensus on the majority, and none reaches another one.
func TestExactFromEverywhere(t *testing.T) {
	for n := 2; n <= 8; n++ {
		for _, lead := range []int{2 - n%2, n%2 - 2} {
			k := SplitJoin.Values(map[string]float64{"n": float64(n), "gap": float64(lead)})
			for _, a := range []*optim.Algorithm{ExactMajority, SplitJoin} {
				p := a.Program.(finite)
				table := p.table(k)
				first, err := p.begin(k)
				if err != nil {
					t.Fatal(err)
				}
				want := slices.Index(table.Outputs, majorityOutput(k))
				total := everyReachable(t, table, first, func(count []uint64) {
					if table.reached(count) && table.byOutput(count)[want] != uint64(n) {
						t.Fatalf("%s, n = %d, lead %d: the minority won", a.Name, n, lead)
					}
				})
				t.Logf("%s, n = %d, lead %d: %d configurations", a.Name, n, lead, total)
			}
		}
	}
}

// everyReachable calls check for every configuration that is reachable from first, fails if one of them cannot reach
// the goal, and returns their number.
func everyReachable(t *testing.T, table *Table, first []uint64, check func(count []uint64)) int {
	t.Helper()
	key := func(count []uint64) string {
		var b []byte
		for s, c := range count {
			for range c {
				b = append(b, byte(s>>8), byte(s))
			}
		}
		return string(b)
	}
	index := map[string]int{key(first): 0}
	all := [][]uint64{first}
	var before [][]int // configurations one meeting before
	var good []int     // configurations from which the goal is reachable
	reaches := map[int]bool{}
	for i := 0; i < len(all); i++ {
		count := all[i]
		check(count)
		before = append(before, nil)
		if table.reached(count) {
			good, reaches[i] = append(good, i), true
		}
		for a, x := range count {
			if x == 0 {
				continue
			}
			for _, b := range table.effective[a] {
				if count[b] == 0 || int(b) == a && x < 2 {
					continue
				}
				c, d := table.meet(uint16(a), b)
				next := slices.Clone(count)
				next[a]--
				next[b]--
				next[c]++
				next[d]++
				k := key(next)
				j, ok := index[k]
				if !ok {
					j = len(all)
					index[k], all = j, append(all, next)
				}
				for len(before) <= j {
					before = append(before, nil)
				}
				before[j] = append(before[j], i)
			}
		}
	}
	for len(good) > 0 {
		j := good[len(good)-1]
		good = good[:len(good)-1]
		for _, i := range before[j] {
			if !reaches[i] {
				good, reaches[i] = append(good, i), true
			}
		}
	}
	if len(reaches) < len(all) {
		t.Errorf("from %d of %d configurations the goal cannot be reached", len(all)-len(reaches), len(all))
	}
	return len(all)
}

// TestSplitJoinGrowsSlowly: from 101 to 10,001 agents the mean time grows by less than a factor of 4, where that of
// four states grows by more than 100, and all answers are right.
func TestSplitJoinGrowsSlowly(t *testing.T) {
	var means []float64
	for _, n := range []float64{101, 10001} {
		times, right := sample(t, SplitJoin, 12, 3, map[string]float64{"n": n})
		mean, _ := moments(times)
		means = append(means, mean)
		if right != len(times) {
			t.Errorf("n = %g: %d of %d answers are right", n, right, len(times))
		}
	}
	if ratio := means[1] / means[0]; ratio > 4 {
		t.Errorf("times %.1f, a factor of %.1f", means, ratio)
	}
}
