package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/zeebo/blake3"

	"brood/presets"
	"brood/runtime/event"
	"brood/runtime/forecast"
	"brood/runtime/host"
	"brood/runtime/option"
	"brood/runtime/scaling"
	"brood/runtime/session"
	"brood/runtime/sweep"
	"brood/tui/textfmt"
)

type scaleFlags struct {
	out, sessions string
	plain         bool
	predict       bool
	workers       []int // fleet sizes to predict; nil: those of the plan
	json          *bool
}

func scaleCommand(s streams) *cobra.Command {
	f := &scaleFlags{}
	c := &cobra.Command{Use: "scale [PLAN|FILE.toml] ...",
		Short: "Measure how algorithms scale with the fleet size, with slowed-down workers on this machine",
		Long: `Measure how algorithms scale: the runs of a plan on fleets of several sizes. Workers are processes on this
machine, each with one thread, slowed down so that all of them together need no more processor time than the machine
has; links are as fast as loopback or have a rate and a delay. The result is the time of a round compared with a single
worker, for populations that grow with the fleet (weak) and for populations of fixed size (strong); or, in plans with a
target, the time and the bytes to it. scale alone lists the plans.

  brood scale darwinn-500k -o figures

Your own plan is a short file; docs/scaling.md has an example. A commit covers several rounds if they are short: give 8
rounds or more, since the first two rounds are ignored and the time of a round needs at least three commits.

Each run is a session, which brood verify can recompute. The same command resumes where it was stopped.

--predict starts no workers: it simulates the plan's fleets, or the sizes of --workers, in virtual time as brood
simulate fleet does, and prints the times of rounds next to those that were measured.

  brood scale popsgd-speed --predict --workers 16,32,64`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listPlans(*f.json, s)
			}
			return f.execute(c.Context(), args, s)
		}}
	fl := c.Flags()
	fl.StringVarP(&f.out, "output", "o", "",
		"folder for figures: for each plan NAME.csv, with a row for each kind of run, and NAME.svg")
	fl.StringVar(&f.sessions, "sessions", "",
		"directory for the sessions (default: for each plan one in your sessions directory, named after it)")
	fl.BoolVar(&f.plain, "plain", false, "a line for each run that ends, instead of the live view")
	fl.BoolVar(&f.predict, "predict", false, "predict the times of rounds in virtual time instead of measuring them")
	fl.IntSliceVar(&f.workers, "workers", nil, "with --predict: numbers of workers (default: those of the plan)")
	f.json = jsonFlag(c)
	return c
}

func listPlans(asJSON bool, s streams) error {
	t := newTable("plan", ">workers", ">runs", "what", "takes")
	for _, name := range presets.Plans() {
		p, err := presets.LoadPlan(name)
		if err != nil {
			return err
		}
		runs := 0
		for _, n := range p.Workers {
			runs += p.Repeats() * len(p.Runs(n))
		}
		if asJSON {
			if err := objects(s.out, map[string]any{"plan": name, "title": p.Title, "paper": p.Paper, "workers": p.Workers,
				"runs": runs}); err != nil {
				return err
			}
		}
		t.row(name, strings.Trim(strings.ReplaceAll(fmt.Sprint(p.Workers), " ", ","), "[]"), strconv.Itoa(runs), p.Title,
			p.Expect)
	}
	if !asJSON {
		t.write(s.out)
		fmt.Fprintln(s.out, "\nrun one: brood scale PLAN -o FOLDER; or your own plan: brood scale FILE.toml")
	}
	return nil
}

// fleetRuns is a batch: the runs of a plan on one fleet size.
type fleetRuns struct {
	runs
	planned []presets.Run // parallel to Trials
}

func (f *scaleFlags) execute(ctx context.Context, names []string, s streams) error {
	if err := onePrinter(f.plain, *f.json); err != nil {
		return err
	}
	if f.workers != nil && !f.predict {
		return usage("--workers needs --predict: a measured fleet has the sizes of its plan")
	}
	for _, n := range f.workers {
		if n < 1 || n > forecast.MaxSimulated {
			return usage("--workers %d: predict 1 to %d workers", n, forecast.MaxSimulated)
		}
	}
	var plans []presets.Scaling
	var fleets [][]*fleetRuns
	for _, name := range names { // validate all plans before any run starts
		p, err := presets.LoadPlan(name)
		if err != nil {
			return err
		}
		if f.predict {
			if err := f.checkPrediction(p); err != nil {
				return err
			}
		}
		all, err := f.prepare(ctx, p, len(names) > 1, s)
		if err != nil {
			return fmt.Errorf("plan %s: %w", p.Name, err)
		}
		plans, fleets = append(plans, p), append(fleets, all)
	}
	if f.out != "" {
		if err := os.MkdirAll(f.out, 0o755); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
	}
	for i, p := range plans {
		if f.predict {
			r, err := results(p, fleets[i])
			if err != nil {
				return err
			}
			if err := f.predictPlan(ctx, p, r, s); err != nil {
				return err
			}
			continue
		}
		for _, w := range fleets[i] {
			if err := w.discardLate(); err != nil {
				return err
			}
		}
		for seed := 1; seed <= p.Repeats(); seed++ { // interleave the sizes: the machine's speed drifts over time
			for _, w := range fleets[i] {
				if err := w.trainSeed(ctx, seed, f, s); err != nil {
					return err
				}
			}
		}
		if err := f.report(p, fleets[i], s); err != nil {
			return err
		}
	}
	return nil
}

