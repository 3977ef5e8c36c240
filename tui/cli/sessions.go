package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"brood/models/typed"
	"brood/runtime/door"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/session"
	"brood/runtime/summary"
	"brood/tui"
)

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func sessionsCommand(s streams) *cobra.Command {
	c := &cobra.Command{Use: "sessions", Short: "List your recorded and running sessions", Args: noArgs}
	asJSON := jsonFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		home, err := session.Home()
		if err != nil {
			return err
		}
		list, err := session.List(home)
		if err != nil {
			return err
		}
		if *asJSON {
			var all []map[string]any
			for _, x := range list {
				all = append(all, sessionObject(x))
			}
			return objects(s.out, all...)
		}
		if len(list) == 0 {
			fmt.Fprintf(s.out, "no sessions in %s yet: `brood run` makes one\n", home)
			return nil
		}
		t := newTable("session", "state", "algorithm", "model", "data", ">round", ">test error", "started", ">size")
		for _, x := range list {
			state, test := stateOf(x), "–"
			if x.Running {
				state = "● " + state
			}
			if x.TestError != nil {
				test = fmt.Sprintf("%.2f %%", *x.TestError)
				if x.TestRound != x.Round {
					test += " @" + grouped(int64(x.TestRound))
				}
			}
			t.row(x.Name, state, x.Algorithm, x.Model, x.Data, grouped(int64(x.Round)), test, x.Started.Format("2006-01-02 15:04"), humanBytes(x.Size))
		}
		t.write(s.out)
		for _, x := range list {
			if x.Err != "" {
				fmt.Fprintf(s.out, "%s: %s\n", x.Name, x.Err)
			}
		}
		return nil
	}
	return c
}

func replayCommand(s streams) *cobra.Command {
	var at uint64
	var ascii bool
	c := &cobra.Command{Use: "replay SESSION", Short: "Look back at a session as if it happened again", Args: exactly("a SESSION"),
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := resolve(args[0])
			if err != nil {
				return err
			}
			r, err := session.OpenReader(dir)
			if err != nil {
				return err
			}
			defer r.Close()
			if !s.terminal {
				return reprint(c, r, at, s)
			}
			return look(c.Context(), recorded(dir, r), tui.Options{ASCII: ascii, At: at}, s)
		}}
	c.Flags().Uint64Var(&at, "at", 0, "begin after this round")
	c.Flags().BoolVar(&ascii, "ascii", false, "draw with ASCII only")
	return c
}

// reprint writes a recorded session as plain lines, from a round on.
func reprint(c *cobra.Command, r *session.Reader, at uint64, s streams) error {
	p := &plainPrinter{out: s.out, Tally: summary.New()}
	defer p.flush()
	var round uint64
	seen := uint64(0)
	for {
		rec, err := r.Next()
		if err != nil {
			if at > seen && errors.Is(err, io.EOF) {
				return fmt.Errorf("round %d lies beyond the end of the session at round %d", at, seen)
			}
			return ignoreEnd(err)
		}
		if rec.Commit != nil {
			round = rec.Commit.To
			seen = max(seen, round)
		}
		switch {
		case round < at:
			p.Tally.Record(rec)
		case rec.Commit != nil:
			p.Tally.Record(rec)
			loss := ""
			if l, ok := p.Loss(); ok {
				loss = fmt.Sprintf("%s %7.4f", p.Word(), l)
			}
			fmt.Fprintf(p.out, "round %6d  epoch %6.2f  %s  %s\n", rec.Commit.To, rec.Commit.Progress.Epochs, loss, rec.Commit.Hash)
		default:
			p.record(rec)
		}
		if c.Context().Err() != nil {
			return c.Context().Err()
		}
	}
}

func verifyCommand(s streams) *cobra.Command {
	var threads int
	var asJSON bool
	c := &cobra.Command{Use: "verify SESSION", Short: "Execute a session again and compare every commit", Args: exactly("a SESSION"),
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := resolve(args[0])
			if err != nil {
				return err
			}
			t0 := time.Now()
			last := t0
			res, err := host.Verify(c.Context(), dir, threads, func(k event.Commit) {
				if !asJSON && time.Since(last) > time.Second {
					last = time.Now()
					fmt.Fprintf(s.err, "round %6d agrees\n", k.To)
				}
			})
			if err != nil {
				return fmt.Errorf("session %s does not verify: %w", filepath.Base(dir), typed.Recorded(err))
			}
			if res.Last == nil {
				return fmt.Errorf("session %s holds no committed round: there is nothing to verify", filepath.Base(dir))
			}
			if asJSON {
				return json.NewEncoder(s.out).Encode(map[string]any{"event": "verified", "commits": res.Commits, "rounds": res.Rounds, "bytes": res.Bytes, "params_hash": res.Last.Hash, "seconds": time.Since(t0).Seconds(), "session": dir, "open": res.Open, "torn": res.Torn})
			}
			predicted := "as predicted"
			if res.WrongBytes {
				predicted = "which the algorithm's formula does not predict"
			}
			fmt.Fprintf(s.out, "holds: %d commits, %s rounds executed again in %.1f s, %s on the links %s\n%s\n", res.Commits, grouped(int64(res.Rounds)), time.Since(t0).Seconds(), humanBytes(res.Bytes), predicted, res.Last.Hash)
			switch {
			case res.Torn != nil:
				fmt.Fprintf(s.out, "missing: %d bytes at byte %d of %s are no whole frame; what came after round %d is not in the log, a resume does it again\n", res.Torn.Lost, res.Torn.Offset, res.Torn.Segment, res.Last.To)
			case res.Open:
				fmt.Fprintf(s.out, "missing: the end of the run; it goes on, was killed, or its log was cut off after round %d\n", res.Last.To)
			}
			return nil
		}}
	c.Flags().IntVar(&threads, "threads", 0, "threads (default: all cores)")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

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
