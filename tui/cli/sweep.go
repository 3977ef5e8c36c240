package cli

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/zeebo/blake3"

	"brood/optim/catalog"
	"brood/presets"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/option"
	"brood/runtime/sweep"
	"brood/tui/textfmt"
)

// grid is the batch of a sweep: a run for each point of the grid, or for each drawn point, and each seed.
type grid struct {
	runs
	axes  []sweep.Axis
	seeds []int
}

// axes returns the names of the options that a sweep may vary in addition to knobs, separated by commas.
func axes() string { return strings.Join(option.Names(option.With(option.Axis)), ", ") }

type sweepFlags struct {
	run     runFlags
	batch   batchFlags
	by, dir string
	trials  int // points to draw; 0: the grid
	halving int // factor of successive halving; 0: none
}

func sweepCommand(s streams) *cobra.Command {
	f := &sweepFlags{}
	c := &cobra.Command{
		Use:   "sweep [PRESET|FILE.toml] --set NAME=VALUES ...",
		Short: "Run a grid of settings with several seeds, and sort them by their loss on validation samples",
		Long: `Run a grid of settings with several seeds, and sort them by their loss on validation samples. The table also
has the test metric.

  brood sweep quickstart --set eta=0.01,0.1 --set members=1..8 --seeds 3
  brood sweep quickstart --set eta=0.01,0.1 --seeds 3 --listen :4433 --jobs 4
  brood sweep quickstart --set eta=log:0.001..0.1 --set batch=16..256*2 --trials 27 --halving 3

VALUES are a list, whole numbers FROM..TO, numbers FROM..TO*FACTOR, or one schedule; a repeated NAME adds values. NAME
is a knob, or one of ` + axes() + `.

--trials N draws N settings in place of the grid: each value from its list, or from log:FROM..TO, uniform in the
logarithm, or uniform:FROM..TO. --halving 3 trains all settings to a part of the limit, continues the best third to
three times this part, and so on up to the limit.

Each run is a session in one directory, which brood verify can recompute. The same command resumes where it was stopped
and skips completed runs; more values or seeds add runs. With a --target the runs that met it are sorted by the epochs
they needed. Use a target on the test set only to measure: settings that are chosen by it are chosen by the test set.
With --listen the runs train on workers of other machines, --jobs runs at a time with --wait workers each: it prints one
command that joins workers, which move from run to run. If the machines share a disk, you can also start the command on
each of them with the same -o DIR: each takes runs that no other machine has taken.`,
		Args: atMostOne("preset"),
		RunE: func(c *cobra.Command, args []string) error { return f.execute(c, strings.Join(args, ""), s) },
	}
	f.run.register(c)
	fl := c.Flags()
	for _, name := range append([]string{"background", "session", "resume"}, drawNames...) {
		_ = fl.MarkHidden(name)
	}
	fl.Lookup("set").Usage = "values of a setting: NAME=VALUES (repeatable)"
	fl.Lookup("plain").Usage = "a line for each run that ends, instead of the live view"
	fl.Lookup("json").Usage = "one JSON object for each run"
	f.batch.register(c, 1)
	fl.IntVar(&f.trials, "trials", 0, "settings to draw, in place of the whole grid")
	fl.IntVar(&f.halving, "halving", 0,
		"successive halving: the best 1/`FACTOR` of the settings, by --by, continue to FACTOR times the limit")
	fl.StringVar(&f.by, "by", "",
		"sort by this metric (default: centre_loss, on validation samples; with a target: epochs): "+
			strings.Join(sortMetrics(), ", "))
	fl.StringVarP(&f.dir, "output", "o", "",
		"directory for the sessions (default: one in your sessions directory, named after the preset and the shared "+
			"flags)")
	return c
}