// prepare builds one batch for each fleet size of a plan and validates it. With several plans each has its own
// subdirectory of --sessions. Without --sessions the directory name contains a hash of the plan, so that a changed
// plan does not reuse old sessions.
func (f *scaleFlags) prepare(ctx context.Context, p presets.Scaling, several bool, s streams) (all []*fleetRuns,
	err error) {
	links := map[string]event.Link{"": {From: event.Every, To: event.Every}} // a single worker has the link ""
	for _, l := range p.Rates() {
		if links[l], err = planLink(p, l); err != nil {
			return nil, err
		}
	}
	same := p
	// texts and the seed count do not change a measurement
	same.Title, same.Doc, same.Paper, same.Expect, same.Seeds = "", "", "", "", 0
	text, err := json.Marshal(same)
	if err != nil {
		return nil, err
	}
	dir := f.sessions
	if dir == "" {
		home, err := session.Home()
		if err != nil {
			return nil, err
		}
		sum := blake3.Sum256(text)
		dir = filepath.Join(home, fmt.Sprintf("scaling-%s-%x", p.Name, sum[:3]))
	} else if several {
		dir = filepath.Join(dir, p.Name)
	}
	last := time.Now()
	for i, n := range p.Workers {
		w := &fleetRuns{runs: newRuns("scaling", batchFlags{jobs: 1, fleet: fleetFlags{listen: "127.0.0.1:0", enrol: n}},
			option.Options{Threads: 1})}
		w.Wait, w.by, w.Columns = n, "seconds", []string{"curve", "link", "members"}
		w.table = func(int) *table { return newTable() }
		w.pool = &workerPool{
			size: n,
			slow: p.Slow,
			fast: p.FastFrames,
			link: func(t *sweep.Trial) event.Link { return links[t.Point[1]] },
		}
		if err := w.Place(filepath.Join(dir, fmt.Sprintf("%d-workers", n)), p.Name,
			map[string]any{"plan": json.RawMessage(text), "workers": n}); err != nil {
			return nil, err
		}
		w.pool.file = filepath.Join(w.Dir, "late.json")
		if err := w.pool.loadLate(); err != nil {
			return nil, err
		}
		for _, r := range p.Runs(n) {
			if err := w.add(p, r); err != nil {
				return nil, err
			}
		}
		slower := fmt.Sprintf("%g times slower", p.Slow)
		if p.FastFrames {
			slower += " except for frames"
		}
		w.head = fmt.Sprintf("%s on %s, each %s", p.Name, textfmt.Count(n, "worker"), slower)
		if err := w.validate(ctx, p); err != nil {
			return nil, err
		}
		if time.Since(last) > time.Second {
			last = time.Now()
			fmt.Fprintf(s.err, "brood: checked the runs of %d of %s\n", i+1, textfmt.Count(len(p.Workers), "fleet"))
		}
		all = append(all, w)
	}
	return all, nil
}

// planLink returns a link of a plan between all workers.
func planLink(p presets.Scaling, rate string) (l event.Link, err error) {
	l = event.Link{From: event.Every, To: event.Every}
	if p.Delay != "" {
		if l.Delay, err = time.ParseDuration(p.Delay); err != nil || l.Delay < 0 || l.Delay > time.Minute {
			return l, usage("delay = %q: give a duration such as 1ms", p.Delay)
		}
	}
	if rate == "" {
		l.Delay = 0
		return l, nil
	}
	x, err := parseRate("links", rate)
	if err != nil {
		return l, usage("links = %q: give numbers and units, such as 10Mbit", p.Links)
	}
	l.Rate = int64(x)
	return l, nil
}

// planOptions returns the options of a run of a plan, without its limit.
func planOptions(r presets.Run) (host.Options, error) {
	base, err := presets.Load(r.Curve.Preset)
	if err != nil {
		return host.Options{}, err
	}
	return runFlags{}.trial(base, func(string) bool { return false }, r.Settings())
}

