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

	"brood/presets"
	"brood/runtime/host"
)

// sweep is a grid of runs, with the seeds of a point side by side.
type sweep struct {
	batch
	axes  []presets.Axis
	seeds int
}

// aside are the settings that an axis may vary beside knobs: flags of run.
var aside = []string{"algorithm", "model", "data", "members", "workers", "epochs", "rounds"}

type sweepFlags struct {
	run     runFlags
	batch   batchFlags
	by, dir string
}

func sweepCommand(s streams) *cobra.Command {
	f := &sweepFlags{}
	c := &cobra.Command{
		Use:   "sweep [PRESET|FILE.toml] --set NAME=VALUES ...",
		Short: "Run a grid of settings with several seeds, and sort them by what they reach on validation samples",
		Long: `Run a grid of settings with several seeds, and sort them by the loss that they reach on validation samples, with the test error beside it.

  brood sweep quickstart --set eta=0.01,0.1 --set members=1..8 --seeds 3
  brood sweep quickstart --set eta=0.01,0.1 --seeds 3 --listen :4433 --jobs 4

VALUES are a list, whole numbers FROM..TO, numbers FROM..TO*FACTOR, or one schedule; a name that is given again adds values. NAME is a knob,
or one of ` + strings.Join(aside, ", ") + `.

Each run is a session in one directory, which brood verify executes again. The same command goes on where it was stopped, and skips what is
done; more values or seeds are added to what is there. With a --target the order is by the epochs to meet it, of those runs that met it: one
on the test set is for measuring, and settings that are chosen by it are chosen by the test set. With --listen the runs train on workers of other machines, --jobs of them at a time
with --wait workers each: it prints one command that joins them, and they go from run to run. Where the machines share a disk,
the command may also be started on each of them with the same -o DIR: each takes the runs that nobody has taken.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("sweep takes one preset, but got %q too", args[1])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return f.execute(c, strings.Join(args, ""), s) },
	}
	f.run.register(c)
	fl := c.Flags()
	for _, name := range []string{"background", "session", "resume", "seed", "ascii"} {
		_ = fl.MarkHidden(name)
	}
	fl.Lookup("set").Usage = "values of a setting: NAME=VALUES (repeatable)"
	fl.Lookup("plain").Usage = "a line for each run that ends, in place of the moving view"
	fl.Lookup("json").Usage = "one JSON object for each run"
	f.batch.register(fl, 1)
	fl.StringVar(&f.by, "by", "", "sort by this metric (default: centre_loss, on validation samples; with a target: epochs): "+strings.Join(selecting(), ", "))
	fl.StringVarP(&f.dir, "output", "o", "", "directory for the sessions (default: one among your sessions, named for the preset and what the runs share)")
	return c
}

func (f *sweepFlags) execute(c *cobra.Command, preset string, s streams) error {
	given := c.Flags().Changed
	for _, name := range []string{"background", "session", "resume", "seed"} {
		if given(name) {
			return usage("--%s is for a single run: leave it out; a sweep has --seeds and -o DIR", name)
		}
	}
	switch {
	case given("for"):
		return usage("--for compares machines rather than settings: give --epochs or --rounds")
	case f.run.members == host.Auto:
		return usage("--members auto differs from machine to machine: give a number")
	case f.by != "" && presets.Metrics[f.by] == "":
		return usage("--by %s: choose one of %s", f.by, strings.Join(selecting(), ", "))
	case f.by != "" && !presets.Selects(f.by):
		return usage("--by %s would choose settings by the test set, which is reported and selects nothing: sort by centre_loss, with the test error beside it", f.by)
	}
	if err := f.batch.check(c, f.run.threads, f.run.plain, f.run.json); err != nil {
		return err
	}
	if preset == "" && f.run.algorithm == "" && f.run.model == "" && f.run.data == "" {
		if len(f.run.set) == 0 {
			return usage("sweep over what? give --set NAME=VALUES, such as --set eta=0.01,0.1, or a preset to repeat with --seeds")
		}
		preset = presets.Default
	}
	w := &sweep{batch: batch{kind: "sweep", by: cmp.Or(f.by, "centre_loss"), jobs: f.batch.jobs, threads: f.run.threads, fleet: f.batch.fleet}, seeds: f.batch.seeds}
	w.table = w.best
	var err error
	if w.axes, err = presets.ParseAxes(f.run.set); err != nil {
		return usage("--set %w", err)
	}
	for _, a := range w.axes {
		if a.Name == "seed" || a.Name == "seeds" {
			return usage("--set %s: the seeds of a sweep are 1 to --seeds", a.Name)
		}
		if a.Name == "members" && slices.Contains(a.Values, "auto") {
			return usage("--set members=auto differs from machine to machine: give numbers")
		}
		if a.Name == "workers" && f.batch.fleet.listen != "" {
			return usage("--set workers=...: --wait says how many workers each run has")
		}
		w.columns = append(w.columns, a.Name)
	}
	if err := w.fill(c, preset, f.dir); err != nil {
		return err
	}
	if err := w.check(c.Context(), s); err != nil {
		return err
	}
	if l := w.trials[0].limit; l.Target != "" && l.Epochs == 0 && l.Rounds == 0 {
		return usage("--target may never be met: give --epochs or --rounds too, where a run ends without it")
	}
	switch {
	case f.by != "":
	case w.trials[0].limit.Target != "":
		w.by = "epochs"
	case w.bare: // there is no test
		w.by = "seconds"
	}
	view := newBatchView(&w.batch, f.run.plain, f.run.json, s)
	err = w.train(c.Context(), view)
	if w.begun && !f.run.json {
		if view.drawn < len(w.trials)/w.seeds {
			fmt.Fprintln(s.out)
			w.best(-1).write(s.out)
		}
		fmt.Fprintf(s.out, "\nbest first by %s; a row for each run: %s\n", w.by, filepath.Join(w.dir, runsFile))
	}
	return err
}

// selecting are the metrics that settings may be sorted by.
func selecting() []string {
	return slices.DeleteFunc(presets.MetricNames(), func(name string) bool { return !presets.Selects(name) })
}

// fill finds the directory and lays the grid out.
func (w *sweep) fill(base *cobra.Command, preset, dir string) error {
	title, text := base.Flag("algorithm").Value.String(), []byte(nil)
	if preset != "" {
		var err error
		if text, err = presets.Source(preset); err != nil {
			return err
		}
		title = strings.TrimSuffix(filepath.Base(preset), ".toml")
	}
	shared := passOn(base, "set", "seeds", "jobs", "by", "output", "plain", "json", "ascii", "threads", "listen", "wait", "enrol")
	slices.Sort(shared)
	same := map[string]any{"preset": preset, "flags": shared, "settings": w.columns, "text": fmt.Sprintf("%x", blake3.Sum256(text))}
	if err := w.place(dir, cmp.Or(title, "run"), same); err != nil {
		return err
	}
	points := presets.Points(w.axes)
	for _, p := range points {
		var words []string
		args := slices.Clone(shared)
		for i, a := range w.axes {
			words = append(words, a.Name+"="+p[i])
			if slices.Contains(aside, a.Name) {
				args = append(args, "--"+a.Name, p[i])
			} else {
				args = append(args, "--set", a.Name+"="+p[i])
			}
		}
		name := func(seed int) string {
			return plainName(strings.Join(append(slices.Clone(words), "seed="+strconv.Itoa(seed)), ","))
		}
		w.add(preset, cmp.Or(strings.Join(words, " "), title, "run"), p, args, name, w.seeds)
	}
	w.head = fmt.Sprintf("%s, %s with %s: %s", cmp.Or(title, "sweep"), plural(len(points), "setting"), plural(w.seeds, "seed"), plural(len(w.trials), "run"))
	return nil
}

// result is a metric of one setting over its seeds.
type result struct {
	point    presets.Point
	sample   presets.Sample
	error    presets.Sample // test error, which is told and sorts nothing
	seconds  float64        // mean
	of       int            // seeds wanted
	done     int
	diverged int
	missed   int // ended without meeting the target that is sorted by
}

// results are the settings, best first; those of which a seed diverged or missed the target come after those of which none did, and last those without a
// figure.
func (w *sweep) results() []result {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []result
	for trials := range slices.Chunk(w.trials, w.seeds) {
		r := result{point: trials[0].point, of: w.seeds}
		for _, t := range trials {
			if t.state == trialDiverged {
				r.diverged++
			}
			if t.state != trialDone {
				continue
			}
			r.done++
			r.seconds += t.tally.sum.Seconds
			if w.by == "epochs" && t.limit.Target != "" && !strings.Contains(t.tally.reason, "reached the target") {
				r.missed++
			} else if x, ok := t.tally.metric(w.by); ok && x == x {
				r.sample = append(r.sample, x)
			}
			if x, ok := t.tally.metric("test_error"); ok {
				r.error = append(r.error, x)
			}
		}
		r.seconds /= float64(max(1, r.done))
		out = append(out, r)
	}
	sign := 1.0
	if w.by == "samples_per_s" || w.by == "centre_advance" { // more is better
		sign = -1
	}
	rank := func(r result) (class int, x float64) {
		switch {
		case len(r.sample) == 0:
			return 2, 0
		case r.diverged+r.missed > 0:
			return 1, sign * r.sample.Mean()
		}
		return 0, sign * r.sample.Mean()
	}
	slices.SortStableFunc(out, func(a, b result) int {
		ca, xa := rank(a)
		cb, xb := rank(b)
		return cmp.Or(cmp.Compare(ca, cb), cmp.Compare(xa, xb))
	})
	return out
}

// best is the table of what is measured, best first: of those measured so far at most so many rows, or all settings where rows is negative.
func (w *sweep) best(rows int) *table {
	results := w.results()
	if rows >= 0 {
		results = slices.DeleteFunc(results, func(r result) bool { return r.done+r.diverged == 0 })
		results = results[:min(len(results), rows)]
	}
	var heads []string
	for _, name := range w.columns {
		heads = append(heads, ">"+name)
	}
	unit := presets.Metrics[w.by]
	if unit != w.by {
		unit = w.by + " " + unit
	}
	heads = append(heads, ">"+unit, ">± s.e.")
	if !w.bare {
		heads = append(heads, ">test_error %")
	}
	out := newTable(append(heads, ">seeds", ">time", "")...)
	for _, r := range results {
		row := slices.Clone(r.point)
		mean, se, secs, test := "–", "–", "–", "–"
		if len(r.sample) > 0 {
			mean = fmt.Sprintf("%.4g", r.sample.Mean())
		}
		if r.done > 0 {
			secs = fmt.Sprintf("%.1f s", r.seconds)
		}
		if len(r.sample) > 1 {
			se = fmt.Sprintf("%.2g", r.sample.Estimate().Error)
		}
		if len(r.error) > 0 {
			test = fmt.Sprintf("%.2f", r.error.Mean())
		}
		row = append(row, mean, se)
		if !w.bare {
			row = append(row, test)
		}
		note := ""
		if r.diverged > 0 {
			note = fmt.Sprintf("%d diverged", r.diverged)
		}
		if r.missed > 0 {
			note = strings.TrimPrefix(note+fmt.Sprintf(", %d missed the target", r.missed), ", ")
		}
		out.row(append(row, fmt.Sprintf("%d of %d", r.done, r.of), secs, note)...)
	}
	return out
}
