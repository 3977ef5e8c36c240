package optim

import (
	"slices"
	"testing"

	"brood/models/engine"
	"brood/optim/collective"
)

// trainOnly is a data set with the given number of training samples, of ten classes, and no others.
type trainOnly int

func (n trainOnly) Train() []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i)
	}
	return out
}
func (trainOnly) Validation() []int32  { return nil }
func (trainOnly) Label(id int32) int32 { return id % 10 }

// streams is an algorithm with the knobs of the data streams only.
var streams = &Algorithm{Knobs: MemberStream}

// TestPassSamples: passSamples returns the sum of the sizes of all parts.
func TestPassSamples(t *testing.T) {
	for _, samples := range []int{1, 7, 10, 1000} {
		for _, members := range []int{1, 3, 7, 10, 64, 999} {
			for _, set := range []map[string]float64{nil, {"split": 0.001}, {"split": 0.15}, {"split": 0.5}, {"parts": 1},
				{"parts": 2, "shards": 1}, {"parts": 3, "concentration": 0.1}} {
				e := &Env{Data: trainOnly(samples), Roster: collective.Place(collective.IDs(members), []int{0, 2})}
				k := streams.Values(set)
				if k.ByClass() && members > samples {
					continue
				}
				e.Deal(k)
				want := int64(0)
				for _, m := range e.Roster.Members {
					want += int64(e.Samples(m))
				}
				if got := e.passSamples(); got != want {
					t.Errorf("%d samples, %d members with %v: %d, want %d", samples, members, set, got, want)
				}
			}
		}
	}
}

// TestDeal: a member draws from its part only, each sample once a pass. Parts by class cover the training set, follow
// from the seed, and are the same on every worker; another number of members deals again.
func TestDeal(t *testing.T) {
	for _, parts := range []float64{2, 3} {
		k := streams.Values(map[string]float64{"parts": parts, "concentration": 0.1})
		drawn := func(seed uint64, members int) (out [][]int32) {
			for self, w := range []int{0, 1} {
				e := &Env{Seed: seed, Data: trainOnly(200), Self: w, Roster: collective.Place(collective.IDs(members), []int{0, 1})}
				e.Mine = e.Roster.Hosted(self)
				e.Deal(k)
				for _, m := range e.Mine {
					pass := e.Stream(m, 0, e.Samples(m))
					if next := e.Stream(m, uint64(len(pass)), len(pass)); !slices.Equal(slices.Sorted(slices.Values(next)),
						slices.Sorted(slices.Values(pass))) {
						t.Errorf("parts %g, member %d: two passes draw different samples", parts, m)
					}
					out = append(out, pass)
				}
			}
			return out
		}
		five := drawn(1, 5)
		if all := slices.Sorted(slices.Values(slices.Concat(five...))); !slices.Equal(all, trainOnly(200).Train()) {
			t.Errorf("parts %g: members draw %d samples, want each of 200 once", parts, len(all))
		}
		if !slices.EqualFunc(five, drawn(1, 5), slices.Equal) || slices.EqualFunc(five, drawn(2, 5), slices.Equal) {
			t.Errorf("parts %g: parts must follow from the seed", parts)
		}
		e := &Env{Seed: 1, Data: trainOnly(200), Roster: collective.Place(collective.IDs(5), []int{0})}
		e.Deal(k)
		e.Roster = collective.Place([]engine.Member{0, 1, 2, 3, 4, 9}, []int{0})
		if e.Deal(k); !slices.Equal(slices.Sorted(slices.Values(e.Stream(9, 0, e.Samples(9)))),
			slices.Sorted(slices.Values(drawn(1, 6)[5]))) {
			t.Errorf("parts %g: parts must follow from the number of members and the rank", parts)
		}
	}
}
