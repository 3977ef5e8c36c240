package protocol

import (
	"math"
	"slices"
	"testing"

	"brood/models/longtest"
	"brood/models/noise"
	"brood/optim"
)

// ways are the three simulations of an execution. Each returns the meetings at convergence and the counts there.
var ways = map[string]func(t *testing.T, table *Table, first []uint64, r *source) (uint64, []uint64){
	"agents": func(t *testing.T, table *Table, first []uint64, r *source) (uint64, []uint64) {
		var agents []uint64
		for s, c := range first {
			agents = append(agents, slices.Repeat([]uint64{uint64(s) + 1}, int(c))...)
		}
		count := slices.Clone(first)
		met, ok, err := table.runAgents(t.Context(), agents, count, 1<<40, r)
		if err != nil || !ok {
			t.Fatal(met, ok, err)
		}
		return met, count
	},
	"batches": func(t *testing.T, table *Table, first []uint64, r *source) (uint64, []uint64) {
		return byCounts(t, table, first, r, 0)
	},
	"jumps": func(t *testing.T, table *Table, first []uint64, r *source) (uint64, []uint64) {
		return byCounts(t, table, first, r, 2)
	},
}

// byCounts runs in short intervals, so that batches are interrupted too.
func byCounts(t *testing.T, table *Table, first []uint64, r *source, sparse float64) (met uint64, count []uint64) {
	var n uint64
	for _, c := range first {
		n += c
	}
	c := newCountSimulator(table, n)
	c.jumpBelow = sparse
	count = slices.Clone(first)
	for {
		m, ok, err := c.run(t.Context(), count, n/3+1, r)
		if err != nil {
			t.Fatal(err)
		}
		if met += m; ok {
			return met, count
		}
	}
}

// smirnov returns the scaled two-sample Kolmogorov-Smirnov statistic. It exceeds 2.23 with probability 1e-4 for
// continuous values, and with a lower probability for values with ties.
func smirnov(a, b []float64) float64 {
	slices.Sort(a)
	slices.Sort(b)
	var i, j int
	var d float64
	for i < len(a) && j < len(b) {
		x := min(a[i], b[j])
		for i < len(a) && a[i] == x {
			i++
		}
		for j < len(b) && b[j] == x {
			j++
		}
		d = max(d, math.Abs(float64(i)/float64(len(a))-float64(j)/float64(len(b))))
	}
	return d * math.Sqrt(float64(len(a))*float64(len(b))/float64(len(a)+len(b)))
}

const farDistance = 2.23

// TestWaysAgree: simulations agent by agent, in batches and in jumps have the same distribution of convergence times
// and final counts, at a confidence of 1 - 1e-4 per comparison, with fixed seeds. The number of executions reveals a
// shift of 0.4 standard deviations, or of 0.25 with BROOD_LONG=studies.
func TestWaysAgree(t *testing.T) {
	executions := 300
	if longtest.On(longtest.Studies) {
		executions = 1500
	}
	values := func(a *optim.Algorithm, set map[string]float64) optim.Values {
		return a.Values(set)
	}
	clock := must(junta{levels: 1, hours: 8, stages: 1}.table())
	parity, err := Parity.begin(20)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		table *Table
		first []uint64
	}{
		"or":             {OR.Program.(finite).table(optim.Values{}), []uint64{199, 1}},
		"leader":         {Leader.Program.(finite).table(optim.Values{}), []uint64{40, 0}},
		"exact-majority": {ExactMajority.Program.(finite).table(optim.Values{}), []uint64{110, 90, 0, 0}},
		"two-way":        {ApproximateMajority.Program.(finite).table(values(ApproximateMajority, nil)), []uint64{153, 147, 0}},
		"one-way":        {ApproximateMajority.Program.(finite).table(values(ApproximateMajority, map[string]float64{"rule": 1})), []uint64{153, 147, 0}},
		"average":        {must(average(5, 2)), []uint64{53, 47, 0, 0, 0, 0, 0, 0, 0, 0}},
		"split-join":     {must(splitJoin(6)), slices.Concat([]uint64{26, 25}, make([]uint64, 44))},
		"junta-leader":   {clock, slices.Concat([]uint64{20}, make([]uint64, len(clock.States)-1))},
		"parity":         {must(Parity.Compile()), parity},
		"two agents":     {Leader.Program.(finite).table(optim.Values{}), []uint64{2, 0}},
	} {
		times, ends := map[string][]float64{}, map[string][]float64{}
		for way, run := range ways {
			for i := range executions {
				r := newSource(noise.Key{Seed: uint64(len(way)), Purpose: noise.Pair, Member: uint32(i)})
				met, count := run(t, c.table, c.first, r)
				if !c.table.reached(count) {
					t.Fatalf("%s by %s: stopped at %d", name, way, count)
				}
				times[way] = append(times[way], float64(met))
				ends[way] = append(ends[way], float64(count[0]))
			}
		}
		for _, way := range []string{"batches", "jumps"} {
			if d := smirnov(times["agents"], times[way]); d > farDistance {
				t.Errorf("%s: times by %s differ from those agent by agent: %.2f", name, way, d)
			}
			if d := smirnov(ends["agents"], ends[way]); d > farDistance {
				t.Errorf("%s: ends by %s differ from those agent by agent: %.2f", name, way, d)
			}
		}
	}
}