// trainSeed trains the unfinished runs with this seed. It restricts w.Trials to them for that time.
func (w *fleetRuns) trainSeed(ctx context.Context, seed int, f *scaleFlags, s streams) error {
	all, head := w.Trials, w.head
	defer func() { w.Trials, w.head = all, head }()
	w.Trials = slices.DeleteFunc(slices.Clone(all), func(t *sweep.Trial) bool { return t.Seed != seed })
	w.head += ": " + textfmt.Count(len(w.Trials), "run")
	if len(w.Trials) < len(all) {
		w.head += fmt.Sprintf(" with seed %d", seed)
	}
	if err := w.ReadStates(); err != nil {
		return err
	}
	if !w.Unfinished() {
		return nil
	}
	return w.train(ctx, newBatchView(&w.runs, f.plain, *f.json, s))
}

// discardLate removes the sessions of runs with late workers and resets them to waiting, so that they are measured
// again.
func (w *fleetRuns) discardLate() error {
	for _, t := range w.Trials {
		if !w.late(t) {
			continue
		}
		if err := os.RemoveAll(t.Dir); err != nil {
			return fmt.Errorf("remove a run whose workers were late: %w", err)
		}
		delete(w.pool.lateByRun, filepath.Base(t.Dir))
		t.State = sweep.Waits
	}
	return nil
}

// late reports whether the workers of a run missed their pace by more than scaling.TooLate percent.
func (w *fleetRuns) late(t *sweep.Trial) bool {
	return w.pool.lateByRun[filepath.Base(t.Dir)] > scaling.TooLate
}

