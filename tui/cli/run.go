package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"brood/models/environment"
	"brood/presets"
	"brood/runtime/evaluate"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/option"
	"brood/runtime/report"
	"brood/runtime/session"
)

// runFlags holds the flags of run, and of brood without a command.
type runFlags struct {
	set             []string
	opts            option.Options // from the flags of the option table
	session, resume string
	continueRun     bool        // --continue
	continued       bool        // the session of --session has begun, and resume names it
	limit           event.Limit // of the command, if continued
	complete        bool        // the continued run was complete
	background      bool
	plain, json     bool
	draw            drawFlags
	full            bool // use the full form of the preset
	host            bool // child process: train the order on standard input
	detached        bool // a child process trains, and a workbench shows it
	dryRun          bool // child process: print the estimated needs of the order on standard input
	serves          bool // workers of other processes may join
}

func (f *runFlags) register(c *cobra.Command) {
	fl := c.Flags()
	fl.StringArrayVar(&f.set, "set", nil,
		"set a knob: NAME=VALUE or NAME=SCHEDULE, such as eta=0.1 or eta=cosine:0.1..0.001@+200 (repeatable)")
	fl.BoolVar(&f.full, "full", false, "the full form of the preset, as published, instead of the short one")
	optionFlags(c, &f.opts, withoutJoined(option.All)...)
	sessionFlag(fl, &f.session)
	fl.StringVar(&f.resume, "resume", "", "resume this session")
	fl.BoolVar(&f.continueRun, "continue", false,
		"if the session of --session exists, resume it: a command that is started again continues its run")
	fl.BoolVar(&f.background, "background", false, "train in a background process and return")
	fl.BoolVar(&f.plain, "plain", false, "no workbench: print progress lines")
	fl.BoolVar(&f.json, "json", false, "no workbench: print one JSON object a line")
	f.draw.register(c)
	fl.BoolVar(&f.host, "host", false, "")
	_ = fl.MarkHidden("host")
	fl.BoolVar(&f.dryRun, "rehearse", false, "")
	_ = fl.MarkHidden("rehearse")
}

// unattended reports whether no terminal follows the run.
func (f *runFlags) unattended() bool { return !f.detached || f.background }

func runCommand(s streams) *cobra.Command { return (&runFlags{}).command(s) }

func (f *runFlags) command(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "run [PRESET|FILE.toml]", SuggestFor: []string{"train"},
		Short: "Train: in the workbench, or with --plain or --json in the foreground",
		Args:  atMostOne("preset"),
		RunE: func(c *cobra.Command, args []string) error {
			return f.execute(c, strings.Join(args, ""), s)
		},
	}
	f.register(c)
	return c
}

// execute trains in this process, or starts a child process that trains and opens a workbench on it.
func (f *runFlags) execute(c *cobra.Command, preset string, s streams) error {
	switch {
	case f.host:
		return runOrder(c.Context(), s)
	case f.dryRun:
		return writeEstimate(s)
	case f.background && f.plain:
		return usage("--plain and --background exclude each other: a run in the background prints nothing")
	case f.background && f.json:
		return usage("--json and --background exclude each other: a run in the background prints nothing")
	}
	if err := onePrinter(f.plain, f.json); err != nil {
		return err
	}
	if f.plain || f.json || !f.background && !s.terminal {
		return f.foreground(c, preset, s)
	}
	return f.runDetached(c, preset, s)
}

// options merges the preset and the flags.
func (f *runFlags) options(c *cobra.Command, preset string) (host.Options, error) {
	p, err := f.preset(preset)
	if err != nil {
		return host.Options{}, err
	}
	return f.merge(p, c.Flags().Changed)
}

// preset loads the preset that presetOf returns, in its full form with --full. It returns an empty preset if the
// flags say what to train.
func (f *runFlags) preset(name string) (p presets.Preset, err error) {
	if name = f.presetOf(name); name != "" {
		if p, err = presets.Load(name); err != nil {
			return p, err
		}
	}
	if text := option.Objective.Text(f.opts); text != "" && p.Options.Model != "" {
		return p, usage("preset %s trains a model, and --objective %s replaces models: leave the preset out and give "+
			"--algorithm", name, text)
	}
	if text := option.Program.Text(f.opts); text != "" && p.Options.Model != "" {
		return p, usage("preset %s trains a model, and --program %s has its own model: leave the preset out and give "+
			"--algorithm", name, text)
	}
	for _, x := range []*option.Option{option.Env, option.BBOB} {
		if text := x.Text(f.opts); text != "" && p.Options.Model != "" {
			return p, usage("preset %s trains a model, and --%s %s replaces models: leave the preset out", name, x.Name, text)
		}
	}
	switch {
	case !f.full:
		return p, nil
	case name == "":
		return p, usage("--full needs a preset")
	}
	return p.InFull()
}

