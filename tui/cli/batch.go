package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"brood/presets"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/option"
	"brood/runtime/session"
	"brood/runtime/sweep"
	"brood/tui/textfmt"
)

// Flags, signals and the view of a batch, for sweep, reproduce, judge and scale. Package sweep executes the batch.

// batchFlags holds the flags that sweep, reproduce and judge share, in addition to those of run.
type batchFlags struct {
	seeds seedsFlag
	jobs  int
	fleet fleetFlags
}

func (f *batchFlags) register(c *cobra.Command, seeds int) {
	f.registerHere(c, seeds)
	f.fleet.register(c)
}

// registerHere registers the flags of a batch that this machine trains.
func (f *batchFlags) registerHere(c *cobra.Command, seeds int) {
	f.seeds.register(c, seeds)
	c.Flags().IntVar(&f.jobs, "jobs", 1, "concurrent runs; they share the threads, so their times cannot be compared")
}

func (f *batchFlags) check(c *cobra.Command, o option.Options, plain, json bool) error {
	if err := f.seeds.check(c); err != nil {
		return err
	}
	switch {
	case f.jobs < 1 || f.jobs > 1024:
		return usage("--jobs %d: give 1 to 1024", f.jobs)
	case c.Flags().Changed(option.Threads.Name):
		if err := option.Threads.CheckTyped(o); err != nil {
			return err
		}
	}
	if err := onePrinter(plain, json); err != nil {
		return err
	}
	return f.fleet.check(c, f.jobs)
}

// fleetFlags let workers of other processes train the runs.
type fleetFlags struct {
	listen string
	opts   option.Options // from the flags about joining workers
	enrol  int
}

func (f *fleetFlags) register(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.listen, "listen", "",
		"train on workers of other machines instead of this one: UDP address to listen on, such as :4433. "+
			"Prints the command that joins them")
	joinFlags(c, &f.opts)
	fl.IntVar(&f.enrol, "enrol", 0,
		"workers that the join URL admits (with --listen; default: four times --jobs times --wait)")
}

func (f *fleetFlags) check(c *cobra.Command, jobs int) error {
	given := c.Flags().Changed
	switch {
	case f.listen == "" && given("listen"):
		return usage("--listen: give HOST:PORT, or :PORT for all addresses of this machine")
	case f.listen == "":
		for _, name := range []string{option.Wait.Name, "enrol"} {
			if given(name) {
				return usage("--%s needs --listen: it applies to workers of other machines", name)
			}
		}
		return nil
	case given(option.Workers.Name):
		return usage("--workers sets workers of this process, and --listen trains on other machines: give the " +
			"workers of a run with --wait")
	case given(option.Threads.Name):
		return usage("--threads sets threads of this machine, and --listen trains on other machines: give --threads " +
			"to brood worker")
	case f.opts.Wait < 1 || f.opts.Wait > 1024:
		return usage("--wait %d: give 1 to 1024", f.opts.Wait)
	case given("enrol") && f.enrol < f.opts.Wait:
		return usage("--enrol %d: a run waits for more workers than that: give %d or more", f.enrol, f.opts.Wait)
	}
	if f.enrol == 0 {
		f.enrol = 4 * jobs * f.opts.Wait // includes replacements of lost workers
	}
	return nil
}

// workers returns the number of remote workers of a run; 0 if this machine trains the runs.
func (f *fleetFlags) workers() int {
	if f.listen == "" {
		return 0
	}
	return f.opts.Wait
}

// runs is a batch with its presentation by a command.
type runs struct {
	*sweep.Batch
	head  string // title, one line
	by    string // metric in the report of each run; "" for the test score
	fleet fleetFlags
	table func(rows int) *table // results for the moving view, at most rows rows
	pool  *workerPool           // worker processes that this process starts; nil: workers join from outside

	begun       bool // training has begun
	interrupted int  // exit status of the signal that ended the batch; 0: none
}

// newRuns returns an empty batch with these flags.
func newRuns(kind string, f batchFlags, o option.Options) runs {
	return runs{Batch: &sweep.Batch{Kind: kind, Metrics: presets.MetricNames(), Jobs: f.jobs, Threads: o.Threads,
		Wait: f.fleet.workers()}, fleet: f.fleet}
}

// check validates all runs before any of them starts.
func (b *runs) check(ctx context.Context, s streams) error {
	all := textfmt.Count(len(b.Trials), "run")
	err := b.Check(ctx, func(n int) { fmt.Fprintf(s.err, "brood: checked %d of %s\n", n, all) })
	if e, ok := errors.AsType[*sweep.MemoryError](err); ok {
		return fmt.Errorf("%d runs at a time may need %s of memory, and this machine has %s: give fewer --jobs",
			e.Jobs, textfmt.Size(e.Needs), textfmt.Size(e.Has))
	}
	return err
}

var errInterrupted = errors.New("interrupted: run the same command again to continue")

