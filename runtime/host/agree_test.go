package host

import (
	"math"
	"path/filepath"
	"testing"

	"brood/models/longtest"
	"brood/runtime/event"
)

// TestEnginesAgree: runs on both engines end at the same mean loss. The engines add in different orders, so runs with
// the same seed diverge after some steps; the means over five seeds may differ by two standard errors of their
// difference. Where both engines compute the same function, the mean absolute difference of two runs with the same seed
// must also be below half of the standard deviation over seeds.
func TestEnginesAgree(t *testing.T) {
	longtest.Need(t, longtest.Arithmetic, "trains thirty models")
	for _, c := range []struct {
		model, algorithm string
		members          int
		rounds           uint64
		set              []event.Setting
	}{
		{"mlp", "dp-sgd", 2, 60, nil},
		{"lenets", "parle", 2, 4, nil}, // batch-norm and dropout
		{"mlp", "openai-es", 16, 30, nil},
	} {
		t.Run(c.model+" "+c.algorithm, func(t *testing.T) {
			end := map[string][]float64{}
			for seed := uint64(1); seed <= 5; seed++ {
				for _, name := range []string{"native", "gorgonia"} {
					t.Setenv("BROOD_ENGINE", name)
					loss := math.NaN()
					j := prepare(t, Options{Model: c.model, Data: "glyphs", Algorithm: c.algorithm, Members: c.members, Workers: 1,
						Seed: seed, Limit: event.Limit{Rounds: c.rounds}, By: "test", Set: c.set})
					train(t, filepath.Join(t.TempDir(), "s"), j, nil, func(_ *Run, r event.Record) {
						if p := r.Points; p != nil && p.Series == "centre.loss" {
							loss = p.Values[0]
						}
					})
					end[name] = append(end[name], loss)
				}
			}
			ours, theirs := end["native"], end["gorgonia"]
			a, sa := meanError(ours)
			b, sb := meanError(theirs)
			var gap float64
			for i := range ours {
				gap += math.Abs(ours[i]-theirs[i]) / float64(len(ours))
			}
			spread := sa * math.Sqrt(float64(len(ours)))
			t.Logf("native %.4f ± %.4f, gorgonia %.4f ± %.4f, difference of two runs %.2g, of two seeds %.2g", a, sa, b, sb,
				gap, spread)
			if !(math.Abs(a-b) <= 2*math.Hypot(sa, sb)) {
				t.Errorf("mean loss %.4f on the native engine, %.4f on gorgonia: they differ by more than two standard errors", a,
					b)
			}
			if !(gap <= spread/2) {
				t.Errorf("runs with the same seed differ by %.3g, runs with different seeds by %.3g", gap, spread)
			}
		})
	}
}

// meanError returns the mean and its standard error.
func meanError(x []float64) (m, se float64) {
	for _, v := range x {
		m += v / float64(len(x))
	}
	for _, v := range x {
		se += (v - m) * (v - m)
	}
	n := float64(len(x))
	return m, math.Sqrt(se / (n - 1) / n)
}