// presetOf returns name. If it is empty, it returns the preset of the environment or the benchmark that a flag names,
// or else the default preset if no flag says what to train.
func (f *runFlags) presetOf(name string) string {
	env := option.Env.Text(f.opts)
	switch {
	case name != "":
	case slices.Contains(environment.Names(), env):
		return env
	case option.BBOB.Text(f.opts) != "":
		return option.BBOB.Name
	case f.opts.Algorithm == "" && f.opts.Model == "" && f.opts.Data == "" && env == "" &&
		option.Objective.Text(f.opts) == "" && option.Program.Text(f.opts) == "":
		return presets.Default
	}
	return name
}

// presetName returns the name to record for a run from a preset. It appends the algorithm, model and data that differ
// from the preset.
func presetName(p presets.Preset, o host.Options) string {
	name := p.Name
	for _, x := range []*option.Option{option.Algorithm, option.Model, option.Data} {
		if text := x.Text(o); name != "" && text != x.Text(p.Options) {
			name = strings.TrimSuffix(name, ".toml") + ", " + strings.TrimSuffix(filepath.Base(text), ".toml")
		}
	}
	return name
}

// merge applies the flags, where given reports them, over a preset.
func (f *runFlags) merge(p presets.Preset, given func(flag string) bool) (host.Options, error) {
	o := p.Options
	o.Unattended, o.By = f.unattended(), "flag"
	var err error
	if o.Rules, err = p.Rules(); err != nil {
		return o, fmt.Errorf("preset %s: %w", p.Name, err)
	}
	if a := f.opts.Algorithm; a == "" || a == p.Options.Algorithm {
		for _, k := range p.Settings() {
			o.Base = append(o.Base, event.Setting{Knob: k.Knob, Expr: k.Expr})
		}
	} else if len(p.Settings()) > 0 {
		o.Unused = p.Options.Algorithm
	}
	o.Seed = cmp.Or(o.Seed, 1)
	if err := f.overridePreset(&o, given); err != nil {
		return o, err
	}
	if f.serves {
		o.Workers, o.Wait = f.opts.Workers+f.opts.Wait, f.opts.Wait
		if o.Members == host.Auto {
			return o, usage("--members auto counts the threads of this machine, but other machines train a served " +
				"run: give a number")
		}
	}
	set, err := parseSettings(f.set)
	if err != nil {
		return o, err
	}
	for _, s := range set {
		if s.Knob == option.Members.Name {
			return o, usage("--set members: give the population of a new run with --members")
		}
	}
	o.Set = append(o.Set, set...)
	o.Preset = presetName(p, o)
	return o, nil
}

// parseSettings parses words of the form NAME=VALUE.
func parseSettings(words []string) (out []event.Setting, err error) {
	for _, w := range words {
		name, expr, ok := strings.Cut(w, "=")
		if !ok || name == "" || expr == "" {
			return nil, usage("%q: write NAME=VALUE, such as eta=0.1", w)
		}
		out = append(out, event.Setting{Knob: name, Expr: expr})
	}
	return out, nil
}

// prepared is a run ready to train in this process.
type prepared struct {
	job  *host.Job
	sess *session.Session
	from *host.Restored
	// open starts the run; nil: host.Start, with all workers in this process
	open func(p prepared, watch func(event.Record)) (*host.Run, error)

	interrupt func()          // called before a signal stops the run; may be nil
	until     context.Context // when it ends, the run finishes its round and saves; nil: only signals stop the run
}

func (p prepared) start(watch func(event.Record)) (*host.Run, error) {
	if p.open != nil {
		return p.open(p, watch)
	}
	return host.Start(p.job, p.sess, p.from, watch)
}

