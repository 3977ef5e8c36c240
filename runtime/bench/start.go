package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"brood/runtime/control"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/session"
	"brood/runtime/view"
)

// Start measures the start of a run: the time until its control socket is open, the time of the first centre loss, and
// how far the loss falls in three seconds. launch starts the run and returns a client of its control socket, which
// Start closes. If Start returns nil, the run has accepted the command to stop; else the caller ends it.
func Start(ctx context.Context, launch func() (*control.Client, error), report func(Figure)) error {
	t0 := time.Now()
	client, err := launch()
	if err != nil {
		return err
	}
	defer client.Close()
	report(Figure{Name: "control socket open", Value: time.Since(t0).Seconds(), Unit: "s"})
	ratio, first, err := watchFall(ctx, client, t0, report)
	if err != nil {
		return err
	}
	report(Figure{
		Name:  "centre loss after 3 s",
		Value: ratio,
		Unit:  "of first",
		Note:  fmt.Sprintf("median of the last ten points; the first was %.4g; goal at most 0.7", first),
	})
	_, err = client.Command(ctx, event.Command{Action: event.Stop, By: "bench"})
	return err
}

// watchFall follows the centre's loss for three seconds after t0 and reports the time of the first value. ratio is the
// median of the last ten values divided by the first. It fails if no value arrives.
func watchFall(ctx context.Context, client *control.Client, t0 time.Time, report func(Figure)) (ratio,
	first float64, err error) {
	var losses []float64
	deadline := t0.Add(3 * time.Second)
	for at := uint64(0); time.Now().Before(deadline); {
		b, err := client.Next(ctx, at, 1024)
		if err != nil {
			return 0, 0, err
		}
		at = b.Next
		for _, r := range b.Records {
			if r.Points != nil && r.Points.Series == event.SeriesCentre && time.Unix(0, r.At).Before(deadline) {
				if len(losses) == 0 {
					report(Figure{Name: "first centre loss", Value: time.Unix(0, r.At).Sub(t0).Seconds(), Unit: "s"})
				}
				losses = append(losses, r.Points.Values...)
			}
		}
	}
	if len(losses) == 0 {
		return 0, 0, errors.New("no loss within 3 s: the machine is too slow or too busy")
	}
	start := losses[0]
	return view.Median(losses[max(0, len(losses)-10):]) / start, start, nil
}

// Steps trains some algorithms for 3 s each, with mlp on glyphs, and reports their rounds and samples a second. It
// writes their sessions to dir.
func Steps(ctx context.Context, dir string, report func(Figure)) error {
	for _, alg := range []string{"dp-sgd", "parle", "popsgd", "openai-es", "pesgd"} {
		o := host.Options{
			Algorithm: alg,
			Model:     "mlp",
			Data:      "glyphs",
			Members:   4,
			Workers:   2,
			Seed:      1,
			Limit:     event.Limit{Seconds: 3},
		}
		last, sec, err := train(ctx, filepath.Join(dir, alg), o)
		if err != nil {
			return err
		}
		report(Figure{Name: alg + " rounds", Value: float64(last.Progress.Rounds) / sec, Unit: "/s"})
		report(Figure{
			Name:  alg + " samples",
			Value: float64(last.Progress.Samples) / sec,
			Unit:  "/s",
			Note:  "mlp on glyphs, 4 members, 2 workers",
		})
	}
	return nil
}

// train runs a job in this process. It returns the last commit and the sum of the round times in seconds.
func train(ctx context.Context, dir string, o host.Options) (last event.Commit, seconds float64, err error) {
	j, err := host.Prepare(o)
	if err != nil {
		return last, 0, err
	}
	sess, err := session.Create(dir)
	if err != nil {
		return last, 0, err
	}
	var busy int64
	run, err := host.Start(j, sess, nil, func(r event.Record) {
		if r.Commit != nil {
			last, busy = *r.Commit, busy+r.Commit.Nanos
		}
	})
	if err != nil {
		return last, 0, err
	}
	_, err = run.Train(ctx)
	return last, float64(busy) / 1e9, errors.Join(err, run.Close())
}
