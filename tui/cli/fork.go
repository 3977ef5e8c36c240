package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"brood/runtime/door"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/session"
)

func forkCommand(s streams) *cobra.Command {
	f := &runFlags{}
	var at uint64
	c := &cobra.Command{Use: "fork SESSION --at ROUND", Short: "Branch a run of its own off a recorded round", Args: exactly("a SESSION"),
		RunE: func(c *cobra.Command, args []string) error {
			if at == 0 {
				return usage("fork needs --at ROUND, 1 or more; a branch at the start is a new `brood run`")
			}
			if f.background && !f.host {
				return f.forkApart(c, args[0], at, s)
			}
			p, err := f.branch(c.Context(), c, args[0], at, s)
			if err != nil {
				return err
			}
			return train(c.Context(), p, newPrinter(s, f.json, f.host))
		}}
	fl := c.Flags()
	fl.Uint64Var(&at, "at", 0, "the round to branch after")
	fl.StringArrayVar(&f.set, "set", nil, "set a knob in the branch: NAME=VALUE or NAME=SCHEDULE (repeatable)")
	fl.IntVar(&f.workers, "workers", 0, "workers that host the members")
	fl.IntVar(&f.threads, "threads", 0, "threads of all workers together")
	fl.Uint64Var(&f.rounds, "rounds", 0, "stop at this round")
	fl.Float64Var(&f.epochs, "epochs", 0, "stop after so many epochs")
	fl.DurationVar(&f.duration, "for", 0, "stop after so long, such as 30s")
	fl.StringVar(&f.target, "target", "", "stop when a target is met")
	fl.StringVar(&f.session, "session", "", "directory to record into")
	fl.StringVar(&f.onLoss, "on-loss", "", "when a worker dies its members: reseed, rollback or shrink")
	fl.StringVar(&f.onTrouble, "on-trouble", "", onTroubleUsage)
	fl.BoolVar(&f.json, "json", false, "print one JSON object a line")
	fl.BoolVar(&f.background, "background", false, "train in a process of its own and return")
	fl.BoolVar(&f.host, "host", false, "")
	_ = fl.MarkHidden("host")
	return c
}

// branch restores a round of one session into another.
func (f *runFlags) branch(ctx context.Context, c *cobra.Command, parent string, at uint64, s streams) (p prepared, err error) {
	from, err := resolve(parent)
	if err != nil {
		return p, err
	}
	set, err := parseSettings(f.set)
	if err != nil {
		return p, err
	}
	if err := host.Settable(from, at, set); err != nil {
		return p, err
	}
	home, err := session.Home()
	if err != nil {
		return p, err
	}
	dir, keep := f.session, existing(cmp.Or(f.session, home))
	if dir == "" {
		if dir, err = session.NewDir("fork", time.Now()); err != nil {
			return p, err
		}
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return p, err
	}
	before, _ := os.ReadDir(dir)
	if p.sess, err = session.Create(dir); err != nil {
		return p, err
	}
	defer func() {
		if err == nil {
			return
		}
		p.sess.Close()
		if len(before) == 0 { // all of it was made here
			os.RemoveAll(dir)
			vanish(filepath.Dir(dir), keep)
		}
	}()
	progress, quiet, err := f.progress(dir, filepath.Base(from), at, s)
	if err != nil {
		return p, err
	}
	defer quiet()
	if p.from, err = host.Restore(ctx, from, at, &host.Files{Dir: dir}, f.threads, progress); err != nil {
		return p, err
	}
	l := p.from.Limit
	if err := f.limit(c.Flags().Changed, &l); err != nil {
		return p, err
	}
	p.job = p.from.Job
	return p, p.from.Fork(filepath.Base(from), host.Options{Workers: f.workers, Threads: f.threads, OnLoss: f.onLoss, OnTrouble: f.onTrouble, Unattended: f.unattended(), Limit: l, Set: set, By: "fork"})
}

// progress tells of the rounds that are executed again until quiet: a process of its own at the door of its session, another with a line.
func (f *runFlags) progress(dir, parent string, at uint64, s streams) (told func(event.Commit), quiet func(), err error) {
	if f.host {
		a, err := door.Announce(dir, at)
		if err != nil {
			return nil, nil, err
		}
		return func(k event.Commit) { a.Tell(k.To) }, a.Close, nil
	}
	say := sync.OnceFunc(func() { fmt.Fprintf(s.err, "brood: bringing back round %d of %s\n", at, parent) })
	return func(event.Commit) { say() }, func() {}, nil
}

// forkApart begins a branch in a process of its own and returns when it trains.
func (f *runFlags) forkApart(c *cobra.Command, parent string, at uint64, s streams) error {
	if f.json {
		return usage("--json and --background exclude each other: a run in the background prints nothing")
	}
	from, err := resolve(parent)
	if err != nil {
		return err
	}
	home, err := session.Home()
	if err != nil {
		return err
	}
	keep := existing(cmp.Or(f.session, home))
	dir := f.session
	if dir == "" {
		dir, err = session.NewDir("fork", time.Now())
	} else {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return err
	}
	if err := f.vacant(dir); err != nil {
		return err
	}
	client, err := forkHost(c.Context(), from, at, dir, keep, passOn(c, "at", "session"), func(uint64) {})
	if err != nil {
		return err
	}
	client.Close()
	fmt.Fprintf(s.out, "training in the background, session %s\nlook at it: brood attach %s\nstop it:    brood stop %s\n", dir, filepath.Base(dir), filepath.Base(dir))
	return nil
}

// forkHost starts a branch of the session in from as a process of its own, into dir, and waits until it answers. told hears
// of the rounds that are executed again until then. When that fails or ctx ends, the process is ended and what it made,
// below keep, is taken back.
func forkHost(ctx context.Context, from string, at uint64, dir, keep string, more []string, told func(uint64)) (*door.Client, error) {
	args := append([]string{"fork", from, "--at", strconv.FormatUint(at, 10), "--host", "--session", dir}, more...)
	made, _ := os.ReadDir(dir)
	child, logPath, err := startApart(dir, args)
	if err != nil {
		return nil, err
	}
	gone, ended := make(chan error, 1), make(chan struct{})
	go func() { gone <- child.Wait(); close(ended) }()
	client, err := awaitDoor(ctx, dir, gone, logPath, told)
	if err == nil {
		return client, nil
	}
	_ = child.Process.Kill() // it may have ended by itself
	<-ended
	os.Remove(logPath)
	if len(made) == 0 { // all of it was made here
		os.RemoveAll(dir)
		vanish(filepath.Dir(dir), keep)
	}
	return nil, err
}
