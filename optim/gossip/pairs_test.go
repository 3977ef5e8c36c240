package gossip

import (
	"slices"
	"testing"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/optimtest"
)

// met returns the partners that a report lists, by member and in order.
func met(t *testing.T, rep optim.Report) map[engine.Member][]engine.Member {
	t.Helper()
	out, last := map[engine.Member][]engine.Member{}, engine.Member(0)
	for _, p := range rep.Points {
		if p.Series == optim.SeriesPartner.Name {
			if p.Member < last {
				t.Errorf("member %d follows %d", p.Member, last)
			}
			last = p.Member
			out[p.Member] = append(out[p.Member], engine.Member(p.Value))
		}
	}
	return out
}

// Both members of a meeting report it, in the order in which a reference draws the meetings. A member without a meeting
// reports itself.
func TestPartnersAreMutual(t *testing.T) {
	const n, rounds = 7, 12
	for _, c := range []struct {
		alg      *optim.Algorithm
		turned   optimtest.Set
		meetings func(p *optimtest.Population, round uint64) [][2]engine.Member
	}{
		{PopSGD, optimtest.Set{"mode": "blocking"}, func(p *optimtest.Population, r uint64) [][2]engine.Member {
			return Meetings(p.Rand(noise.Pair, r, 0), p.Roster.Members, n/2)
		}},
		{PopSGD, optimtest.Set{"mode": "non-blocking"}, func(p *optimtest.Population, r uint64) [][2]engine.Member {
			return Meetings(p.Rand(noise.Pair, r, 0), p.Roster.Members, n/2)
		}},
		{PopSGD, optimtest.Set{"mode": "one-sided"}, func(p *optimtest.Population, r uint64) [][2]engine.Member {
			return Meetings(p.Rand(noise.Pair, r, 0), p.Roster.Members, n)
		}},
		{PopSGD, optimtest.Set{"pairing": "matching"}, func(p *optimtest.Population, r uint64) [][2]engine.Member {
			return Pairing(p.Rand(noise.Pair, r, 0), p.Roster.Members)
		}},
		{ADPSGD, optimtest.Set{"gossip": 1.5}, func(p *optimtest.Population, r uint64) [][2]engine.Member {
			return adPSGDEvents(p.Rand(noise.Pair, r, 0), p.Roster.Members, 1.5)
		}},
	} {
		c.turned["batch"] = 4
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, c.alg, n, c.turned)
		alone, often := 0, 0
		for round := range uint64(rounds) {
			got, want := met(t, p.Rounds(1)), map[engine.Member][]engine.Member{}
			for _, ab := range c.meetings(p, round) {
				if a, b := ab[0], ab[1]; a != b {
					want[a], want[b] = append(want[a], b), append(want[b], a)
				}
			}
			times := map[[2]engine.Member]int{}
			for _, m := range p.Roster.Members {
				if len(want[m]) == 0 {
					want[m] = []engine.Member{m}
					alone++
				}
				if often = max(often, len(want[m])); !slices.Equal(got[m], want[m]) {
					t.Errorf("%s %v, round %d: member %d met %v, want %v", c.alg.Name, c.turned, round, m, got[m], want[m])
				}
				for _, partner := range got[m] {
					times[[2]engine.Member{m, partner}]++
				}
			}
			for ab, k := range times {
				if back := times[[2]engine.Member{ab[1], ab[0]}]; back != k {
					t.Errorf("%s %v, round %d: %d met %d %d times, who met it %d times", c.alg.Name, c.turned, round, ab[0],
						ab[1], k, back)
				}
			}
		}
		if c.turned["pairing"] == "matching" {
			if alone != rounds || often != 1 {
				t.Errorf("matching: %d times alone in %d rounds, at most %d meetings of one", alone, rounds, often)
			}
		} else if alone == 0 || often < 2 {
			t.Errorf("%s %v: %d members alone, at most %d meetings of one: nothing is tested", c.alg.Name, c.turned,
				alone, often)
		}
	}
}

// Only the sender of a push reports it. The receiver is 2^a further on the ring, and a advances by one each round.
func TestPartnersOfPushes(t *testing.T) {
	for _, n := range []int{2, 5, 8} {
		for peers := 1; peers <= min(2, len(sgpHops(n))); peers++ {
			p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, SGP, n,
				optimtest.Set{"peers": float64(peers), "batch": 4})
			for round := range 7 {
				got := met(t, p.Rounds(1))
				for i := range n {
					var want []engine.Member
					for a := range peers {
						want = append(want, engine.Member((i+1<<((round+a)%len(sgpHops(n))))%n))
					}
					has := slices.Clone(got[engine.Member(i)])
					slices.Sort(has)
					if slices.Sort(want); !slices.Equal(has, want) {
						t.Errorf("%d members, %d peers, round %d: %d pushes to %v, want %v", n, peers, round, i, has, want)
					}
				}
			}
		}
	}
}
