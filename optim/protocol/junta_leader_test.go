package protocol

import (
	"slices"
	"testing"

	"brood/models/noise"
)

// TestJuntaTable: the rules stay within the listed states, and a meeting never makes a leader of a follower.
func TestJuntaTable(t *testing.T) {
	for levels := 1; levels <= 5; levels++ {
		p := juntaFor(2)
		p.levels = levels
		all := p.list()
		index := map[juntaState]bool{}
		for _, s := range all {
			index[s] = true
		}
		if len(index) != p.states() || p.states() != 579+2*levels {
			t.Errorf("K = %d: %d states, of which %d are distinct", levels, p.states(), len(index))
		}
		for _, u := range all {
			for _, v := range all {
				a, b := p.meet(u, v)
				if !index[a] || !index[b] {
					t.Fatalf("%+v, %+v -> %+v, %+v", u, v, a, b)
				}
				if a.leads() && !u.leads() || b.leads() && !v.leads() {
					t.Fatalf("a follower leads: %+v, %+v -> %+v, %+v", u, v, a, b)
				}
			}
		}
	}
}

// TestJuntaLevels: K grows as log log n.
func TestJuntaLevels(t *testing.T) {
	for n, want := range map[int]int{2: 1, 20: 1, 30: 2, 101: 2, 1001: 3, 10001: 3, 100001: 4, 1e6: 4, 1e9: 5} {
		if got := juntaLevels(n); got != want {
			t.Errorf("n = %d: K = %d, want %d", n, got, want)
		}
	}
}

// TestJuntaAlwaysOneLeader: with a small clock, every configuration that is reachable has a leader and can reach one
// with a single leader, however far the clocks of its agents are apart.
func TestJuntaAlwaysOneLeader(t *testing.T) {
	for _, c := range []struct {
		n uint64
		p junta
	}{{2, juntaFor(101)}, {3, junta{levels: 2, hours: 4, stages: 2}}, {4, junta{levels: 2, hours: 2, stages: 1}}} {
		table := must(c.p.table())
		first := make([]uint64, len(table.States))
		first[0] = c.n
		total := everyReachable(t, table, first, func(count []uint64) {
			if table.counted(count) == 0 {
				t.Fatalf("%+v: no leader", c)
			}
		})
		t.Logf("%+v: %d configurations", c, total)
	}
}

// TestJuntaElects: elections of 10,001 agents end with a crowned leader, after less than a third of the 10,000 that two
// states take, and there is a leader after each stretch of meetings.
func TestJuntaElects(t *testing.T) {
	const n = 10001
	p := juntaFor(n)
	table := must(p.table())
	crown := slices.Index(p.list(), juntaState{role: crowned})
	for i := range uint32(2) {
		r := newSource(noise.Key{Seed: 1, Purpose: noise.Pair, Member: i})
		agents, count := slices.Repeat([]uint64{1}, n), make([]uint64, len(table.States))
		count[0] = n
		time := 0.0
		for reached := false; !reached; {
			met, now, err := table.runAgents(t.Context(), agents, count, n/7, r)
			if err != nil {
				t.Fatal(err)
			}
			if table.counted(count) == 0 {
				t.Fatal("no leader")
			}
			time, reached = time+float64(met)/n, now
		}
		if count[crown] != 1 || time > n/3 {
			t.Errorf("execution %d: one leader after %.0f, crowned: %v", i, time, count[crown] == 1)
		}
	}
}
