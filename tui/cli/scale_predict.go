package cli

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"brood/presets"
	"brood/runtime/forecast"
	"brood/runtime/scaling"
	"brood/runtime/simulate"
	"brood/tui/textfmt"
)

const (
	predictedRounds   = 40          // simulated rounds of a fleet
	predictionMeasure = time.Second // measuring time of the computing of a round
)

// prediction is a predicted kind of run beside its measurement.
type prediction struct {
	scaling.Key
	forecast.Fleet
	measured scaling.Figures // zero: not measured
}

// ratio returns the predicted over the measured time of a round, as text; a dash if there is no measurement.
func (x prediction) ratio() string {
	if x.measured.Commits < scaling.Least {
		return "–"
	}
	return fmt.Sprintf("%.2f", x.Seconds/x.measured.Round)
}

// predictPlan predicts the rounds of a plan on these fleet sizes, and prints them beside the measured ones.
func (f *scaleFlags) predictPlan(ctx context.Context, p presets.Scaling, measured scaling.Results, s streams) error {
	if p.Target != "" {
		return usage("plan %s has a target: a simulated fleet trains nothing, so it cannot tell when the target is met: "+
			"give a plan with rounds", p.Name)
	}
	perByte, hop, err := simulate.Loopback(ctx, predictionMeasure/4)
	if err != nil {
		return fmt.Errorf("measure the cost of a connection on this machine: %w", err)
	}
	sizes := f.workers
	if sizes == nil {
		sizes = p.Workers
	}
	var all []prediction
	for _, n := range sizes {
		for _, r := range p.Runs(n) {
			x, err := f.predictRun(ctx, p, r, perByte, hop, s)
			if err != nil {
				return fmt.Errorf("plan %s, curve %s: %w", p.Name, r.Curve.Name, err)
			}
			x.measured = measured.Of[x.Key]
			all = append(all, x)
		}
	}
	slices.SortStableFunc(all, func(a, b prediction) int {
		return slices.Index(measured.Curves, a.Curve) - slices.Index(measured.Curves, b.Curve)
	})
	if f.out != "" {
		if err := writePredictions(filepath.Join(f.out, p.Name+"-predicted.csv"), all); err != nil {
			return fmt.Errorf("write the figures: %w", err)
		}
	}
	if *f.json {
		for _, x := range all {
			out := map[string]any{"event": "predicted", "plan": p.Name, "curve": x.Curve, "link": x.Link,
				"workers": x.Key.Workers, "members": x.Key.Members, "round_seconds": x.Seconds, "round_bytes": x.Bytes,
				"training_share": x.Training, "samples_per_second": x.Rate}
			if x.measured.Commits >= scaling.Least {
				out["measured_round_seconds"] = x.measured.Round
			}
			if err := objects(s.out, out); err != nil {
				return err
			}
		}
		return nil
	}
	printPredictions(s.out, p, all)
	return nil
}

// predictRun predicts one kind of run. perByte and hop are the costs of a connection, in seconds.
func (f *scaleFlags) predictRun(ctx context.Context, p presets.Scaling, r presets.Run, perByte, hop float64,
	s streams) (x prediction, err error) {
	o, err := planOptions(r)
	if err != nil {
		return x, err
	}
	o.Threads = 1
	link, err := planLink(p, r.Link)
	if err != nil {
		return x, err
	}
	frames := p.Slow
	if p.FastFrames {
		frames = 1
	}
	rows, err := forecast.Fleets{
		Options: o,
		Sizes:   []int{r.Workers},
		Rounds:  predictedRounds,
		Measure: predictionMeasure,
		Progress: func(text string) {
			if s.terminal && !*f.json {
				fmt.Fprint(exact(s.err), "\r\033[K"+text)
			}
		},
		Note: func(text string) { fmt.Fprintln(s.err, "brood: "+text) },
		Shape: func(cfg *simulate.Config) {
			shaped := simulate.Link{Rate: float64(link.Rate), Delay: link.Delay}
			cfg.Link = func(int, int) simulate.Link { return shaped }
			cfg.PerByte, cfg.Hop = frames*perByte, frames*hop
			drawn := cfg.Pace
			cfg.Pace = func(w int, uniform func() float64) float64 { return p.Slow * drawn(w, uniform) }
		},
	}.Predict(ctx)
	if s.terminal && !*f.json {
		fmt.Fprint(exact(s.err), "\r\033[K")
	}
	if err != nil {
		return x, err
	}
	return prediction{
		Key:   scaling.Key{Curve: r.Curve.Name, Link: r.Link, Workers: r.Workers, Members: r.Members},
		Fleet: rows[0],
	}, nil
}

// writePredictions writes the predictions as a table, in seconds and bytes.
func writePredictions(file string, all []prediction) error {
	var text strings.Builder
	w := csv.NewWriter(&text) // writing to a builder cannot fail
	_ = w.Write([]string{"curve", "link", "workers", "members", "round_seconds", "round_bytes", "training_share",
		"samples_per_second", "measured_round_seconds"})
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }
	for _, x := range all {
		measured := ""
		if x.measured.Commits >= scaling.Least {
			measured = number(x.measured.Round)
		}
		_ = w.Write([]string{x.Curve, x.Link, strconv.Itoa(x.Key.Workers), strconv.Itoa(x.Key.Members), number(x.Seconds),
			number(x.Bytes), number(x.Training), number(x.Rate), measured})
	}
	w.Flush()
	return os.WriteFile(file, []byte(text.String()), 0o644)
}

func printPredictions(w io.Writer, p presets.Scaling, all []prediction) {
	fmt.Fprintf(w, "%s, predicted\n\n", p.Title)
	t := newTable("curve", "link", ">members", ">workers", ">a round", ">measured", ">of it", ">training",
		">sent a round", ">samples/s")
	for _, x := range all {
		measured := "–"
		if x.measured.Commits >= scaling.Least {
			measured = seconds(x.measured.Round)
		}
		t.row(x.Curve, x.Link, strconv.Itoa(x.Key.Members), strconv.Itoa(x.Key.Workers), seconds(x.Seconds), measured,
			x.ratio(), fmt.Sprintf("%.0f%%", 100*x.Training), textfmt.Size(x.Bytes), textfmt.Grouped(int(x.Rate)))
	}
	t.write(w)
}
