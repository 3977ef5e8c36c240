package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/zeebo/blake3"

	"brood/models/data"
	"brood/models/usererr"
	"brood/presets"
	"brood/runtime/archive"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/option"
	"brood/runtime/sweep"
	"brood/runtime/timeline"
	"brood/tui/textfmt"
)

// budgets are the costs that two sides can be given equally, each with the metric that measures it, in the order of
// the tables.
var budgets = []struct{ name, metric string }{
	{"gradients", "samples"},
	{"bytes", "bytes"},
	{"seconds", "seconds"},
	{option.Rounds.Name, option.Rounds.Name},
}

// budgetNames are the names of budgets for usage texts.
const budgetNames = "gradients, bytes, seconds or rounds"

// costMetric returns the metric that measures a budget; "" for an unknown one.
func costMetric(budget string) string {
	for _, b := range budgets {
		if b.name == budget {
			return b.metric
		}
	}
	return ""
}

type judgeFlags struct {
	run            runFlags
	batch          batchFlags
	metric, budget string
	dir, results   string
	plain, json    bool
}

func judgeCommand(s streams) *cobra.Command {
	f := &judgeFlags{}
	c := &cobra.Command{
		Use:   "judge A B --budget gradients|bytes|seconds|rounds",
		Short: "Compare two presets at an equal budget, in pairs of equal seeds, with a p-value",
		Long: `Compare two presets at an equal budget, in pairs of equal seeds, with a p-value, a confidence interval and the
seeds that it would take. A and B are presets, preset files, sessions or directories of sessions.

  brood judge parle-lenet parle-lenet-sgd --budget gradients --seeds 5
  brood judge mine.toml baseline.toml --metric test_loss --budget bytes
  brood judge a.toml b.toml --program 'python3 train.py' --budget seconds

B has the limit of its preset, and A as many epochs or rounds as cost the same: A runs once with its own limit, which
shows what it costs. Positions in its schedules are stretched with the limit. gradients counts the samples of all
members, candidates included; seconds are those of this machine, which trains all runs. Recorded sessions are taken as
they are.

Each run is a session, which brood verify can recompute. The same command resumes where it was stopped and skips
completed runs; with more seeds it adds runs.`,
		Args: exactly("A", "B"),
		RunE: func(c *cobra.Command, args []string) error { return f.execute(c, args, s) },
	}
	fl := c.Flags()
	f.batch.registerHere(c, 5)
	fl.StringVar(&f.metric, "metric", "", "metric to compare (default: the test score of the runs): "+
		strings.Join(presets.MetricNames(), ", "))
	fl.StringVar(&f.budget, "budget", "", "what both sides spend equally: "+budgetNames)
	optionFlags(c, &f.run.opts, option.Threads, option.Model, option.Data, option.Program, option.Objective,
		option.Params)
	fl.StringVarP(&f.dir, "output", "o", "",
		"directory for the sessions (default: one in your sessions directory, named after A and B)")
	fl.StringVar(&f.results, "results", "", "also write the runs to this file, as CSV")
	fl.BoolVar(&f.plain, "plain", false, "a line for each run that ends, instead of the live view")
	fl.BoolVar(&f.json, "json", false, "one JSON object for each run, and one for the comparison")
	return c
}

// side is one of the two sides of a comparison.
type side struct {
	name    string
	options *host.Options // of a preset; nil for recorded sessions
	tuned   *presets.Tuned
	runs    map[int]judged
	notes   []string
}

// judged is a finished run of a side.
type judged struct {
	dir   string
	tally *archive.Tally
}

// duel is a batch: the runs of both sides. Sides with recorded sessions have none.
type duel struct {
	runs
	sides  [2]*side
	metric string
	budget string
	seeds  []int
}

