package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"brood/runtime/forecast"
	"brood/runtime/host"
	"brood/runtime/option"
	"brood/runtime/simulate"
	"brood/tui/textfmt"
)

// gcPercent is the GOGC value while a fleet is simulated: a simulation keeps many small, long-lived objects.
const gcPercent = 400

// fleetSimulation holds the flags of `brood simulate fleet`.
type fleetSimulation struct {
	run          runFlags
	sizes        []int
	algorithms   []string
	each         int
	link         linkFlags
	up, down     string
	control      time.Duration
	cores        int
	slow         []string
	churn        time.Duration
	away         time.Duration
	goodbye      bool
	rack         rackFlags
	measure      time.Duration
	asJSON       *bool
	notes        []string          // printed to stderr after the table
	showProgress func(text string) // overwrites the status line of a terminal; "" clears it
}

func simulateFleetCommand(s streams) *cobra.Command {
	f := &fleetSimulation{}
	c := &cobra.Command{
		Use:   "fleet [PRESET|FILE.toml]",
		Short: "Predict the round time on fleets of other sizes, over links that you describe",
		Long: `simulate fleet runs the real coordinator and the real program of an algorithm in virtual time: its workers
compute nothing, and its links carry only message sizes. It first measures for a moment what computing costs on this
machine. For each fleet size it prints how long a round takes, the share of it that is computing, and the bytes sent.
Nothing is trained or recorded.

  brood simulate fleet mnist-parle --sizes 2,4,8,16 --rate 10Mbit --delay 40ms
  brood simulate fleet --model mlp --data mnist --algorithms dp-sgd,parle,diloco --sizes 8 --up 20Mbit --delay 30ms`,
		Args: atMostOne("preset"),
		RunE: func(c *cobra.Command, args []string) error { return f.execute(c, strings.Join(args, ""), s) },
	}
	fl := c.Flags()
	fl.StringArrayVar(&f.run.set, "set", nil, "set a knob: NAME=VALUE or NAME=SCHEDULE (repeatable)")
	fl.BoolVar(&f.run.full, "full", false, "the full form of the preset, as published, instead of the short one")
	optionFlags(c, &f.run.opts, option.Algorithm, option.Model, option.Data, option.Program, option.Members,
		option.Seed,
		option.Threads, option.Rounds)
	fl.Lookup(option.Threads.Name).Usage = "threads of each worker, at most the cores of this machine (default: all cores)"
	fl.Lookup(option.Rounds.Name).Usage = "rounds to simulate (default 40)"
	fl.IntSliceVar(&f.sizes, "sizes", nil, "numbers of workers (default 1,2,4,8, up to the number of members)")
	fl.StringSliceVar(&f.algorithms, "algorithms", nil, "compare these, each with its defaults, instead of the preset's")
	fl.IntVar(&f.each, "each", 0, "members of each worker, instead of a population divided among the workers")
	f.link.register(c)
	fl.StringVar(&f.up, "up", "", "rate at which a worker can send over all its links, such as 20Mbit")
	fl.StringVar(&f.down, "down", "", "rate at which a worker can receive over all its links")
	fl.DurationVar(&f.control, "control", 0, "one-way delay of the coordinator's messages (default: as --delay)")
	fl.IntVar(&f.cores, "cores", 0,
		"cores of one machine that all workers share, as when processes emulate a fleet (default: each has its own)")
	fl.StringArrayVar(&f.slow, "slow", nil,
		"a slower worker: WORKER=FACTOR, such as 0=2.5 (repeatable), or FACTOR for all, which also slows down their "+
			"frames")
	fl.DurationVar(&f.churn, "churn", 0,
		"mean time until a worker dies, such as 10m (default: all stay)")
	fl.DurationVar(&f.away, "away", time.Minute, "mean time until it is back")
	fl.BoolVar(&f.goodbye, "goodbye", false, "workers that leave announce it, as a stopped worker does, instead of dying")
	fl.IntVar(&f.rack.of, "rack", 0,
		"consecutive workers per rack, site or home, which share its uplink and downlink (default: no racks)")
	fl.StringVar(&f.rack.up, "rack-up", "", "rate at which a rack can send to the others")
	fl.StringVar(&f.rack.down, "rack-down", "", "rate at which a rack can receive from the others")
	fl.DurationVar(&f.rack.delay, "rack-delay", 0, "delay between racks, in addition to --delay")
	fl.DurationVar(&f.measure, "measure", 2*time.Second, "how long to measure the computing time of a round here")
	f.asJSON = jsonFlag(c)
	fl.Lookup("json").Usage = "a JSON array with an object for each algorithm and size"
	return c
}

