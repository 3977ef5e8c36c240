package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	goruntime "runtime"
	"time"

	"github.com/spf13/cobra"

	"brood/models/usererr"
	"brood/runtime/host"
	"brood/runtime/machine"
	"brood/runtime/option"
	"brood/runtime/remote"
	"brood/transport/identity"
)

// maxSlow is the largest slowdown factor of a worker: the coordinator abandons rounds that take longer than its
// timeout.
const maxSlow = 100

type workerFlags struct {
	key, listen, advertise string
	threads                int
	device                 string
	objective, program     string
	slow                   float64
	alone                  bool // --slow is given: it emulates a separate machine
	fast                   bool
	retry                  time.Duration
}

func workerCommand(s streams) *cobra.Command {
	f := &workerFlags{}
	c := &cobra.Command{
		Use:   "worker JOIN-URL...|-",
		Short: "Host members of runs that brood serve, sweep or reproduce has started, perhaps on another machine",
		Long: "Host members of a run that brood serve has started, perhaps on another machine, or of the runs of a " +
			"sweep or a study,\n" +
			"one after another. With - the join URL is read from standard input, so that no process list shows its " +
			"token.\n" +
			"Several URLs, such as of hosts on which the coordinator may be started again, are tried in turn while it " +
			"does not answer.",
		Args: atLeastOne("a join URL"),
		RunE: func(c *cobra.Command, args []string) error { return f.execute(c, args, s) },
	}
	fl := c.Flags()
	fl.StringVar(&f.key, "key", "",
		"file with this worker's key, created if missing; by it the coordinator recognises the worker (default: a new "+
			"key each time)")
	fl.StringVar(&f.listen, "listen", "", "UDP address to listen on, HOST:PORT (default: any port)")
	fl.StringVar(&f.advertise, "advertise", "",
		"HOST:PORT where other workers reach this one (default: the source address of its packets)")
	threadsFlag(fl, &f.threads)
	fl.StringVar(&f.device, option.Device.Name, "", option.Device.Doc)
	fl.StringVar(&f.objective, option.Objective.Name, "",
		"`program` to start for runs that maximise an objective; the coordinator cannot choose it")
	fl.StringVar(&f.program, option.Program.Name, "",
		"`program` to start for runs that train the model of a program; the coordinator cannot choose it")
	fl.Float64Var(&f.slow, "slow", 1,
		"slow computing down by this factor of processor time, so that several workers emulate a fleet on one machine; "+
			"with 1 only the network is as between machines")
	fl.BoolVar(&f.fast, "fast-frames", false,
		"with --slow: do not slow sending and receiving down, as if a network card did the work")
	fl.DurationVar(&f.retry, "retry", time.Minute, "how long to retry while the coordinator does not answer")
	return c
}

func (f *workerFlags) check(c *cobra.Command) error {
	f.alone = c.Flags().Changed("slow")
	switch {
	case !(f.slow >= 1 && f.slow <= maxSlow):
		return usage("--slow %g: give a factor from 1 to %d", f.slow, maxSlow)
	case f.fast && f.slow == 1:
		return usage("--fast-frames needs --slow")
	case f.retry < 0:
		return usage("--retry %s: give a duration such as 30s", f.retry)
	case f.slow > 1 && (!option.IsCPU(f.device) || f.objective+f.program != ""):
		return usage("--slow slows down only this process: leave --device, --objective and --program out")
	}
	for _, x := range [][2]string{{"listen", f.listen}, {"advertise", f.advertise}} {
		if _, _, err := net.SplitHostPort(x[1]); x[1] != "" && err != nil {
			return usage("--%s %q: give HOST:PORT", x[0], x[1])
		}
	}
	if c.Flags().Changed(option.Device.Name) {
		if _, _, _, err := option.ParseDevice(f.device); err != nil {
			return err
		}
	}
	return nil
}

// joinURL parses the argument. For - it reads the URL from standard input: process lists show arguments, and the token
// of the URL is secret.
func joinURL(arg string, in io.Reader) (join identity.Join, err error) {
	if arg == "-" {
		line, err := bufio.NewReader(in).ReadString('\n')
		if err != nil && line == "" {
			return join, fmt.Errorf("read the join URL from standard input: %w", err)
		}
		arg = line
	}
	if join, err = identity.ParseJoin(arg); err != nil {
		return join, usage("%w", err)
	}
	return join, nil
}

func (f *workerFlags) execute(c *cobra.Command, urls []string, s streams) error {
	if err := f.check(c); err != nil {
		return err
	}
	var joins []identity.Join
	for _, url := range urls {
		join, err := joinURL(url, s.in)
		if err != nil {
			return err
		}
		joins = append(joins, join)
	}
	threads := cmp.Or(f.threads, goruntime.NumCPU())
	own, err := host.JoiningProgram(c.Context(), f.objective, f.program, f.device)
	if err != nil {
		return err
	}
	key, err := identity.New()
	if f.key != "" {
		key, err = identity.Load(f.key)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	note := func(text string) { fmt.Fprintln(s.out, "brood: "+text) }
	signals, leave := make(chan os.Signal, 2), make(chan struct{})
	quiet := notifyExit(ctx, signals)
	left, watched := os.Signal(nil), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case sig := <-signals:
			quiet() // a second signal ends the process at once
			left = sig
			note("leaving: its members move to the other workers; a second signal ends at once")
			close(leave)
		case <-ctx.Done():
			quiet()
		}
	}()
	machineID := machine.Identity()
	if f.alone {
		machineID = ""
	}
	err = remote.Work(ctx, remote.Worker{
		Key:       key,
		Join:      joins[0],
		Others:    joins[1:],
		Listen:    f.listen,
		Advertise: f.advertise,
		Threads:   threads,
		Device:    f.device,
		Machine:   machineID,
		Slow:      f.slow,
		Fast:      f.fast,
		Patience:  f.retry,
		Own:       own,
		Software:  "brood " + versionText(),
		Leave:     leave,
		Note:      note,
	})
	cancel()
	<-watched
	return workerError(err, left)
}

// workerError returns the error of a worker that a signal may have interrupted; sig is nil without one.
func workerError(err error, sig os.Signal) error {
	handover := errors.Is(err, remote.ErrHandover)
	if !handover && !errors.Is(err, remote.ErrLeft) {
		return usererr.Recorded(err) // the settings of the run are not arguments of this command
	}
	if full, ok := sig.(unwritten); ok {
		return fmt.Errorf("%w: %w", full, err)
	}
	text := errors.New("interrupted: this worker has left, and the run continues without it")
	if handover {
		text = fmt.Errorf("interrupted: %w, and the run treats them as lost", err)
	}
	return &exitError{code: signalStatus(sig), err: text}
}