func (f *judgeFlags) execute(c *cobra.Command, args []string, s streams) error {
	switch {
	case costMetric(f.budget) == "":
		return usage("--budget %q: choose %s", f.budget, budgetNames)
	case f.metric != "" && presets.Metrics[f.metric] == "":
		return usage("--metric %s%s: choose one of %s", f.metric, usererr.Suggest(f.metric, presets.MetricNames()),
			strings.Join(presets.MetricNames(), ", "))
	case args[0] == args[1]:
		return usage("brood judge %s %s: both sides are the same", args[0], args[1])
	case f.budget == "seconds" && f.batch.jobs > 1:
		return usage("--jobs %d shares the threads, so that --budget seconds cannot be equal: leave --jobs out",
			f.batch.jobs)
	}
	if err := f.batch.check(c, f.run.opts, f.plain, f.json); err != nil {
		return err
	}
	if f.results != "" { // before hours of training instead of after
		if err := os.MkdirAll(filepath.Dir(f.results), 0o755); err != nil {
			return fmt.Errorf("--results: %w", err)
		}
	}
	w := &duel{
		runs:   newRuns("judge", f.batch, f.run.opts),
		metric: f.metric,
		budget: f.budget,
		seeds:  f.batch.seeds.all(),
	}
	w.Columns, w.by, w.table = []string{"side"}, f.metric, func(int) *table { return newTable("") }
	same := map[string]any{"sides": args, "budget": f.budget,
		"flags": passOn(c, "metric", "seeds", "first-seed", "jobs", "output", "results", "plain", "json",
			option.Threads.Name)}
	var stems []string
	for i, name := range args {
		var text string
		var err error
		if w.sides[i], text, err = f.side(c, name, s); err != nil {
			return err
		}
		same[fmt.Sprintf("text %d", i)] = text
		stems = append(stems, sweep.PlainName(strings.TrimSuffix(filepath.Base(name), ".toml")))
	}
	if err := w.checkData(); err != nil { // before hours of training instead of after
		return err
	}
	if err := w.Place(f.dir, strings.Join(stems, "-"), same); err != nil {
		return err
	}
	if err := w.train(c.Context(), f, s); err != nil {
		return err
	}
	return w.report(f.results, f.json, s)
}

// checkData rejects sides with different data, as far as these are known.
func (w *duel) checkData() error {
	if a, b := w.sides[0].data(), w.sides[1].data(); a != "" && b != "" && a != b {
		return w.differentData(a, b)
	}
	return nil
}

func (w *duel) differentData(a, b string) error {
	return usererr.Errorf("%s has the data %s and %s has %s: compare runs on the same data", w.sides[0].name, a,
		w.sides[1].name, b)
}

// data returns the data of the runs of a side; "" if they are not known, or the runs have none.
func (x *side) data() string {
	if t := x.one(); t != nil {
		return t.Config.Data
	}
	if x.options == nil || x.options.Data == "" {
		return ""
	}
	name := x.options.Data
	if data.IsPath(name) {
		if abs, err := filepath.Abs(name); err == nil {
			return abs
		}
	}
	return name
}

// side returns a side, and a hash of the text of its preset; "" for recorded sessions.
func (f *judgeFlags) side(c *cobra.Command, name string, s streams) (*side, string, error) {
	if !strings.HasSuffix(name, ".toml") && !slices.Contains(presets.List(), name) {
		x, err := recordedSide(name, s)
		return x, "", err
	}
	text, err := presets.Source(name)
	if err != nil {
		return nil, "", err
	}
	p, err := f.run.preset(name)
	if err != nil {
		return nil, "", err
	}
	o, err := f.run.trial(p, c.Flags().Changed, nil)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", name, err)
	}
	if l := o.Limit; l.Measured() || l.Seconds > 0 {
		return nil, "", usage("%s ends by a target, by patience or by time, so that its budget is not known "+
			"beforehand: give it rounds or epochs alone", name)
	}
	return &side{name: name, options: &o, tuned: p.Tuned}, fmt.Sprintf("%x", blake3.Sum256(text)), nil
}

// recordedSide reads recorded sessions of one setting with different seeds.
func recordedSide(name string, s streams) (*side, error) {
	recorded, err := readRuns(s, []string{name})
	if err != nil {
		return nil, usage("%s is neither a preset%s nor a recorded session: %w", name,
			usererr.Suggest(name, presets.List()), err)
	}
	if groups := archive.Groups(recorded); len(groups) != 1 {
		return nil, usage("%s has sessions of %s: give a directory of one setting with several seeds", name,
			textfmt.Count(len(groups), "setting"))
	}
	x := &side{name: name, runs: map[int]judged{}}
	for _, r := range recorded {
		t, err := archive.ReadTally(r.Dir)
		if err != nil {
			return nil, err
		}
		if t.Phase != event.Finished {
			fmt.Fprintf(s.err, "brood: skipped: session %s has not ended\n", r.Dir)
			continue
		}
		seed := int(t.Config.Seed)
		if other, ok := x.runs[seed]; ok {
			return nil, usage("%s has two sessions with the seed %d: %s and %s", name, seed, other.dir, r.Dir)
		}
		x.runs[seed] = judged{r.Dir, t}
	}
	return x, nil
}

// train trains the runs of the presets: one of each with its own limit, then all of them with equal budgets.
func (w *duel) train(ctx context.Context, f *judgeFlags, s streams) error {
	if w.sides[0].options == nil && w.sides[1].options == nil {
		return nil
	}
	pilot := s
	if f.json {
		pilot.out = io.Discard
	}
	w.fill([]int{slices.Min(w.seeds)}) // the same one for more seeds
	w.head = fmt.Sprintf("measure the budget: %s", textfmt.Count(len(w.Trials), "run"))
	if err := w.trainAll(ctx, newBatchView(&w.runs, f.plain, f.json, pilot), s); err != nil {
		return err
	}
	if err := w.equalise(); err != nil {
		return err
	}
	w.fill(w.seeds)
	w.head = fmt.Sprintf("judge at equal %s, %s: %s", w.budget, textfmt.Count(len(w.seeds), "seed"),
		textfmt.Count(len(w.Trials), "run"))
	return w.trainAll(ctx, newBatchView(&w.runs, f.plain, f.json, s), s)
}