func (f *sweepFlags) execute(c *cobra.Command, preset string, s streams) error {
	given := c.Flags().Changed
	for _, name := range []string{"background", "session", "resume"} {
		if given(name) {
			return usage("--%s is for a single run: leave it out; a sweep has --seeds and -o DIR", name)
		}
	}
	switch {
	case given(option.Seed.Name) && f.trials == 0:
		return usage("--seed is of the values that --trials draws: give --trials too; give the seeds of the runs with " +
			"--seeds")
	case given("trials") && (f.trials < 1 || f.trials > maxTrials):
		return usage("--trials %d: give 1 to %d", f.trials, maxTrials)
	case given("trials") && len(f.run.set) == 0:
		return usage("--trials draws values: give --set NAME=VALUES, such as --set eta=log:0.001..0.1")
	case given("halving") && (f.halving < 2 || f.halving > 100):
		return usage("--halving %d: give 2 to 100", f.halving)
	case given(option.Deadline.Name):
		return usage("--deadline is for a single run: leave it out, and end the sweep by SIGTERM; " +
			"the same command continues it")
	case option.KeepLog.Text(f.run.opts) != "":
		return usage("--keep-log is for a single run: the tables of a sweep read whole logs; leave it out, also of the " +
			"preset")
	case given(option.For.Name):
		return usage("--for compares machines rather than settings: give --epochs or --rounds")
	case f.run.opts.Members == host.Auto:
		return usage("--members auto depends on the machine: give a number")
	case f.by != "" && presets.Metrics[f.by] == "":
		return usage("--by %s: choose one of %s", f.by, strings.Join(sortMetrics(), ", "))
	case f.by != "" && !presets.Selects(f.by):
		return usage("--by %s would select settings by the test set, which is for the final report: sort by "+
			"centre_loss; the table has the test metric too", f.by)
	}
	if err := f.batch.check(c, f.run.opts, f.run.plain, f.run.json); err != nil {
		return err
	}
	if other := f.run.presetOf(preset); other != preset {
		if len(f.run.set) == 0 && option.Env.Text(f.run.opts) == "" {
			return usage("sweep needs --set NAME=VALUES, such as --set eta=0.01,0.1, or a preset to repeat with " +
				"--seeds")
		}
		preset = other
	}
	w := &grid{runs: newRuns("sweep", f.batch, f.run.opts), seeds: f.batch.seeds.all()}
	w.by, w.table = cmp.Or(f.by, "centre_loss"), w.best
	w.Halving = sweep.Halving{Factor: f.halving, By: w.by, More: presets.MoreIsBetter(w.by)}
	var err error
	if w.axes, err = sweep.ParseAxes(f.run.set); err != nil {
		return usage("--set %w", err)
	}
	for _, a := range w.axes {
		if a.Drawn() && f.trials == 0 {
			return usage("--set %s: values of an interval are drawn: give --trials N", a.Name)
		}
		if a.Name == option.Seed.Name || a.Name == "seeds" {
			return usage("--set %s: give the seeds of a sweep with --seeds", a.Name)
		}
		if a.Name == option.Members.Name && slices.Contains(a.Values, "auto") {
			return usage("--set members=auto depends on the machine: give numbers")
		}
		if a.Name == option.Workers.Name && f.batch.fleet.listen != "" {
			return usage("--set workers=...: with --listen, give the workers of each run with --wait")
		}
		if x := option.Named(a.Name); x != nil && !x.Has(option.Axis) {
			return usage("--set %s=...: a sweep cannot vary it: give --%s; NAME is a knob, or one of "+
				"%s", x.Name, x.Name, axes())
		}
		w.Columns = append(w.Columns, a.Name)
	}
	if err := w.fill(c, f, preset); err != nil {
		return err
	}
	if err := w.check(c.Context(), s); err != nil {
		return err
	}
	if l := w.Trials[0].Limit; l.Target != "" && l.Epochs == 0 && l.Rounds == 0 {
		return usage("--target may never be met: give --epochs or --rounds too, as a limit")
	}
	if sweep.NeedsTarget(f.by) && w.Trials[0].Limit.Target == "" {
		return usage("--by %s needs a --target", f.by)
	}
	switch {
	case f.by != "":
	case w.Trials[0].Limit.Target != "":
		w.by = sweep.TargetMetric
	case w.Bare && f.halving > 0:
		return usage("--halving: the runs have no loss: give a metric with --by")
	case w.Bare: // there is no test
		w.by = "seconds"
	}
	view := newBatchView(&w.runs, f.run.plain, f.run.json, s)
	w.Halving.Begin = func(rung, rungs, settings int, limit event.Limit) {
		view.note(fmt.Sprintf("rung %d of %d: %s to %s", rung, rungs, textfmt.Count(settings, "setting"), limitText(limit)))
	}
	err = w.train(c.Context(), view)
	if w.begun && !f.run.json {
		if view.drawn < len(w.Trials)/len(w.seeds) {
			fmt.Fprintln(s.out)
			w.best(-1).write(s.out)
		}
		fmt.Fprintf(s.out, "\nbest first by %s; a row for each run: %s\n", w.by, filepath.Join(w.Dir, sweep.RowsFile))
	}
	return err
}

