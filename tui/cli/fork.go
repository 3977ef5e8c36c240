package cli

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/option"
	"brood/runtime/session"
)

func forkCommand(s streams) *cobra.Command {
	f := &runFlags{}
	var at uint64
	var as, why string
	c := &cobra.Command{
		Use:        "fork SESSION --at ROUND",
		SuggestFor: []string{"branch"},
		Short:      "Branch a new run off a recorded round",
		Args:       exactly("a SESSION"),
		RunE: func(c *cobra.Command, args []string) error {
			if at == 0 {
				return usage("fork needs --at ROUND, 1 or more; to begin at the start use `brood run`")
			}
			if err := onePrinter(f.plain, f.json); err != nil {
				return err
			}
			if err := coordinator.ValidateReason(why); err != nil {
				return err
			}
			by, err := authorName(as)
			if err != nil {
				return err
			}
			dir, err := resolve(args[0])
			if err == nil {
				at, err = roundOf(dir, at)
			}
			if err != nil {
				return err
			}
			if f.background {
				return f.branchDetached(c, args[0], at, by, why, s)
			}
			p, err := f.branch(c, args[0], at, by, s)
			if err != nil {
				return err
			}
			if err := noteReason(p.sess.Dir(), at, why); err != nil {
				return errors.Join(err, p.sess.Close())
			}
			return train(c.Context(), p, newPrinter(s, f.json))
		},
	}
	fl := c.Flags()
	roundVar(fl, &at, "round to branch after, or best, that of the lowest validation loss")
	fl.StringArrayVar(&f.set, "set", nil, "set a knob in the branch: NAME=VALUE or NAME=SCHEDULE (repeatable)")
	sessionFlag(fl, &f.session)
	fl.StringVar(&why, "why", "", "reason for the branch, a note on its first round")
	asFlag(c, &as)
	optionFlags(c, &f.opts, withoutJoined(option.With(option.Again))...)
	fl.BoolVar(&f.plain, "plain", false, "print progress lines, the default")
	fl.BoolVar(&f.json, "json", false, "print one JSON object a line")
	fl.BoolVar(&f.background, "background", false, "train in a background process and return")
	return c
}

// branchOrder returns the fork that the flags describe, with edits by this author, and the part of its path that
// already exists.
func (f *runFlags) branchOrder(c *cobra.Command, parent string, at uint64, by string) (o host.Order, keep string,
	err error) {
	o.At = at
	if o.From, err = resolve(parent); err != nil {
		return o, "", err
	}
	if o.Options, err = f.changes(c, by); err != nil {
		return o, "", err
	}
	if err := f.placeSession(); err != nil {
		return o, "", err
	}
	o.Dir, keep, err = f.place("fork")
	return o, keep, err
}

// branch forks a session at a round, in this process. If it fails, it removes what it created.
func (f *runFlags) branch(c *cobra.Command, parent string, at uint64, by string, s streams) (prepared, error) {
	o, keep, err := f.branchOrder(c, parent, at, by)
	if err != nil {
		return prepared{}, err
	}
	fresh := isEmptyDir(o.Dir)
	name := filepath.Base(o.From)
	note := sync.OnceFunc(func() { fmt.Fprintf(s.err, "brood: recomputing up to round %d of %s\n", at, name) })
	p, err := open(o.Open(c.Context(), func(event.Commit) { note() }))
	if err != nil && fresh { // this process created all of it
		removeCreated(o.Dir, keep)
	}
	return p, err
}

// branchDetached starts a child process that forks a session, and returns when the fork trains.
func (f *runFlags) branchDetached(c *cobra.Command, parent string, at uint64, by, why string, s streams) error {
	if f.json || f.plain {
		return usage("--background and --plain or --json exclude each other: a run in the background prints nothing")
	}
	f.detached = true
	o, keep, err := f.branchOrder(c, parent, at, by)
	if err != nil {
		return err
	}
	if err := f.vacant(o.Dir); err != nil {
		return err
	}
	start := func() (*exec.Cmd, string, error) { return startDetached(o) }
	run, err := startRun(c.Context(), o.Dir, keep, start, func(uint64) {})
	if err != nil {
		return err
	}
	if err := noteReason(o.Dir, at, why); err != nil {
		return errors.Join(err, run.Close())
	}
	return inBackground(run, s)
}

// noteReason writes the reason for a fork after round at as a note on its first round; "" writes none.
func noteReason(dir string, at uint64, why string) error {
	if why == "" {
		return nil
	}
	return session.ReadAbout(dir).Noted(at+1, why).Write(dir)
}
