package host_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"brood/models/objective"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/session"
)

// TestFlatFitnessIsTold: an objective whose fitness is constant, or is so in float32, raises one alert that says what
// to return, on a stretch of any length; one whose fitness differs raises none.
func TestFlatFitnessIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		f    func(x float64) float64
		told int
	}{
		"constant": {func(float64) float64 { return 3 }, 1},
		"large":    {func(x float64) float64 { return 1e9 - 1e-3*x*x }, 1},
		"small":    {func(x float64) float64 { return -1e-300 * x * x }, 1},
		"differs":  {func(x float64) float64 { return -x * x }, 0},
	} {
		own := &host.Own{Objective: &objective.Objective{Spec: objective.Flat(3), Func: func(x []float32, _ uint64) (float64, error) { return c.f(float64(x[0] - 1)), nil }}}
		job, err := host.Prepare(host.Options{Algorithm: "pgpe", Members: 16, Workers: 2, Seed: 1, Limit: event.Limit{Rounds: 20}, Own: own})
		if err != nil {
			t.Fatal(err)
		}
		s, err := session.Create(filepath.Join(t.TempDir(), "s"))
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		run, err := host.Start(job, s, nil, func(rec event.Record) {
			if rec.Alert != nil && rec.Alert.Kind == event.AlertFlat {
				told = append(told, rec.Alert.Text)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = run.Train(context.Background())
		if err = errors.Join(err, run.Close()); err != nil {
			t.Fatal(err)
		}
		if len(told) != c.told || c.told > 0 && !strings.HasPrefix(told[0], "fitness is equal for all 16 candidates since round 1: return differences that float32 can hold") {
			t.Errorf("%s: told %q", name, told)
		}
	}
}