// trainAll trains the runs of the batch and assigns them to their sides.
func (w *duel) trainAll(ctx context.Context, view *batchView, s streams) error {
	if err := w.check(ctx, s); err != nil {
		return err
	}
	if err := w.runs.train(ctx, view); err != nil {
		return err
	}
	for _, t := range w.Trials {
		if t.State == sweep.Diverged {
			return fmt.Errorf("%s diverged, so that it has no result: see %s", t, t.Dir)
		}
		for _, x := range w.sides {
			if x.name == t.Point[0] {
				x.runs[t.Seed] = judged{t.Dir, t.Tally}
			}
		}
	}
	return nil
}

// fill replaces the runs of the batch by those of the presets with these seeds.
func (w *duel) fill(seeds []int) {
	w.Trials = nil
	for _, x := range w.sides {
		if x.options == nil {
			continue
		}
		x.runs = map[int]judged{}
		w.Add([]string{x.name}, x.name, *x.options, func(seed int) string {
			text := x.name
			if l := limitText(x.options.Limit); l != "" {
				text += "," + strings.ReplaceAll(l, " ", "-")
			}
			return sweep.PlainName(fmt.Sprintf("%s,seed=%d", text, seed))
		}, seeds)
	}
}

// equalCost returns the relative difference up to which two budgets are equal: 5 %, of seconds, which vary, 10 %.
func equalCost(budget string) float64 {
	if budget == "seconds" {
		return 0.1
	}
	return 0.05
}

// closeCost is the relative difference from which the limit of a preset is changed.
const closeCost = 0.01

// equalise changes the limit of the first preset such that it spends what the second side spent; of the second one if
// the first side is recorded.
func (w *duel) equalise() error {
	x, other := w.sides[0], w.sides[1]
	if x.options == nil {
		x, other = other, x
	}
	have, want := w.spent(x, w.budget), w.spent(other, w.budget)
	if !(have > 0) || !(want > 0) {
		who := x
		if have > 0 {
			who = other
		}
		return usage("--budget %s: %s has none: choose another of %s", w.budget, who.name, budgetNames)
	}
	factor := want / have
	if math.Abs(factor-1) <= closeCost {
		return nil
	}
	o := *x.options
	for _, t := range w.Trials {
		if t.Point[0] == x.name {
			o.Limit = t.Limit
		}
	}
	o.Limit.Epochs *= factor
	if o.Limit.Rounds > 0 {
		o.Limit.Rounds = uint64(max(1, math.Round(float64(o.Limit.Rounds)*factor)))
	}
	var fixed []string
	stretch := func(all []event.Setting) (out []event.Setting) {
		for _, e := range all {
			if strings.HasPrefix(e.Expr, "exp:") {
				fixed = append(fixed, e.Knob)
			}
			e.Expr = timeline.Stretched(e.Expr, factor)
			out = append(out, e)
		}
		return out
	}
	o.Base, o.Set = stretch(o.Base), stretch(o.Set)
	x.options = &o
	x.notes = append(x.notes, fmt.Sprintf("%s has %s, %.3g times its own limit, for equal %s", x.name,
		limitText(o.Limit), factor, w.budget))
	if len(fixed) > 0 {
		x.notes = append(x.notes, fmt.Sprintf("the rates of its schedules of %s are not stretched",
			strings.Join(fixed, ", ")))
	}
	return nil
}

// spent returns the mean of a cost over the runs of a side; NaN if they have none.
func (w *duel) spent(x *side, budget string) float64 {
	return x.sample(costMetric(budget)).Mean()
}

// sample returns a metric of the runs of a side by seed; nil if no run has it.
func (x *side) sample(metric string) presets.Sample {
	var out presets.Sample
	for seed, r := range x.runs {
		v, ok := r.tally.Metric(metric)
		if metric == option.Rounds.Name {
			v, ok = float64(r.tally.Sum.Rounds), true
		}
		if ok {
			if out == nil {
				out = presets.Sample{}
			}
			out[seed] = v
		}
	}
	return out
}

// one returns a run of the side; nil if it has none. All have the same settings.
func (x *side) one() *archive.Tally {
	for _, r := range x.runs {
		return r.tally
	}
	return nil
}

// limit returns the limit of the side for readers: in rounds or epochs. The side must have a run.
func (x *side) limit() string { return cmp.Or(limitText(x.one().Goal.Limit), "–") }