// prepare opens the run that the flags describe, for this process.
func (f *runFlags) prepare(ctx context.Context, c *cobra.Command, preset string) (p prepared, err error) {
	o, err := f.order(c, preset)
	if err != nil {
		return p, err
	}
	return open(o.Open(ctx, noteRecomputed(c.ErrOrStderr(), time.Now())))
}

// open converts an opened order to a prepared run.
func open(r host.Opened, err error) (prepared, error) {
	return prepared{job: r.Job, sess: r.Session, from: r.From}, err
}

// runOrder trains the order that it reads on standard input, without output.
func runOrder(ctx context.Context, s streams) error {
	o, err := host.ReadOrder(s.in)
	if err != nil {
		return err
	}
	if o.Dir == "" {
		return usage("read order of a run: it names no directory; start runs with brood run")
	}
	p, err := open(o.Open(ctx, nil))
	if e, complete := errors.AsType[*host.CompleteError](err); complete && o.Repeated && e.Missed == "" {
		return nil
	}
	if err != nil {
		return err
	}
	return train(ctx, p, silentPrinter{})
}

// continueSession makes the flags resume the session of --session if --continue is given and the session exists. It
// fails if the session records another run than the flags describe.
func (f *runFlags) continueSession(c *cobra.Command, preset string) error {
	switch {
	case !f.continueRun || f.continued:
		return nil
	case f.resume != "":
		return usage("--continue and --resume exclude each other: --continue resumes the session of --session")
	case f.session == "":
		return usage("--continue needs --session NAME, the session that it begins or resumes")
	}
	o, err := f.options(c, preset)
	if err != nil {
		return err
	}
	begun, err := host.Continues(f.session, o)
	if err != nil {
		return err
	}
	if !begun {
		return session.Discard(f.session)
	}
	f.resume, f.continued, f.limit = f.session, true, o.Limit
	return nil
}

// sessionFlag registers --session.
func sessionFlag(fl *pflag.FlagSet, to *string) {
	fl.StringVar(to, "session", "", "name, in your sessions directory, or path of the directory to record into "+
		"(default: a new one in your sessions directory)")
}

// placeSession replaces the name of --session by the path of that session.
func (f *runFlags) placeSession() (err error) {
	if f.session != "" {
		f.session, err = session.Place(f.session)
	}
	return err
}

// order returns the run that the flags describe: a new one, or a resumed session with changed options.
func (f *runFlags) order(c *cobra.Command, preset string) (o host.Order, err error) {
	if err := f.placeSession(); err != nil {
		return o, err
	}
	if err := f.continueSession(c, preset); err != nil {
		return o, err
	}
	if f.continued {
		o.Resume, o.Repeated, o.Reattach, o.Dir = true, true, f.serves, f.session
		f.set = nil // the session has the knobs of this command
		o.Options, err = f.changes(c, "flag")
		o.Options.Limit = f.limit
		return o, err
	}
	if f.resume == "" {
		o.Dir = f.session
		o.Options, err = f.options(c, preset)
		return o, err
	}
	if err := checkResumable(c.Flags().Changed); err != nil {
		return o, err
	}
	if preset != "" {
		return o, usage("--resume keeps the settings of the session: leave the preset %q out", preset)
	}
	o.Resume, o.Reattach = true, f.serves
	if o.Dir, err = resolve(f.resume); err != nil {
		return o, err
	}
	o.Options, err = f.changes(c, "flag")
	return o, err
}

// changes returns the options that flags change in a run that is resumed or forked. by names the author in the log.
func (f *runFlags) changes(c *cobra.Command, by string) (o host.Options, err error) {
	if o.Set, err = parseSettings(f.set); err != nil {
		return o, err
	}
	o.Unattended, o.By = f.unattended(), by
	err = f.override(&o, option.With(option.Again), c.Flags().Changed)
	o.Workers += f.opts.Wait
	return o, err
}

// foreground trains in this process and prints progress.
func (f *runFlags) foreground(c *cobra.Command, preset string, s streams) error {
	p, err := f.prepare(c.Context(), c, preset)
	if err != nil {
		return f.unlessComplete(err, s)
	}
	return train(c.Context(), p, newPrinter(s, f.json))
}