// validate prepares the largest run of each curve with unfinished runs, and fails if it cannot run. It checks one
// link only: links do not affect whether a run is possible.
func (w *fleetRuns) validate(ctx context.Context, p presets.Scaling) error {
	w.ReadStates()
	for _, c := range p.Curves {
		largest, left := -1, false
		for i, r := range w.planned {
			if r.Curve.Name != c.Name {
				continue
			}
			if left = left || !w.Trials[i].Over() || w.late(w.Trials[i]); largest < 0 || r.Members > w.planned[largest].Members {
				largest = i
			}
		}
		if !left {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		o := w.Trials[largest].Options
		o.Workers, o.Wait, o.Threads, o.Unattended = w.Wait, w.Wait, 1, true
		if _, err := host.Prepare(o); err != nil {
			return fmt.Errorf("%s: %w", w.Trials[largest].Label, err)
		}
	}
	return nil
}

// neverRound is a probe period that no run of a plan reaches.
const neverRound = 1 << 40

// add appends a run of the plan to the batch, once for each seed.
func (w *fleetRuns) add(p presets.Scaling, r presets.Run) error {
	o, err := planOptions(r)
	if err != nil {
		return fmt.Errorf("curve %s: %w", r.Curve.Name, err)
	}
	o.Limit = event.Limit{Rounds: p.Rounds, Epochs: p.Epochs, Target: p.Target}
	o.Probe, o.Evaluate = neverRound, event.NoTest
	if r.Curve.Probe > 0 {
		o.Probe = r.Curve.Probe
	}
	link := r.Link
	if link == "" {
		link = "no limit"
	}
	label := fmt.Sprintf("%s, %s, %s", r.Curve.Name, link, textfmt.Count(r.Members, "member"))
	w.Add([]string{r.Curve.Name, r.Link, strconv.Itoa(r.Members)}, label, o, func(seed int) string {
		name := strings.ReplaceAll(fmt.Sprintf("%s,%s,members=%d", r.Curve.Name, r.Link, r.Members), ",,", ",")
		if seed > 1 {
			name += fmt.Sprintf(",seed=%d", seed)
		}
		return sweep.PlainName(name)
	}, consecutive(1, p.Repeats()))
	for len(w.planned) < len(w.Trials) {
		w.Trials[len(w.planned)].Limit, w.planned = o.Limit, append(w.planned, r)
	}
	return nil
}

// emptyResults returns the results of a plan before any measurement.
func emptyResults(p presets.Scaling) scaling.Results {
	r := scaling.Results{
		Links:   p.Rates(),
		Workers: p.Workers,
		Each:    p.Each,
		Members: p.Members,
		Target:  p.Target,
		Of:      map[scaling.Key]scaling.Figures{},
	}
	for _, c := range p.Curves {
		r.Curves = append(r.Curves, c.Name)
	}
	return r
}

// results reads the commits of all finished runs of a plan. It skips diverged runs.
func results(p presets.Scaling, all []*fleetRuns) (scaling.Results, error) {
	r := emptyResults(p)
	for _, w := range all {
		runs := map[scaling.Key][]scaling.Run{}
		for i, t := range w.Trials {
			if !t.Over() || t.State == sweep.Diverged {
				continue
			}
			commits, err := scaling.Read(t.Dir)
			if err != nil {
				return r, err
			}
			x := w.planned[i]
			k := scaling.Key{Curve: x.Curve.Name, Link: x.Link, Workers: x.Workers, Members: x.Members}
			runs[k] = append(runs[k], scaling.Run{Commits: commits, Met: p.Target != "" && !t.Missed(),
				Late: w.pool.lateByRun[filepath.Base(t.Dir)]})
		}
		for k, all := range runs {
			r.Of[k] = scaling.Of(all...)
		}
	}
	return r, nil
}

// report prints the results of a plan and, with --output, writes its CSV and SVG files.
func (f *scaleFlags) report(p presets.Scaling, all []*fleetRuns, s streams) error {
	r, err := results(p, all)
	if err != nil {
		return err
	}
	plots := r.Plots()
	if *f.json {
		for _, row := range r.Rows() {
			if err := objects(s.out, row.JSON(p.Name, p.Target != "")); err != nil {
				return err
			}
		}
	} else {
		fmt.Fprintf(s.out, "\n%s\n\n", p.Title)
		scaleTable(r).write(s.out)
		for _, x := range plots {
			fmt.Fprintln(s.out)
			for _, line := range drawPlot(x, plotWidth, plotHeight) {
				fmt.Fprintln(s.out, strings.TrimRight(line, " "))
			}
		}
	}
	if late := r.Late(); late > 0 {
		fmt.Fprintf(s.err, "brood: this machine was too busy at %s (lower-case letters, hollow points in the SVG): "+
			"workers were more than %d %% late; run the same command again to repeat their measurement\n",
			textfmt.Count(late, "point"), scaling.TooLate)
	}
	if few := r.Few(); few > 0 {
		fmt.Fprintf(s.err, "brood: no round time for %s with fewer than %d counted commits: give the plan more "+
			"rounds, 8 or more if they are short\n", textfmt.Count(few, "point"), scaling.Least)
	}
	if f.out == "" {
		return nil
	}
	for name, text := range map[string][]byte{p.Name + ".csv": r.CSV(), p.Name + ".svg": scaling.SVG(p.Title, plots)} {
		if err := os.WriteFile(filepath.Join(f.out, name), text, 0o644); err != nil {
			return fmt.Errorf("write the figures: %w", err)
		}
	}
	if !*f.json {
		fmt.Fprintf(s.out, "\nfigures: %s\n", filepath.Join(f.out, p.Name+".svg"))
	}
	return nil
}

// scaleTable returns a table with one row for each curve, link, member count and worker count.
func scaleTable(r scaling.Results) *table {
	heads := []string{"curve", "link", ">members", ">workers", ">seeds", ">a round", ">quartiles", ">commits",
		">sent a round", ">waits", ">weak", ">strong", ">late"}
	if r.Target != "" {
		heads = []string{"curve", "link", ">members", ">workers", ">seeds", ">time to " + r.Target, ">sent", ">rounds",
			">late"}
	}
	t := newTable(heads...)
	for _, row := range r.Rows() {
		cells := []string{row.Curve, row.Link, strconv.Itoa(row.Members), strconv.Itoa(row.Workers), strconv.Itoa(row.Runs)}
		if r.Target == "" {
			round, quartiles := "–", "–"
			if row.Commits >= scaling.Least {
				round, quartiles = seconds(row.Round), seconds(row.Low)+" to "+seconds(row.High)
			}
			cells = append(cells, round, quartiles, strconv.Itoa(row.Commits), textfmt.Size(row.Bytes), waits(row.Figures),
				share(row.Weak), share(row.Strong))
		} else {
			took := seconds(row.Seconds)
			if !row.Met {
				took = "missed"
			}
			cells = append(cells, took, textfmt.Size(row.Sent), strconv.Itoa(row.Rounds))
		}
		t.row(append(cells, fmt.Sprintf("%d %%", row.Late))...)
	}
	return t
}

// waits formats the share of its time that a worker waits: the mean over runs and, for several runs, the largest.
func waits(f scaling.Figures) string {
	if f.Runs < 2 || math.IsNaN(f.Waited) {
		return share(f.Waited)
	}
	return fmt.Sprintf("%.2f, at most %.2f", f.Waited, f.WaitedMost)
}

func share(x float64) string {
	if math.IsNaN(x) {
		return "–"
	}
	return fmt.Sprintf("%.2f", x)
}