// everyWorker is the key of --slow for all workers.
const everyWorker = -1

// minDepartures is the least number of departures for an estimate of the cost of churn: the time between departures has
// a standard deviation as large as its mean.
const minDepartures = 10

// fewDepartures returns a warning if fewer than minDepartures workers left. It returns "" for enough departures, and
// without churn.
func fewDepartures(f forecast.Fleet) string {
	if f.Departures == nil || *f.Departures >= minDepartures {
		return ""
	}
	return fmt.Sprintf("%s on %s: %s in %s, too few to estimate the cost of churn; give more --rounds",
		f.Algorithm, textfmt.Count(f.Workers, "worker"), textfmt.Count(*f.Departures, "departure"),
		seconds(f.Seconds*float64(f.Rounds)))
}

// fleetConditions holds the parsed flags that describe the machines and links of a simulated fleet.
type fleetConditions struct {
	link         simulate.Link
	up, down     float64         // bytes per second of a worker; 0: no limit
	slow         map[int]float64 // slowdown factors by worker, or everyWorker
	racks        *simulate.Racks // nil: none
	control      time.Duration   // one-way delay of the coordinator's messages
	perByte, hop float64         // measured by simulate.Loopback, in seconds
	rounds       uint64
}

func (f *fleetSimulation) check(given func(flag string) bool) (x fleetConditions, err error) {
	if x.link, err = f.link.link(); err != nil {
		return x, err
	}
	if x.up, err = parseRate("up", f.up); err != nil {
		return x, err
	}
	if x.down, err = parseRate("down", f.down); err != nil {
		return x, err
	}
	if x.slow, err = parseSlow(f.slow); err != nil {
		return x, err
	}
	if f.each < 0 || f.each > 1<<20 || f.each > 0 && given(option.Members.Name) {
		return x, usage("--each %d: give the members of each worker, and omit --members", f.each)
	}
	if err := cmp.Or(checkDuration(time.Minute, "control", f.control),
		checkDuration(time.Minute, "measure", f.measure)); err != nil {
		return x, err
	}
	if f.cores < 0 {
		return x, usage("--cores %d: give the cores of the machine that all workers share", f.cores)
	}
	if err := f.checkChurn(given); err != nil {
		return x, err
	}
	if x.racks, err = f.rack.racks(); err != nil {
		return x, err
	}
	x.control = x.link.Delay
	if given("control") {
		x.control = f.control
	}
	x.rounds = 40
	if given(option.Rounds.Name) {
		if x.rounds = f.run.opts.Limit.Rounds; x.rounds < 2 || x.rounds > 1e6 {
			return x, usage("--rounds %d: simulate 2 to 1000000", x.rounds)
		}
	}
	switch {
	case given("algorithms") && given(option.Algorithm.Name):
		return x, usage("--algorithm and --algorithms exclude each other")
	case given("algorithms") && (len(f.algorithms) == 0 || slices.Contains(f.algorithms, "")):
		return x, usage("--algorithms %s: a name is empty: give names such as dp-sgd,parle", strings.Join(f.algorithms,
			","))
	}
	if cores := goruntime.NumCPU(); f.run.opts.Threads > cores {
		return x, fmt.Errorf("--threads %d: the computing of a worker is measured on this machine, which has %s: give "+
			"at most %d",
			f.run.opts.Threads, textfmt.Count(cores, "core"), cores)
	}
	return x, nil
}