// unlessComplete returns nil for the error of a run that is complete, if the command was to continue it: a scheduler
// that starts the command again is done.
func (f *runFlags) unlessComplete(err error, s streams) error {
	e, complete := errors.AsType[*host.CompleteError](err)
	if !f.continued || !complete || e.Missed != "" {
		return err
	}
	f.complete = true
	fmt.Fprintf(s.err, "brood: session %s: %s\n", f.session, sentence(err))
	return nil
}

// deadline is when a run must have ended.
type deadline struct {
	at   time.Time     // zero: never
	most time.Duration // the largest time that is left for the end
}

// newDeadline returns the deadline of the options, by the wall clock: the machine may be suspended. At most half of the
// time is left for the end.
func newDeadline(o option.Options) (deadline, error) {
	now := time.Now().Round(0)
	at, err := option.ParseDeadline(option.Deadline.Text(o), now)
	return deadline{at, max(0, at.Sub(now)/2)}, err
}

// due reports whether the run has just the time to save and end.
func (d deadline) due(run *host.Run) bool {
	return !d.at.IsZero() && time.Now().Round(0).After(d.at.Add(-min(d.most, run.WindDown())))
}

// deadlinePoll is the time between looks at the clock.
const deadlinePoll = 100 * time.Millisecond

// train runs until the run ends or a signal arrives: the first signal, or the deadline, finishes the round and saves, a
// second signal stops at once.
func train(ctx context.Context, p prepared, to printer) (err error) {
	out := withLog(to)
	defer func() { out.fail(err) }()
	end, err := newDeadline(p.job.Options)
	if err != nil {
		p.sess.Close()
		return err
	}
	signals := make(chan os.Signal, 2)
	defer notifyExit(ctx, signals)()
	out.begin(p) // a reader of this output may send a signal, so that the handler must be installed before
	run, err := p.start(out.record)
	if err != nil {
		p.sess.Close()
		return err
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	if p.until != nil {
		defer context.AfterFunc(p.until, run.Interrupt)()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var left os.Signal
	done := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		poll := time.NewTicker(deadlinePoll)
		defer poll.Stop()
		for {
			var sig os.Signal
			select {
			case sig = <-signals:
			case <-poll.C:
				if left != nil || !end.due(run) {
					continue
				}
				out.note("the deadline is " + end.at.Format(time.DateTime))
				sig = syscall.SIGTERM
			case <-done:
				return
			}
			again := left != nil
			if left = sig; again {
				cancel()
				return
			}
			out.note("finishing the round and saving; a second signal ends at once")
			if p.interrupt != nil {
				p.interrupt()
			}
			run.Interrupt()
		}
	}()
	stopWaits := watchWaits(out, run.Doing)
	exit, err := run.Train(ctx)
	stopWaits()
	close(done)
	<-watched
	var evaluateTest func() testReport
	// Skip the test report for served runs, whose population may not fit on this machine, and for interrupted ones.
	if p.open == nil && left == nil && exit.Phase == event.Finished {
		test := func(ctx context.Context) (*report.Report, error) { return evaluate.ReportRun(ctx, run) }
		evaluateTest = func() testReport { return evaluateTestSet(ctx, test, p.job.Config.Kernels, signals, out.note) }
	}
	out.end(exit, evaluateTest)
	full, _ := left.(unwritten)
	switch {
	case full.writeError != nil && exit.Phase != event.Finished:
		return &writeError{full.err, "resume the saved run with: " + resumeLine(p.sess.Dir())}
	case left != nil && exit.Phase != event.Finished: // a signal after the last round changes nothing
		return &exitError{code: signalStatus(left), err: fmt.Errorf("interrupted; resume with: %s",
			resumeLine(p.sess.Dir()))}
	case err != nil:
		return err
	case exit.Phase == event.Failed && exit.Branch > 0:
		return fmt.Errorf("the run failed: %s; branch before it: brood fork %s --at %d --set KNOB=VALUE", exit.Reason,
			p.sess.Dir(), exit.Branch)
	case exit.Phase == event.Failed:
		return fmt.Errorf("the run failed: %s; once its cause is removed, resume with: %s", exit.Reason,
			resumeLine(p.sess.Dir()))
	case exit.Missed != "":
		return fmt.Errorf("the run ended before its target %s was met; it is saved: resume it with a higher limit, "+
			"such as %s --target %s",
			exit.Missed, resumeCommand(p.sess.Dir()), exit.Missed)
	}
	return nil
}
