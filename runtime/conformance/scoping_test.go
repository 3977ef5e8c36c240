package conformance

import (
	"math"
	"strconv"
	"testing"

	"brood/optim"
	"brood/optim/collective"
	"brood/optim/coupled"
	"brood/runtime/timeline"
)

// TestScoping: Parle starts with the scoping of its paper, gamma_k = gamma_0 (1 - 1/(2B))^floor(k/ell) for the k-th
// step of a replica and B mini-batches per epoch, and rho accordingly, whether a cycle is one round or several, for any
// number of workers.
func TestScoping(t *testing.T) {
	for _, c := range []struct{ ell, slice int }{{3, 32}, {5, 2}} {
		for _, workers := range []int{1, 3} {
			r := Rig{
				Algorithm: "parle",
				Members:   4,
				Workers:   workers,
				Seed:      2,
				Rounds:    12,
			}.With("variant", "paper").With("batch", "8").With("ell", strconv.Itoa(c.ell)).With("slice", strconv.Itoa(c.slice))
			for _, name := range []string{"gamma", "rho"} {
				k, _ := coupled.Parle.Knob(name)
				r = r.With(name, k.Initial())
			}
			edits := r.edits()
			toy := base0(t)
			shape := optim.Shape{Roster: collective.Place(collective.IDs(r.Members), []int{0}), Layout: toy.Layout(),
				Data: optim.DataSize{Train: toyTrain, Validation: toyValid}}
			if err := timeline.Count(coupled.Parle, nil, edits, shape, timeline.Position{}); err != nil {
				t.Fatal(err)
			}
			for _, e := range edits {
				r = r.With(e.Knob, e.Expr)
			}
			o, B := run(t, r), math.Ceil(toyTrain/8.0)
			seen := map[string]int{}
			for series, start := range map[string]float64{"gamma.inverse": 100, "rho.inverse": 1} {
				least := start / 100
				if series == "rho.inverse" {
					least = 0.1
				}
				k := 0
				for _, rec := range o.Log.Records {
					if p := rec.Points; p != nil && p.Series == series {
						want := max(least, start*math.Pow(1-1/(2*B), math.Floor(float64(k)/float64(c.ell))))
						if got := 1 / p.Values[0]; math.Abs(got-want) > 1e-9*want {
							t.Fatalf("ell %d, slice %d: %s at step %d is %v, want %v", c.ell, c.slice, series, k, got, want)
						}
						seen[series]++
						k += min(c.slice, c.ell-k%c.ell)
					}
				}
			}
			if seen["gamma.inverse"] != 12 || seen["rho.inverse"] != 12 {
				t.Errorf("seen %v", seen)
			}
		}
	}
}
