package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"brood/models/usererr"
	"brood/optim"
	"brood/optim/catalog"
	"brood/optim/collective"
	"brood/optim/protocol"
	"brood/presets"
	"brood/tui/textfmt"
)

type simulateFlags struct {
	agents              []int
	executions, threads int
	seed                uint64
	set                 []string
	table               bool
}

func simulateCommand(s streams) *cobra.Command {
	f := &simulateFlags{}
	c := &cobra.Command{
		Use:   "simulate PROTOCOL|PRESET|FILE.toml",
		Short: "Measure how long a population protocol takes, or print the table of states against time",
		Long: "simulate runs executions of a population protocol to convergence and prints their parallel times\n" +
			"together with the theory. Nothing is recorded: `brood run --algorithm PROTOCOL` runs the same executions in\n" +
			"the workbench, with a session. With --table it prints the published table of states against time, with a\n" +
			"measurement for each row that defines a rule. With several numbers of agents, as in --agents 101,301,1001,\n" +
			"it prints how the time grows with them.",
		Args: func(c *cobra.Command, args []string) error {
			if f.table {
				return noArgs(c, args)
			}
			return exactly("a PROTOCOL, a PRESET or a FILE.toml")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case f.executions < 2 || f.executions > 1<<20:
				return usage("--trials %d: give 2 to %d", f.executions, 1<<20)
			case f.table && len(f.set) > 0:
				return usage("--set and --table exclude each other: each row of the table sets its own knobs")
			case f.table:
				return f.states(c.Context(), s)
			}
			return f.measureOne(c, args[0], s)
		},
	}
	fl := c.Flags()
	fl.IntSliceVar(&f.agents, "agents", nil,
		"agents of an execution, or several numbers (default: the default of the protocol; with --table 101)")
	fl.IntVar(&f.executions, "trials", 100, "independent executions")
	threadsFlag(fl, &f.threads)
	fl.Uint64Var(&f.seed, "seed", 1, "seed of all randomness")
	fl.StringArrayVar(&f.set, "set", nil, "set a knob: NAME=VALUE, such as gap=100 (repeatable)")
	fl.BoolVar(&f.table, "table", false, "the table of states against time")
	c.AddCommand(simulateFleetCommand(s))
	return c
}

func (f *simulateFlags) measureOne(c *cobra.Command, name string, s streams) error {
	a, k, err := findProtocol(name)
	if err != nil {
		return err
	}
	set, err := parseSettings(f.set)
	if err != nil {
		return err
	}
	for _, x := range set {
		if k, err = withKnob(a, k, x.Knob, x.Expr); err != nil {
			return err
		}
	}
	agents := f.agents
	if len(agents) == 0 {
		agents = []int{k.I("n")}
	}
	t := newTable("protocol", ">agents", ">executions", ">mean time", ">standard error", ">median", ">least", ">most",
		">right", "theory")
	stuck := 0
	var all []timeStats
	for _, n := range agents {
		if k, err = withKnob(a, k, "n", strconv.Itoa(n)); err != nil {
			return err
		}
		m, err := f.measure(c.Context(), a, k, s)
		if err != nil {
			return err
		}
		all, stuck = append(all, m), stuck+m.stuck
		t.row(a.Name, textfmt.Grouped(n), fmt.Sprint(f.executions), figure(m.mean), figure(m.se), figure(m.median),
			figure(m.least), figure(m.most), m.right, theory(protocol.TheoryOf(a, k)))
	}
	t.write(s.out)
	if len(all) > 1 {
		fmt.Fprintf(s.out, "the mean time grows as agents^%s\n", growth(agents, all))
	}
	if stuck > 0 {
		fmt.Fprintf(s.out, "%d of %d executions stopped in a state that cannot change, without converging; the times "+
			"exclude them\n",
			stuck, f.executions*len(agents))
	}
	return nil
}

// growth returns the exponent p of the power law agents^p that fits the mean times best (least squares of logarithms),
// with its standard error: that of the means alone, whether or not a power law fits.
func growth(agents []int, times []timeStats) string {
	var centre float64
	for _, n := range agents {
		centre += math.Log(float64(n)) / float64(len(agents))
	}
	var slope, variance, spread float64
	for i, n := range agents {
		x := math.Log(float64(n)) - centre
		slope += x * math.Log(times[i].mean)
		variance += x * x * math.Pow(times[i].se/times[i].mean, 2)
		spread += x * x
	}
	if !(spread > 0) || math.IsNaN(slope) {
		return figure(math.NaN())
	}
	return fmt.Sprintf("%.2f ± %.2f", slope/spread, math.Sqrt(variance)/spread)
}