// TestWaysAgreeBeforeConvergence compares the counts after a fixed number of meetings, too few to converge.
func TestWaysAgreeBeforeConvergence(t *testing.T) {
	const executions, met = 3000, 150
	table := must(average(5, 2))
	first := []uint64{53, 47, 0, 0, 0, 0, 0, 0, 0, 0}
	got := map[string][][]float64{}
	for way, sparse := range map[string]float64{"agents": -1, "batches": 0, "jumps": 2} {
		got[way] = make([][]float64, len(first))
		for i := range executions {
			r := newSource(noise.Key{Seed: uint64(len(way)), Purpose: noise.Pair, Member: uint32(i)})
			count := slices.Clone(first)
			var err error
			if sparse < 0 {
				agents := append(slices.Repeat([]uint64{1}, 53), slices.Repeat([]uint64{2}, 47)...)
				_, _, err = table.runAgents(t.Context(), agents, count, met, r)
			} else {
				c := newCountSimulator(table, 100)
				c.jumpBelow = sparse
				_, _, err = c.run(t.Context(), count, met, r)
			}
			if err != nil {
				t.Fatal(err)
			}
			for s, x := range count {
				got[way][s] = append(got[way][s], float64(x))
			}
		}
	}
	for s := range first {
		for _, way := range []string{"batches", "jumps"} {
			if d := smirnov(got["agents"][s], got[way][s]); d > farDistance {
				t.Errorf("state %s: counts by %s differ from those agent by agent: %.2f", table.States[s], way, d)
			}
		}
	}
}

// TestConquer: the table conserves the sum of values, and equals a naive version without states (d = 1).
func TestConquer(t *testing.T) {
	for _, c := range [][2]int{{1, 1}, {3, 1}, {5, 3}, {21, 1}, {101, 1}} {
		table := must(average(c[0], c[1]))
		if want := c[0] + 2*c[1] + 1; len(table.States) != want {
			t.Errorf("m = %d, d = %d: %d states, want %d", c[0], c[1], len(table.States), want)
		}
	}
	const n, m, executions = 31, 7, 1500
	table := must(average(m, 1))
	first := make([]uint64, len(table.States))
	first[0], first[1] = 16, 15
	var a, b []float64
	for i := range uint32(executions) {
		met, _ := ways["agents"](t, table, first, newSource(noise.Key{Seed: 1, Purpose: noise.Pair, Member: i}))
		a = append(a, float64(met))
		b = append(b, float64(naiveAverage(t, n, m, newSource(noise.Key{Seed: 2, Purpose: noise.Pair, Member: i}))))
	}
	if d := smirnov(a, b); d > farDistance {
		t.Errorf("the table and the naive version differ: %.2f", d)
	}
}

// naiveAverage simulates values and signs of n agents, where A leads by 1, until all signs agree. It returns the number
// of meetings.
func naiveAverage(t *testing.T, n, m int, r *source) (met int) {
	value, positive := make([]int, n), make([]bool, n)
	for i := range value {
		positive[i] = i <= n/2
		if value[i] = -m; positive[i] {
			value[i] = m
		}
	}
	for ; slices.Contains(positive, false); met++ {
		if !slices.Contains(positive, true) {
			t.Fatal("the minority won")
		}
		i, j := r.distinctPair(uint64(n))
		x, y := value[i], value[j]
		switch {
		case x*y != 0 && (x*x > 1 || y*y > 1):
			low := int(math.Floor(float64(x+y) / 2))
			high := low
			if low%2 == 0 {
				low, high = low-1, low+1
			}
			value[i], value[j], positive[i], positive[j] = low, high, low > 0, high > 0
		case x == 0 && y != 0:
			positive[i] = y > 0
		case y == 0 && x != 0:
			positive[j] = x > 0
		case x+y == 0 && x != 0:
			value[i], value[j], positive[i], positive[j] = 0, 0, false, true
		}
		sum := 0
		for _, v := range value {
			sum += v
		}
		if sum != m {
			t.Fatalf("the sum of values is %d, was %d", sum, m)
		}
	}
	return met
}