// train runs the batch, here or on a fleet.
func (b *runs) train(ctx context.Context, view *batchView) error {
	ctx, stop := interruptible(ctx, view)
	defer stop()
	if err := b.Create(); err != nil {
		return err
	}
	fleet, err := b.open(view)
	if err != nil {
		return err
	}
	if b.pool != nil {
		var out context.CancelFunc
		if ctx, out, err = b.pool.start(ctx, fleet.Join()); err != nil {
			return errors.Join(err, fleet.Close())
		}
		defer out()
	}
	b.begun = true
	err = b.work(ctx, view, fleet)
	if b.interrupted = stop(); b.interrupted != 0 && b.Unfinished() {
		err = &exitError{code: b.interrupted, err: errInterrupted}
	}
	if fleet != nil {
		err = errors.Join(err, fleet.Close())
	}
	if b.pool != nil {
		err = errors.Join(b.pool.stopAll(), err)
	}
	return err
}

// open listens for workers and prints how they join; nil if this machine trains the runs.
func (b *runs) open(view *batchView) (*sweep.Fleet, error) {
	if b.Wait == 0 {
		return nil, nil
	}
	note := view.note
	if b.pool != nil { // the pool reports its own failures
		note = func(string) {}
	}
	fleet, err := b.Listen(b.fleet.listen, b.fleet.enrol, "brood "+versionText(), note)
	if _, ok := errors.AsType[*session.LockedError](err); ok {
		return nil, fmt.Errorf("another process accepts workers for %s: join them to that process, "+
			"or leave --listen out to train on this machine", b.Dir)
	}
	if err != nil {
		return nil, err
	}
	if b.pool == nil {
		view.join(fleet.Join())
	}
	return fleet, nil
}

// work executes the unfinished runs, writes the rows of results and reports failures.
func (b *runs) work(ctx context.Context, view *batchView, fleet *sweep.Fleet) error {
	if err := b.ReadStates(); err != nil {
		return err
	}
	view.begin()
	defer view.close()
	halted := b.Run(ctx, b.runner(fleet), view.done)
	view.close()
	if err := b.WriteRows(); err != nil {
		fmt.Fprintln(view.s.err, "brood: "+err.Error())
	}
	failed := 0
	for _, t := range b.Trials {
		if t.Failed != nil {
			failed++
			fmt.Fprintf(view.s.err, "brood: %s: %v\n", t, t.Failed)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %s failed; run the same command again to retry them", failed,
			textfmt.Count(len(b.Trials), "run"))
	}
	return halted
}

// runner returns the function that trains one run of the batch, with the signal handling of any run of this process.
func (b *runs) runner(fleet *sweep.Fleet) sweep.Runner {
	return func(ctx context.Context, r sweep.Ready) error {
		p := prepared{job: r.Job, sess: r.Session, from: r.From, until: ctx}
		if fleet != nil {
			p.open = func(_ prepared, watch func(event.Record)) (*host.Run, error) {
				run, err := fleet.Serve(r, watch)
				if err == nil && b.pool != nil {
					b.pool.shapeLinks(ctx, run, r.Trial)
				}
				return run, err
			}
		}
		err := train(context.WithoutCancel(ctx), p, follower{watch: r.Watch})
		if b.pool != nil {
			err = errors.Join(err, b.pool.saveLate(r.Trial, b.pool.maxLate()))
		}
		_, unwritten := errors.AsType[*writeError](err)
		if exit, ok := errors.AsType[*exitError](err); unwritten || ok && exit.code >= exitCtrlC {
			return sweep.ErrInterrupted
		}
		return err
	}
}

// follower is the printer of a single run of a batch. It prints nothing: the batch reports on all of its runs.
type follower struct {
	silentPrinter
	watch func(event.Record)
}

func (f follower) record(r event.Record) { f.watch(r) }

// interruptible returns a context that ends at a signal, at which the active runs finish their round and save. Each
// run handles a second signal itself. The first call of stop returns the exit status of the signal, or 0.
func interruptible(ctx context.Context, view *batchView) (out context.Context, stop func() int) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 1)
	quiet := notifyExit(ctx, signals)
	status, handled := 0, make(chan struct{})
	onSignal := func(sig os.Signal) {
		quiet() // with no active run, a second signal ends the process
		status = signalStatus(sig)
		cancel()
		view.note("finishing the current rounds and saving; a second signal ends at once")
	}
	go func() {
		defer close(handled)
		select {
		case sig := <-signals:
			onSignal(sig)
		case <-ctx.Done():
			select {
			case sig := <-signals:
				onSignal(sig)
			default:
			}
		}
	}()
	return ctx, func() int {
		quiet()
		cancel()
		<-handled
		return status
	}
}

// trial returns the options of one run of a batch: the preset, overridden by flags, overridden by what the batch
// varies, which are flags of run or knobs.
func (f runFlags) trial(p presets.Preset, given func(flag string) bool, vary []presets.Setting) (host.Options, error) {
	var names []string
	f.set = nil
	for _, x := range vary {
		names = append(names, x.Knob)
		if o := option.Named(x.Knob); o == nil || !o.Has(option.Axis) {
			f.set = append(f.set, x.Knob+"="+x.Expr)
		} else if o.Set(&f.opts, x.Expr) != nil {
			return host.Options{}, usage("--%s %s: give a number", x.Knob, x.Expr)
		}
	}
	return f.merge(p, func(flag string) bool { return given(flag) || slices.Contains(names, flag) })
}
