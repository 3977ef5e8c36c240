package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	goruntime "runtime"
	"time"

	"github.com/spf13/cobra"

	"brood/models/usererr"
	"brood/runtime/host"
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
	fast                   bool
	patience               time.Duration
}

func workerCommand(s streams) *cobra.Command {
	f := &workerFlags{}
	c := &cobra.Command{
		Use:   "worker JOIN-URL|-",
		Short: "Host members of runs that brood serve, sweep or reproduce has started, perhaps on another machine",
		Long:  "Host members of a run that brood serve has started, perhaps on another machine, or of the runs of a sweep or a study, one after another. With - the join URL is read from standard\ninput, so that no process list shows its token.",
		Args:  exactly("a join URL"),
		RunE:  func(c *cobra.Command, args []string) error { return f.execute(c, args[0], s) },
	}
	fl := c.Flags()
	fl.StringVar(&f.key, "key", "",
		"file with this worker's key, made if it is not there: the coordinator knows it again (default: a new key each time)")
	fl.StringVar(&f.listen, "listen", "", "UDP address to listen on, HOST:PORT (default: any port)")
	fl.StringVar(&f.advertise, "advertise", "",
		"HOST:PORT where other workers reach this one (default: where its packets come from)")
	threadsFlag(fl, &f.threads)
	fl.StringVar(&f.device, option.Device.Name, "", option.Device.Doc)
	fl.StringVar(&f.objective, option.Objective.Name, "",
		"`program` that runs which maximise one may start here: the coordinator never says which")
	fl.StringVar(&f.program, option.Program.Name, "",
		"`program` of runs that train its model: the coordinator never says which")
	fl.Float64Var(&f.slow, "slow", 1,
		"compute so many times slower than this machine can, by processor time: several such workers try out a fleet on one machine")
	fl.BoolVar(&f.fast, "fast-frames", false,
		"with --slow: what is sent and received costs what it costs this machine, as where a network card does it")
	fl.DurationVar(&f.patience, "patience", time.Minute, "how long to try again when the coordinator does not answer")
	return c
}

func (f *workerFlags) execute(c *cobra.Command, url string, s streams) error {
	switch {
	case !(f.slow >= 1 && f.slow <= maxSlow):
		return usage("--slow %g: give a factor from 1 to %d", f.slow, maxSlow)
	case f.fast && f.slow == 1:
		return usage("--fast-frames is of a worker that is slower: give --slow too")
	case f.patience < 0:
		return usage("--patience %s: give a duration such as 30s", f.patience)
	case f.slow > 1 && (!option.Processor(f.device) || f.objective+f.program != ""):
		return usage("--slow is about this process's own computing: leave --device, --objective and --program out")
	}
	if url == "-" { // read it from stdin: process lists show arguments, and the token is secret
		line, err := bufio.NewReader(s.in).ReadString('\n')
		if err != nil && line == "" {
			return fmt.Errorf("read the join URL from standard input: %w", err)
		}
		url = line
	}
	join, err := identity.ParseJoin(url)
	if err != nil {
		return usage("%w", err)
	}
	if _, _, err := net.SplitHostPort(f.listen); f.listen != "" && err != nil {
		return usage("--listen %q is no HOST:PORT", f.listen)
	}
	if _, _, err := net.SplitHostPort(f.advertise); f.advertise != "" && err != nil {
		return usage("--advertise %q is no HOST:PORT", f.advertise)
	}
	if c.Flags().Changed(option.Device.Name) {
		if _, _, _, err := option.ParseDevice(f.device); err != nil {
			return err
		}
	}
	if f.threads == 0 {
		f.threads = goruntime.NumCPU()
	}
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
			note("leaving: its members move to the other workers; once more to leave at once")
			close(leave)
		case <-ctx.Done():
			quiet()
		}
	}()
	err = remote.Work(ctx, remote.Worker{
		Key:       key,
		Join:      join,
		Listen:    f.listen,
		Advertise: f.advertise,
		Threads:   f.threads,
		Device:    f.device,
		Slow:      f.slow,
		Fast:      f.fast,
		Patience:  f.patience,
		Own:       own,
		Software:  "brood " + versionText(),
		Leave:     leave,
		Note:      note,
	})
	cancel()
	<-watched
	if full, ok := left.(unwritten); ok && (errors.Is(err, remote.ErrHandover) || errors.Is(err, remote.ErrLeft)) {
		return fmt.Errorf("%w: %w", full, err)
	}
	if errors.Is(err, remote.ErrHandover) {
		return &exitError{code: signalStatus(left), err: fmt.Errorf("interrupted: %w, and the run treats them as lost", err)}
	}
	if errors.Is(err, remote.ErrLeft) {
		return &exitError{code: signalStatus(left),
			err: errors.New("interrupted: this worker has left, and the run goes on without it")}
	}
	return usererr.Recorded(err) // the settings of the run are not arguments of this command
}