// maxTrials limits the number of drawn settings, to reject typing errors.
const maxTrials = 10_000

// limitText returns the rounds or epochs of a limit for readers.
func limitText(l event.Limit) string {
	var out []string
	if l.Epochs > 0 {
		out = append(out, fmt.Sprintf("%.4g epochs", l.Epochs))
	}
	if l.Rounds > 0 {
		out = append(out, textfmt.Count(int(l.Rounds), "round"))
	}
	return strings.Join(out, " or ")
}

// sortMetrics returns the metrics by which settings can be sorted.
func sortMetrics() []string {
	return slices.DeleteFunc(presets.MetricNames(), func(name string) bool { return !presets.Selects(name) })
}

// fill chooses the directory and adds the runs of the points.
func (w *grid) fill(base *cobra.Command, flags *sweepFlags, preset string) error {
	f := flags.run
	title, text := f.opts.Algorithm, []byte(nil)
	if preset != "" {
		var err error
		if text, err = presets.Source(preset); err != nil {
			return err
		}
		title = strings.TrimSuffix(filepath.Base(preset), ".toml")
	}
	except := []string{"jobs", "output", "plain", "json", "ascii", "theme", option.Threads.Name, "listen",
		option.Wait.Name,
		"enrol"}
	if w.Halving.Factor == 0 { // more settings may join: no decision depends on the others
		except = append(except, "set", "seeds", "first-seed", "by", "trials", option.Seed.Name)
	}
	shared := passOn(base, except...)
	slices.Sort(shared)
	same := map[string]any{"preset": preset, "flags": shared, "settings": w.Columns,
		"text": fmt.Sprintf("%x", blake3.Sum256(text))}
	if err := w.Place(flags.dir, cmp.Or(title, "run"), same); err != nil {
		return err
	}
	p, err := f.preset(preset)
	if err != nil {
		return err
	}
	points := sweep.Points(w.axes)
	if flags.trials > 0 {
		w.wholeNumbers(cmp.Or(f.opts.Algorithm, p.Options.Algorithm, option.Algorithm.Default))
		if points, err = sweep.Draw(w.axes, flags.trials, cmp.Or(f.opts.Seed, 1)); err != nil {
			return usage("--trials %d: %w", flags.trials, err)
		}
	}
	for _, point := range points {
		var words []string
		var vary []presets.Setting
		for i, a := range w.axes {
			words = append(words, a.Name+"="+point[i])
			vary = append(vary, presets.Setting{Knob: a.Name, Expr: point[i]})
		}
		label := cmp.Or(strings.Join(words, " "), title, "run")
		o, err := f.trial(p, base.Flags().Changed, vary)
		if err != nil {
			return fmt.Errorf("%s: %w", label, err)
		}
		w.Add(point, label, o, func(seed int) string {
			return sweep.PlainName(strings.Join(append(slices.Clone(words), "seed="+strconv.Itoa(seed)), ","))
		}, w.seeds)
	}
	w.head = fmt.Sprintf("%s, %s with %s: %s", cmp.Or(title, "sweep"), textfmt.Count(len(points), "setting"),
		textfmt.Count(len(w.seeds), "seed"), textfmt.Count(len(w.Trials), "run"))
	return nil
}

