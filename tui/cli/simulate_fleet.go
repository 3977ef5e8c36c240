package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
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
	notes        []string                         // printed to stderr after the table
	showProgress func(format string, args ...any) // overwrites the status line of a terminal; "" clears it
}

func simulateFleetCommand(s streams) *cobra.Command {
	f := &fleetSimulation{}
	c := &cobra.Command{
		Use:   "fleet [PRESET|FILE.toml]",
		Short: "Predict the round time on fleets of other sizes, over links that you describe",
		Long: `simulate fleet runs the real coordinator and the real program of an algorithm in virtual time: its workers compute
nothing, and its links carry only message sizes. It first measures for a moment what computing costs on this machine. For
each fleet size it prints how long a round takes, the share of it that is computing, and the bytes sent. Nothing is
trained or recorded.

  brood simulate fleet mnist-parle --sizes 2,4,8,16 --rate 10Mbit --delay 40ms
  brood simulate fleet --model mlp --data mnist --algorithms dp-sgd,parle,diloco --sizes 8 --up 20Mbit --delay 30ms`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("simulate fleet takes one preset, but got %q too", args[1])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return f.execute(c, strings.Join(args, ""), s) },
	}
	fl := c.Flags()
	fl.StringArrayVar(&f.run.set, "set", nil, "set a knob: NAME=VALUE or NAME=SCHEDULE (repeatable)")
	fl.BoolVar(&f.run.full, "full", false, "the full form of the preset, as published, instead of the short one")
	optionFlags(c, &f.run.opts, option.Algorithm, option.Model, option.Data, option.Program, option.Members, option.Seed, option.Threads,
		option.Rounds)
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
		"a slower worker: WORKER=FACTOR, such as 0=2.5 (repeatable), or FACTOR for all, which also slows their frames")
	fl.DurationVar(&f.churn, "churn", 0,
		"mean time until a worker dies, such as 10m (default: all stay)")
	fl.DurationVar(&f.away, "away", time.Minute, "mean time until it is back")
	fl.BoolVar(&f.goodbye, "goodbye", false, "workers that leave announce it, as a stopped worker does, instead of dying")
	fl.IntVar(&f.rack.of, "rack", 0,
		"consecutive workers per rack, site or home, which share its uplink and downlink (default: nothing is shared)")
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

// minDepartures is the least number of departures for an estimate of what churn costs: the time between departures
// has a standard deviation as large as its mean.
const minDepartures = 10

// fewDepartures returns a warning if fewer than minDepartures workers left. It returns "" for enough departures, and
// without churn.
func fewDepartures(f forecast.Fleet) string {
	if f.Departures == nil || *f.Departures >= minDepartures {
		return ""
	}
	return fmt.Sprintf("%s on %s: %s in %s, too few to estimate the cost of churn; give more --rounds",
		f.Algorithm, plural(f.Workers, "worker"), plural(*f.Departures, "departure"), seconds(f.Seconds*float64(f.Rounds)))
}

