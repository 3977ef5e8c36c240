package conformance

import (
	"fmt"
	"testing"
)

// TestCohorts: members beyond one cohort step after the others, and no bit tells: eight workers with a cohort each and
// one with three come to the same state.
func TestCohorts(t *testing.T) {
	for _, v := range []struct {
		algorithm string
		set       [][2]string
	}{
		{"parle", nil},
		{"parle", [][2]string{{"thermal", "0.01"}, {"clip", "0.5"}, {"decay", "0.01"}, {"slice", "2"}, {"inner", "zeroed"}, {"wire", "int8"}}},
		{"parle", [][2]string{{"variant", "paper"}, {"split", "0.05"}}},
		{"localsgd", [][2]string{{"h", "3"}, {"warmup", "2"}, {"decay", "0.01"}}},
		{"diloco", [][2]string{{"h", "3"}}},
		{"elastic", nil},
		{"popsgd", [][2]string{{"steps", "geometric"}, {"h", "3"}}},
		{"pesgd", [][2]string{{"vary", "2"}}},
	} {
		t.Run(fmt.Sprintf("%s/%v", v.algorithm, v.set), func(t *testing.T) {
			r := quick(Rig{Algorithm: v.algorithm, Members: 40, Workers: 8, Rounds: 5, Seed: 3, Stats: true})
			for _, s := range v.set {
				r = r.With(s[0], s[1])
			}
			want := run(t, r).Hash()
			for _, workers := range []int{1, 2, 3} {
				r.Workers = workers
				if got := run(t, r).Hash(); got != want {
					t.Errorf("%d workers: %s, eight %s", workers, got, want)
				}
			}
		})
	}
}