// wholeNumbers marks the axes whose settings are whole numbers in a run of this algorithm.
func (w *grid) wholeNumbers(algorithm string) {
	alg, err := catalog.Lookup(algorithm)
	if err != nil {
		return // the check of the runs reports it
	}
	for i := range w.axes {
		a := &w.axes[i]
		k, _ := alg.Knob(a.Name)
		o := option.Named(a.Name)
		a.Whole = k.Integer || o != nil && o.Kind != option.Number && o.Kind != option.Text
	}
}

// best returns the table of results, best first: at most rows of the settings that have a result, or all settings if
// rows is negative.
func (w *grid) best(rows int) *table {
	var config event.Config // of a run with results
	w.Each(func(t *sweep.Trial) {
		if t.Tally != nil && t.Tally.Config.Data != "" {
			config = t.Tally.Config
		}
	})
	score, scoreUnit := config.Score(), ""
	if score.Percent {
		scoreUnit = " %"
	}
	validation := "validation" + strings.TrimPrefix(score.Key, "test")
	results := w.Results(w.by, score.Key, validation)
	hasValidation := validation != w.by &&
		slices.ContainsFunc(results, func(r sweep.Result) bool { return len(r.Figures[validation]) > 0 })
	sweep.Sort(results, w.by, presets.MoreIsBetter(w.by))
	if rows >= 0 {
		results = slices.DeleteFunc(results, func(r sweep.Result) bool { return r.Done+r.Diverged == 0 })
		results = results[:min(len(results), rows)]
	}
	var heads []string
	for _, name := range w.Columns {
		heads = append(heads, ">"+name)
	}
	unit := presets.Metrics[w.by]
	if unit != w.by {
		unit = strings.TrimSpace(w.by + " " + config.Unit(unit))
	}
	heads = append(heads, ">"+unit, ">± s.e.")
	if hasValidation {
		heads = append(heads, ">"+validation+scoreUnit)
	}
	if !w.Bare {
		heads = append(heads, ">"+score.Key+scoreUnit)
	}
	out := newTable(append(heads, ">seeds", ">time", "")...)
	for _, r := range results {
		mean, se, secs := "–", "–", "–"
		sample := presets.Sample(r.Numbers(w.by))
		if len(sample) > 0 {
			mean = fmt.Sprintf("%.4g", sample.Mean())
		}
		if len(sample) > 1 {
			se = fmt.Sprintf("%.2g", sample.Estimate().Error)
		}
		if r.Done > 0 {
			secs = clockTime(r.Seconds)
		}
		figure := func(of string) string {
			all := presets.Sample(r.Figures[of])
			switch {
			case len(all) == 0:
				return "–"
			case !score.Percent:
				return fmt.Sprintf("%.4g", all.Mean())
			}
			return fmt.Sprintf("%.2f", all.Mean())
		}
		row := append(slices.Clone(r.Point), mean, se)
		if hasValidation {
			row = append(row, figure(validation))
		}
		if !w.Bare {
			row = append(row, figure(score.Key))
		}
		var notes []string
		if r.Diverged > 0 {
			notes = append(notes, fmt.Sprintf("%d diverged", r.Diverged))
		}
		if r.Out {
			notes = append(notes, fmt.Sprintf("out in rung %d", r.Rung))
		}
		if sweep.NeedsTarget(w.by) && r.Missed > 0 {
			notes = append(notes, fmt.Sprintf("%d missed the target", r.Missed))
		}
		out.row(append(row, fmt.Sprintf("%d of %d", r.Done, r.Seeds), secs, strings.Join(notes, ", "))...)
	}
	return out
}
