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

// TestFlatFitnessAlert: an objective whose fitness is constant, or is constant when rounded to float32, raises one
// alert, however long that lasts. The alert names what to return. An objective whose fitness differs raises none.
func TestFlatFitnessAlert(t *testing.T) {
	for name, c := range map[string]struct {
		f    func(x float64) float64
		want int
	}{
		"constant": {func(float64) float64 { return 3 }, 1},
		"large":    {func(x float64) float64 { return 1e9 - 1e-3*x*x }, 1},
		"small":    {func(x float64) float64 { return -1e-300 * x * x }, 1},
		"differs":  {func(x float64) float64 { return -x * x }, 0},
	} {
		own := &host.Own{Objective: &objective.Objective{Spec: objective.Flat(3),
			Func: func(x []float32, _ uint64) (float64, error) { return c.f(float64(x[0] - 1)), nil }}}
		job, err := host.Prepare(host.Options{
			Algorithm: "pgpe",
			Members:   16,
			Workers:   2,
			Seed:      1,
			Limit:     event.Limit{Rounds: 20},
			Own:       own,
		})
		if err != nil {
			t.Fatal(err)
		}
		s, err := session.Create(filepath.Join(t.TempDir(), "s"))
		if err != nil {
			t.Fatal(err)
		}
		var alerts []string
		run, err := host.Start(job, s, nil, func(rec event.Record) {
			if rec.Alert != nil && rec.Alert.Kind == event.AlertFlat {
				alerts = append(alerts, rec.Alert.Text)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = run.Train(context.Background())
		if err = errors.Join(err, run.Close()); err != nil {
			t.Fatal(err)
		}
		if len(alerts) != c.want || c.want > 0 &&
			!strings.HasPrefix(alerts[0], "fitness is equal for all 16 candidates since round 1: "+
				"return differences that float32 can hold") {
			t.Errorf("%s: alerts %q", name, alerts)
		}
	}
}
