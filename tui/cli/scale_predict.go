package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"brood/presets"
	"brood/runtime/forecast"
	"brood/runtime/scaling"
	"brood/runtime/simulate"
)

// predict prints the predicted and the measured round times of the runs of a plan on more than forecast.MaxCalibrated
// workers, and the runs that it excludes.
func (f *scaleFlags) predict(ctx context.Context, p presets.Scaling, all []*fleetRuns, s streams) error {
	measured, err := results(p, all)
	if err != nil {
		return err
	}
	plan := forecast.Plan{
		Rates:      p.Rates(),
		Links:      map[string]simulate.Link{},
		Rounds:     p.Rounds,
		Slow:       p.Slow,
		FastFrames: p.FastFrames,
	}
	for _, c := range p.Curves {
		plan.Curves = append(plan.Curves, c.Name)
	}
	for _, name := range plan.Rates {
		var l simulate.Link
		if name != "" { // prepare has validated both
			l.Rate, _ = parseRate("links", name)
			l.Delay, _ = time.ParseDuration(p.Delay)
		}
		plan.Links[name] = l
	}
	if err := forecast.MeasureLinks(ctx, plan.Links); err != nil {
		return err
	}
	out, err := plan.Predict(ctx, measuredRuns(all, measured))
	if err != nil {
		return err
	}
	if err := f.printPredictions(p.Name, out, s); err != nil {
		return err
	}
	for _, text := range excluded(all, measured) {
		fmt.Fprintln(s.err, "brood: skipped: "+text)
	}
	return nil
}

// measuredRuns returns the runs of a plan with their figures, once for all seeds of a run.
func measuredRuns(all []*fleetRuns, measured scaling.Results) (out []forecast.Run) {
	for _, w := range all {
		for i, r := range w.planned {
			if t, k := w.Trials[i], keyOf(r); t.Seed <= 1 {
				out = append(out, forecast.Run{Key: k, Label: t.Label, Options: t.Options, Measured: measured.Of[k]})
			}
		}
	}
	return out
}

// excluded returns the runs that are used neither for the calibration nor for the comparison, with the reason: one
// entry for each label and fleet size.
func excluded(all []*fleetRuns, measured scaling.Results) (out []string) {
	for _, w := range all {
		for i, r := range w.planned {
			if why := forecast.Unusable(measured.Of[keyOf(r)]); why != "" && w.Trials[i].Seed == 1 {
				out = append(out, fmt.Sprintf("%s on %s: %s", w.Trials[i].Label, plural(r.Workers, "worker"), why))
			}
		}
	}
	return out
}

// printPredictions prints the predictions of the named plan, as a table with a summary or as JSON objects.
func (f *scaleFlags) printPredictions(plan string, out []scaling.Prediction, s streams) error {
	if *f.json {
		for _, x := range out {
			if err := objects(s.out, x.JSON(plan)); err != nil {
				return err
			}
		}
		return nil
	}
	t := newTable("curve", "link", ">members", ">workers", ">measured", ">predicted", ">error", ">plain model",
		">error",
		">late")
	for _, x := range out {
		t.row(x.Curve, x.Link, strconv.Itoa(x.Members), strconv.Itoa(x.Workers), seconds(x.Measured), seconds(x.Round),
			signed(x.Error()), seconds(x.Plain), signed(x.PlainError()), fmt.Sprintf("%d %%", x.Late))
	}
	fmt.Fprintln(s.out)
	t.write(s.out)
	fmt.Fprintln(s.out, "\n"+scaling.Sum(out))
	return nil
}

// signed formats a ratio in percent with its sign.
func signed(x float64) string { return fmt.Sprintf("%+.1f %%", 100*x) }

// checkPredictable fails for a plan with a target, and for one without the fleet sizes that calibration and
// prediction need.
func checkPredictable(p presets.Scaling) error {
	if p.Target != "" {
		return usage("plan %s has a target, and --foretold predicts the time of rounds: leave it out, or choose a "+
			"plan without a target", p.Name)
	}
	few := slices.ContainsFunc(p.Workers, func(n int) bool { return n > 1 && n <= forecast.MaxCalibrated })
	if p.Workers[0] != 1 || !few || p.Workers[len(p.Workers)-1] <= forecast.MaxCalibrated {
		return usage("plan %s has fleets of %v, and --foretold needs fleets of 1 and of 2 to %d workers for "+
			"calibration and a larger one to predict: give the plan workers such as [1, 2, 4, 8]", p.Name, p.Workers,
			forecast.MaxCalibrated)
	}
	return nil
}

func keyOf(r presets.Run) scaling.Key {
	return scaling.Key{Curve: r.Curve.Name, Link: r.Link, Workers: r.Workers, Members: r.Members}
}
