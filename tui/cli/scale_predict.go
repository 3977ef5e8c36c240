package cli

import (
	"bytes"
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

// prediction is a predicted kind of run with its measurement.
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

// checkPrediction returns an error if the plan cannot be predicted, or has no run with one of the fleet sizes.
func (f *scaleFlags) checkPrediction(p presets.Scaling) error {
	if p.Target != "" {
		return usage("plan %s has a target: a simulated fleet trains nothing, so it cannot tell when the target is met: "+
			"give a plan with rounds", p.Name)
	}
	for _, n := range f.workers {
		if len(p.Runs(n)) == 0 {
			return usage("plan %s has no run with %d workers: it has populations of at most %d members", p.Name, n,
				slices.Max(p.Members))
		}
	}
	return nil
}

// predictPlan predicts the rounds of a plan on these fleet sizes, and prints them next to the measured ones.
func (f *scaleFlags) predictPlan(ctx context.Context, p presets.Scaling, measured scaling.Results, s streams) error {
	perByte, hop, err := simulate.Loopback(ctx, predictionMeasure/4)
	if err != nil {
		return fmt.Errorf("measure the cost of a connection on this machine: %w", err)
	}
	sizes := slices.Compact(slices.Sorted(slices.Values(f.workers)))
	if sizes == nil {
		sizes = p.Workers
	}
	var all []prediction
	for _, g := range predictedGroups(p, sizes) {
		rows, err := f.predictGroup(ctx, p, g, perByte, hop, s)
		if err != nil {
			return fmt.Errorf("plan %s, curve %s: %w", p.Name, g[0].Curve.Name, err)
		}
		for _, x := range rows {
			x.measured = measured.Of[x.Key]
			all = append(all, x)
		}
	}
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

// predictedGroups returns the runs of a plan on fleets of these sizes, in groups that share the measurement of what
// computing costs here: the runs of a curve and a link that differ only in the size of the fleet.
func predictedGroups(p presets.Scaling, sizes []int) (groups [][]presets.Run) {
	at := map[string]int{}
	for _, c := range p.Curves {
		for _, n := range sizes {
			for _, r := range p.Runs(n) {
				if r.Curve.Name != c.Name {
					continue
				}
				key := fmt.Sprint(c.Name, "\x00", r.Link, "\x00", r.Members)
				if each := r.Members / n; slices.Contains(p.Each, each) && r.Members == each*n {
					key = fmt.Sprint(c.Name, "\x00", r.Link, "\x00each", each)
				}
				if slices.ContainsFunc(c.Set, func(x string) bool { return strings.HasSuffix(x, "=workers") }) {
					key += fmt.Sprint("\x00", n) // its knobs depend on the size
				}
				i, ok := at[key]
				if !ok {
					i = len(groups)
					at[key], groups = i, append(groups, nil)
				}
				groups[i] = append(groups[i], r)
			}
		}
	}
	return groups
}

// predictGroup predicts the runs of a group. perByte and hop are the costs of a connection, in seconds.
func (f *scaleFlags) predictGroup(ctx context.Context, p presets.Scaling, group []presets.Run, perByte, hop float64,
	s streams) (out []prediction, err error) {
	fleets, err := planFleets(p, group, perByte, hop)
	if err != nil {
		return nil, err
	}
	progress := func(text string) {
		if s.terminal && !*f.json {
			fmt.Fprint(exact(s.err), "\r\033[K"+text)
		}
	}
	defer progress("")
	fleets.Progress = progress
	fleets.Note = func(text string) { fmt.Fprintln(s.err, "brood: "+text) }
	rows, err := fleets.Predict(ctx)
	for i, row := range rows {
		r := group[i]
		out = append(out, prediction{
			Key:   scaling.Key{Curve: r.Curve.Name, Link: r.Link, Workers: r.Workers, Members: r.Members},
			Fleet: row,
		})
	}
	return out, err
}

// planFleets describes the fleets of a group of runs.
func planFleets(p presets.Scaling, group []presets.Run, perByte, hop float64) (f forecast.Fleets, err error) {
	last := group[len(group)-1] // the largest fleet
	if f.Options, err = planOptions(last); err != nil {
		return f, err
	}
	link, err := planLink(p, last.Link)
	if err != nil {
		return f, err
	}
	f.Options.Threads, f.Rounds, f.Measure = 1, predictedRounds, predictionMeasure
	if group[0].Members != last.Members {
		f.Each = last.Members / last.Workers
	}
	for _, r := range group {
		f.Sizes = append(f.Sizes, r.Workers)
	}
	frames := p.Slow
	if p.FastFrames {
		frames = 1
	}
	f.Shape = func(cfg *simulate.Config) {
		shaped := simulate.Link{Rate: float64(link.Rate), Delay: link.Delay}
		cfg.Link = func(int, int) simulate.Link { return shaped }
		cfg.PerByte, cfg.Hop = frames*perByte, frames*hop
		drawn := cfg.Pace
		cfg.Pace = func(w int, uniform func() float64) float64 { return p.Slow * drawn(w, uniform) }
	}
	return f, nil
}

// writePredictions writes the predictions as a table, in seconds and bytes.
func writePredictions(file string, all []prediction) error {
	lines := [][]string{{"curve", "link", "workers", "members", "round_seconds", "round_bytes", "training_share",
		"samples_per_second", "measured_round_seconds"}}
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }
	for _, x := range all {
		measured := ""
		if x.measured.Commits >= scaling.Least {
			measured = number(x.measured.Round)
		}
		lines = append(lines, []string{x.Curve, x.Link, strconv.Itoa(x.Key.Workers), strconv.Itoa(x.Key.Members),
			number(x.Seconds), number(x.Bytes), number(x.Training), number(x.Rate), measured})
	}
	var text bytes.Buffer
	_ = csv.NewWriter(&text).WriteAll(lines) // writing to a buffer cannot fail
	return os.WriteFile(file, text.Bytes(), 0o644)
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