func (f *fleetSimulation) execute(c *cobra.Command, preset string, s streams) error {
	link, up, down, slow, err := f.links()
	if err != nil {
		return err
	}
	given := c.Flags().Changed
	if f.each < 0 || f.each > 1<<20 || f.each > 0 && given(option.Members.Name) {
		return usage("--each %d: give the members of each worker, and omit --members", f.each)
	}
	if err := cmp.Or(upTo(time.Minute, "control", f.control), upTo(time.Minute, "measure", f.measure)); err != nil {
		return err
	}
	if f.cores < 0 {
		return usage("--cores %d: give the cores of the machine that all workers share", f.cores)
	}
	if err := f.checkChurn(given); err != nil {
		return err
	}
	racks, err := f.rack.racks()
	if err != nil {
		return err
	}
	rounds := uint64(40)
	if given(option.Rounds.Name) {
		if rounds = f.run.opts.Limit.Rounds; rounds < 2 || rounds > 1e6 {
			return usage("--rounds %d: simulate 2 to 1000000", rounds)
		}
	}
	switch {
	case given("algorithms") && given(option.Algorithm.Name):
		return usage("--algorithm and --algorithms both select what to simulate: give one of them")
	case given("algorithms") && (len(f.algorithms) == 0 || slices.Contains(f.algorithms, "")):
		return usage("--algorithms %s: a name is missing: give such as dp-sgd,parle", strings.Join(f.algorithms, ","))
	}
	if here := goruntime.NumCPU(); f.run.opts.Threads > here {
		return fmt.Errorf("--threads %d: a worker's computing is measured here first, and this machine has %s: give at most %d",
			f.run.opts.Threads, plural(here, "core"), here)
	}
	f.showProgress = func(format string, args ...any) {
		if s.terminal && !*f.asJSON {
			fmt.Fprint(exact(s.err), "\r\033[K"+fmt.Sprintf(format, args...))
		}
	}
	defer f.showProgress("")
	f.showProgress("measuring the cost of a connection here")
	perByte, hop, err := simulate.Loopback(c.Context(), f.measure/8)
	if err != nil {
		return fmt.Errorf("measure the cost of a connection here: %w", err)
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
		o.Algorithm = cmp.Or(o.Algorithm, option.Algorithm.Default)
		if o.Members == host.Auto || o.Members == 0 {
			o.Members = 8
		}
		sizes, err := f.sizesFor(o.Members)
		if err != nil {
			return err
		}
		for w := range slow {
			if w == everyWorker {
				continue
			}
			most := slices.Max(sizes)
			if w >= most {
				return usage("--slow %d=...: the workers of a fleet of %d are 0 to %d", w, most, most-1)
			}
			if most > forecast.MaxSimulated {
				return usage("--slow %d=...: fleets of more than %d workers are extrapolated, without a slow worker: give a "+
					"factor for all workers, or at most %d workers", w, forecast.MaxSimulated, forecast.MaxSimulated)
			}
		}
		if most := slices.Max(sizes); most > forecast.MaxSimulated && (f.rack.of > 0 || f.churn > 0) {
			return usage("--sizes %d: fleets of more than %d workers are extrapolated, which excludes --rack and --churn: "+
				"give at most %d, or omit both", most, forecast.MaxSimulated, forecast.MaxSimulated)
		}
		threads := cmp.Or(o.Threads, goruntime.NumCPU())
		fleets := forecast.Fleets{
			Options:  o,
			Each:     f.each,
			Sizes:    sizes,
			Rounds:   rounds,
			Measure:  f.measure,
			Goodbye:  f.goodbye,
			Progress: func(text string) { f.showProgress("%s", text) },
			Note:     func(text string) { f.notes = append(f.notes, text) },
		}
		if f.churn > 0 {
			fleets.Churn = f.drawChurn
		}
		fleets.Shape = func(cfg *simulate.Config) {
			cfg.Link, cfg.Up, cfg.Down = func(int, int) simulate.Link { return link }, up, down
			cfg.Control, cfg.PerByte, cfg.Hop, cfg.Racks = link.Delay, perByte, hop, racks
			if given("control") {
				cfg.Control = f.control
			}
			drawn, sharers := cfg.Pace, 1.0
			if f.cores > 0 { // all workers compute at the same time
				sharers = max(1, float64(cfg.Workers*threads)/float64(f.cores))
				cfg.PerByte *= sharers
			}
			every := cmp.Or(slow[everyWorker], 1)
			cfg.PerByte *= every
			cfg.Hop *= every
			cfg.Pace = func(w int, uniform func() float64) float64 {
				return sharers * every * cmp.Or(slow[w], 1) * drawn(w, uniform)
			}
		}
		rows, err := fleets.Predict(c.Context())
		if errors.Is(err, simulate.ErrChurn) {
			err = fmt.Errorf("%w: give --churn a longer time than %s", err, f.churn)
		}
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
		return json.NewEncoder(exact(s.out)).Encode(all)
	}
	heads := []string{"algorithm", ">workers", ">a round", ">p95", ">plain model", ">training", ">sent", ">samples/s"}
	if f.churn > 0 {
		heads = slices.Insert(heads, 5, ">if all stay", ">departures", ">all there")
	}
	if f.each > 0 {
		heads = slices.Insert(heads, 2, ">members")
		fmt.Fprintf(s.out, "%s of %s a worker; %s\n\n", plural(f.each, "member"), all[len(all)-1].ModelAndData, f.fleet())
	} else {
		fmt.Fprintf(s.out, "%s of %s; %s\n\n", plural(all[0].Members, "member"), all[len(all)-1].ModelAndData, f.fleet())
	}
	t := newTable(heads...)
	for _, r := range all {
		p95 := seconds(r.P95)
		if r.Extrapolated > 0 {
			p95 = "–"
		}
		cells := []string{r.Algorithm, fmt.Sprint(r.Workers), seconds(r.Seconds), p95, seconds(r.Plain),
			fmt.Sprintf("%.0f%%", 100*r.Training),
			humanBytes(int64(r.Bytes)), grouped(int64(r.Rate))}
		if r.Departures != nil {
			cells = slices.Insert(cells, 5, seconds(r.Steady), fmt.Sprint(*r.Departures), fmt.Sprintf("%.0f%%", 100**r.Whole))
		}
		if f.each > 0 {
			cells = slices.Insert(cells, 2, fmt.Sprint(r.Members))
		}
		t.row(cells...)
	}
	t.write(s.out)
	return nil
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
			return nil, usage("--sizes %d: there are %d members, and a worker without any does nothing; give more --members, or --each",
				n, members)
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