func (f *fleetSimulation) execute(c *cobra.Command, preset string, s streams) error {
	x, err := f.check(c.Flags().Changed)
	if err != nil {
		return err
	}
	f.showProgress = func(text string) {
		if s.terminal && !*f.asJSON {
			fmt.Fprint(exact(s.err), "\r\033[K"+text)
		}
	}
	defer f.showProgress("")
	f.showProgress("measuring the cost of a connection on this machine")
	if x.perByte, x.hop, err = simulate.Loopback(c.Context(), f.measure/8); err != nil {
		return fmt.Errorf("measure the cost of a connection on this machine: %w", err)
	}
	defer func() {
		for _, text := range f.notes {
			fmt.Fprintln(s.err, "brood: "+text)
		}
	}()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	var all []forecast.Fleet
	for i := range max(1, len(f.algorithms)) {
		if len(f.algorithms) > 0 {
			if slices.Contains(f.algorithms[:i], f.algorithms[i]) {
				continue
			}
			if err := c.Flags().Set(option.Algorithm.Name, f.algorithms[i]); err != nil {
				return err
			}
		}
		o, err := f.run.options(c, preset)
		if err != nil {
			return err
		}
		rows, err := f.predict(c.Context(), o, x)
		if err != nil {
			return err
		}
		all = append(all, rows...)
	}
	f.showProgress("")
	for _, r := range all {
		if text := fewDepartures(r); text != "" {
			f.notes = append(f.notes, text)
		}
	}
	if *f.asJSON {
		return objects(s.out, all)
	}
	f.print(s.out, all)
	return nil
}

// predict predicts the rounds of one algorithm on all fleet sizes.
func (f *fleetSimulation) predict(ctx context.Context, o host.Options, x fleetConditions) ([]forecast.Fleet, error) {
	o.Algorithm = cmp.Or(o.Algorithm, option.Algorithm.Default)
	if o.Members == host.Auto || o.Members == 0 {
		o.Members = 8
	}
	sizes, err := f.sizesFor(o.Members)
	if err != nil {
		return nil, err
	}
	if err := f.checkLargest(slices.Max(sizes), x); err != nil {
		return nil, err
	}
	fleets := forecast.Fleets{
		Options:  o,
		Each:     f.each,
		Sizes:    sizes,
		Rounds:   x.rounds,
		Measure:  f.measure,
		Goodbye:  f.goodbye,
		Progress: f.showProgress,
		Note:     func(text string) { f.notes = append(f.notes, text) },
		Shape:    f.shape(x, cmp.Or(o.Threads, goruntime.NumCPU())),
	}
	if f.churn > 0 {
		fleets.Churn = f.drawChurn
	}
	rows, err := fleets.Predict(ctx)
	if errors.Is(err, simulate.ErrChurn) {
		err = fmt.Errorf("%w: give --churn a longer time than %s", err, f.churn)
	}
	return rows, err
}

// checkLargest fails if the largest fleet does not fit the flags: --slow of a worker that it does not have, or
// conditions that fleets of more than forecast.MaxSimulated workers, which are extrapolated, cannot have.
func (f *fleetSimulation) checkLargest(most int, x fleetConditions) error {
	for w := range x.slow {
		switch {
		case w == everyWorker:
		case w >= most:
			return usage("--slow %d=...: the workers of a fleet of %d are 0 to %d", w, most, most-1)
		case most > forecast.MaxSimulated:
			return usage("--slow %d=...: fleets of more than %d workers are extrapolated, without a slow worker: give "+
				"a factor for all workers, or at most %d workers", w, forecast.MaxSimulated, forecast.MaxSimulated)
		}
	}
	if most > forecast.MaxSimulated && (f.rack.of > 0 || f.churn > 0) {
		return usage("--sizes %d: fleets of more than %d workers are extrapolated, which excludes --rack and --churn: "+
			"give at most %d, or omit both", most, forecast.MaxSimulated, forecast.MaxSimulated)
	}
	return nil
}

