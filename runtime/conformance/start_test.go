package conformance

import (
	"fmt"
	"slices"
	"testing"

	"brood/models/engine"
)

// TestStart: members start with separate initialisations or with the same one, and each algorithm has its default.
func TestStart(t *testing.T) {
	for algorithm, without := range map[string]string{"pesgd": "own", "popsgd": "same", "ga": "own"} {
		for _, start := range []string{"same", "own"} {
			r := quick(Rig{Algorithm: algorithm, Members: 4, Workers: 2, Seed: 3, Rounds: 12})
			toy, _, blocks := r.With("start", start).alone(t)
			rows, drawn := blocks(), make([]float32, toy.Layout().Params)
			for m := range engine.Member(4) {
				of := m
				if start == "same" {
					of = 0
				}
				toy.Init(r.Seed)(t.Context(), of, drawn)
				if x := rows[fmt.Sprintf("x/%d", m)].F; !slices.Equal(x, drawn) {
					t.Errorf("%s, start %s: member %d has other initial values", algorithm, start, m)
				}
			}
			if same := run(t, r).Hash() == run(t, r.With("start", start)).Hash(); same != (start == without) {
				t.Errorf("%s: the default equals start %s: %t", algorithm, start, same)
			}
		}
	}
}