// findProtocol returns a protocol and the values of its knobs. name is a protocol, with its defaults, or a preset or
// .toml file that runs one, with the settings of that file.
func findProtocol(name string) (*optim.Algorithm, optim.Values, error) {
	if a, err := catalog.Lookup(name); err == nil && !a.Needs.Model() {
		return a, a.Defaults(), nil
	}
	if !strings.HasSuffix(name, ".toml") && !slices.Contains(presets.List(), name) {
		var names []string
		for _, x := range catalog.All() {
			if !x.Needs.Model() {
				names = append(names, x.Name)
			}
		}
		return nil, optim.Values{}, usererr.Errorf("no protocol %q%s: choose one of %s, or give a preset that runs "+
			"one, or the path of a .toml file", name, usererr.Suggest(name, names), strings.Join(names, ", "))
	}
	p, err := presets.Load(name)
	if err != nil {
		return nil, optim.Values{}, err
	}
	a, err := catalog.Lookup(p.Options.Algorithm)
	if err != nil || a.Needs.Model() {
		return nil, optim.Values{}, usererr.Errorf("%s runs no protocol: add a [protocol] table, or choose the "+
			"algorithm of one",
			name)
	}
	rules, err := p.Rules()
	if err == nil && rules != nil && a.FromSpec != nil {
		a, err = a.FromSpec(rules)
	}
	if err != nil {
		return nil, optim.Values{}, fmt.Errorf("%s: %w", name, err)
	}
	k := a.Defaults()
	for _, x := range p.Settings() {
		if k, err = withKnob(a, k, x.Knob, x.Expr); err != nil {
			return nil, optim.Values{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	return a, k, nil
}

// withKnob returns k with one knob set to the value that text describes. k itself does not change.
func withKnob(a *optim.Algorithm, k optim.Values, name, text string) (optim.Values, error) {
	knob, ok := a.Knob(name)
	if !ok {
		return k, usererr.Errorf("%s has no knob %q%s; see `brood algorithms %s`", a.Name, name,
			usererr.Suggest(name, a.KnobNames()), a.Name)
	}
	x, err := knob.Parse(text)
	if err != nil {
		return k, err
	}
	return k.With(name, x), nil
}

// timeStats summarizes the parallel times to convergence of executions.
type timeStats struct {
	mean, se, median, least, most float64 // NaN if no execution converged
	stuck                         int     // executions that ended without converging; the times exclude them
	right                         string  // share of executions with the right result; "" if the protocol has none
}

// measure runs the executions, split over threads. The results do not depend on the number of threads.
func (f *simulateFlags) measure(ctx context.Context, a *optim.Algorithm, k optim.Values, s streams) (m timeStats,
	err error) {
	threads := f.threads
	if threads == 0 {
		threads = goruntime.NumCPU()
	}
	parts := slices.Collect(slices.Chunk(collective.IDs(f.executions), (f.executions+threads-1)/threads))
	results, errs := make([][]protocol.Result, len(parts)), make([]error, len(parts))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	progress := &trialProgress{name: a.Name, total: f.executions}
	stop := progress.start(s)
	var wg sync.WaitGroup
	for i, members := range parts {
		wg.Go(func() {
			if results[i], errs[i] = protocol.Simulate(ctx, a, k, f.seed, members, progress.update); errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	stop()
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return m, fmt.Errorf("%s: %w", a.Name, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return m, err
	}
	return summarise(slices.Concat(results...)), nil
}

func summarise(results []protocol.Result) (m timeStats) {
	var times []float64
	judged, right := 0, 0
	for _, r := range results {
		if math.IsNaN(r.Time) {
			m.stuck++
		} else {
			times = append(times, r.Time)
		}
		if !math.IsNaN(r.Right) {
			judged++
			right += int(r.Right)
		}
	}
	if judged > 0 {
		m.right = fmt.Sprintf("%.4g%%", 100*float64(right)/float64(judged))
	}
	if len(times) == 0 {
		m.mean, m.se, m.median, m.least, m.most = math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN()
		return m
	}
	slices.Sort(times)
	n := float64(len(times))
	for _, t := range times {
		m.mean += t / n
	}
	var squares float64
	for _, t := range times {
		squares += (t - m.mean) * (t - m.mean)
	}
	m.se = math.Sqrt(squares / (n - 1) / n)
	m.median, m.least, m.most = times[len(times)/2], times[0], times[len(times)-1]
	return m
}

// figure formats x with four significant digits, a whole number from 10000 on, and NaN as a dash.
func figure(x float64) string {
	switch {
	case math.IsNaN(x):
		return "–"
	case math.Abs(x) >= 10000:
		return textfmt.Grouped(int64(math.Round(x)))
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

// theory formats the predicted mean time of a protocol with its note, or the note alone without a prediction.
func theory(t protocol.Theory) string {
	if t.Mean > 0 {
		return t.Note + " " + figure(t.Mean)
	}
	return t.Note
}

// states prints the table of states against time. It measures each row that defines a rule.
func (f *simulateFlags) states(ctx context.Context, s streams) error {
	agents := f.agents
	if len(agents) == 0 {
		agents = []int{101}
	}
	columns := []string{"protocol or bound", "states", "time"}
	for _, n := range agents {
		if n < 3 || n > 100000 {
			return usage("--agents %d: the table takes 3 to 100000 agents", n)
		}
		columns = append(columns, fmt.Sprintf(">n = %d", n))
	}
	if len(agents) > 1 {
		columns = append(columns, ">n^")
	}
	t := newTable(append(columns, ">with states")...)
	bounds := make([][]protocol.Bound, len(agents))
	for i, n := range agents {
		bounds[i] = protocol.Bounds(n)
	}
	for at, row := range bounds[0] {
		cells := []string{row.Source, row.States, row.Time}
		if len(row.Measure) == 0 {
			t.row(append(cells, "bound only")...)
		}
		for which := range row.Measure {
			var times []timeStats
			var states []string
			for i := range agents {
				r := bounds[i][at].Measure[which]
				m, err := f.measure(ctx, r.Algorithm, r.Algorithm.Values(r.Set), s)
				if err != nil {
					return err
				}
				times = append(times, m)
				cells = append(cells, figure(m.mean)+" ± "+figure(m.se))
				if x := fmt.Sprint(r.States); !slices.Contains(states, x) {
					states = append(states, x)
				}
			}
			if len(agents) > 1 {
				cells = append(cells, growth(agents, times))
			}
			t.row(append(cells, strings.Join(states, ", "))...)
			cells = []string{"", "", ""}
		}
	}
	t.write(s.out)
	fmt.Fprintf(s.out, "\nParallel time to convergence: mean and standard error of %d executions. "+
		"Majority starts with the smallest possible lead, 1 or 2 agents.\n"+
		"For rows with a bound only, the source defines no rule to run.\n", f.executions)
	return nil
}