// shape returns a function that sets the conditions in the configuration of a simulated fleet, whose workers have this
// number of threads.
func (f *fleetSimulation) shape(x fleetConditions, threads int) func(*simulate.Config) {
	return func(cfg *simulate.Config) {
		cfg.Link, cfg.Up, cfg.Down = func(int, int) simulate.Link { return x.link }, x.up, x.down
		cfg.Control, cfg.PerByte, cfg.Hop, cfg.Racks = x.control, x.perByte, x.hop, x.racks
		drawn, sharers := cfg.Pace, 1.0
		if f.cores > 0 { // all workers compute at the same time
			sharers = max(1, float64(cfg.Workers*threads)/float64(f.cores))
			cfg.PerByte *= sharers
		}
		every := cmp.Or(x.slow[everyWorker], 1)
		cfg.PerByte *= every
		cfg.Hop *= every
		cfg.Pace = func(w int, uniform func() float64) float64 {
			return sharers * every * cmp.Or(x.slow[w], 1) * drawn(w, uniform)
		}
	}
}

func (f *fleetSimulation) print(w io.Writer, all []forecast.Fleet) {
	heads := []string{"algorithm", ">workers", ">a round", ">p95", ">plain model", ">training", ">sent", ">samples/s"}
	if f.churn > 0 {
		heads = slices.Insert(heads, 5, ">if all stay", ">departures", ">all there")
	}
	members := textfmt.Count(all[0].Members, "member")
	if f.each > 0 {
		heads = slices.Insert(heads, 2, ">members")
		members = textfmt.Count(f.each, "member") + " per worker"
	}
	fmt.Fprintf(w, "%s of %s; %s\n\n", members, all[len(all)-1].ModelAndData, f.fleet())
	t := newTable(heads...)
	for _, r := range all {
		p95 := seconds(r.P95)
		if r.Extrapolated > 0 {
			p95 = "–"
		}
		cells := []string{r.Algorithm, fmt.Sprint(r.Workers), seconds(r.Seconds), p95, seconds(r.Plain),
			fmt.Sprintf("%.0f%%", 100*r.Training), textfmt.Size(r.Bytes), textfmt.Grouped(int(r.Rate))}
		if r.Departures != nil {
			cells = slices.Insert(cells, 5, seconds(r.Steady), fmt.Sprint(*r.Departures), fmt.Sprintf("%.0f%%", 100**r.Whole))
		}
		if f.each > 0 {
			cells = slices.Insert(cells, 2, fmt.Sprint(r.Members))
		}
		t.row(cells...)
	}
	t.write(w)
}

// sizesFor returns the fleet sizes to simulate, ascending and without duplicates. It fails for sizes outside 1 to
// forecast.MaxWorkers and, without --each, for more workers than members.
func (f *fleetSimulation) sizesFor(members int) ([]int, error) {
	sizes := f.sizes
	if sizes == nil {
		for n := 1; n <= 8 && (f.each > 0 || n <= members); n *= 2 {
			sizes = append(sizes, n)
		}
	}
	for _, n := range sizes {
		switch {
		case n < 1 || n > forecast.MaxWorkers:
			return nil, usage("--sizes %d: simulate 1 to %d workers", n, forecast.MaxWorkers)
		case f.each == 0 && n > members:
			return nil, usage("--sizes %d: more workers than the %d members; give more --members, or "+
				"--each", n, members)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(sizes))), nil // f.sizes stays unchanged for the next algorithm
}

// seconds formats a duration with three digits, in µs, ms or s.
func seconds(x float64) string {
	switch {
	case x < 1e-3:
		return fmt.Sprintf("%.3g µs", 1e6*x)
	case x < 1:
		return fmt.Sprintf("%.3g ms", 1e3*x)
	}
	return fmt.Sprintf("%.3g s", x)
}
