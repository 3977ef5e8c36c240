package host

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/fxamacker/cbor/v2"

	"brood/runtime/control"
	"brood/runtime/event"
	"brood/runtime/option"
	"brood/runtime/session"
)

// Order is a run as a value, for who trains it: in this process, or in another that it is written to. It is a new run;
// or, with Resume, the session that goes on; or, with From, a branch.
type Order struct {
	Dir    string // of the session; a new run and a branch make it. "" of a new run: one among a person's sessions
	Resume bool
	From   string // directory of the session that it branches off
	At     uint64 // and the round, 1 or more

	// Options of a new run. Of the others what changes, where zero fields keep what was: options that may be told again,
	// with Unattended and what is Set.
	Options Options
}

// Opened is a run that is ready to start, with its session, which the caller closes or hands to [Start].
type Opened struct {
	Job     *Job
	Session *session.Session
	From    *Restored // nil for a new run
}

// Write hands the order to the process that reads it with [ReadOrder].
func (o Order) Write(w io.Writer) error { return cbor.NewEncoder(w).Encode(o) }

// ReadOrder takes an order from the process that writes it.
func ReadOrder(r io.Reader) (o Order, err error) {
	if err = cbor.NewDecoder(r).Decode(&o); err != nil {
		err = fmt.Errorf("read which run to train: %w", err)
	}
	return o, err
}

// Open readies the run, or says in a sentence what cannot be; what it made of a directory until then stays. progress
// hears of the rounds of a branch that are executed again; nil tells them at the control socket of its session.
func (o Order) Open(ctx context.Context, progress func(event.Commit)) (Opened, error) {
	if o.Resume || o.From != "" {
		if err := o.Options.Kept(); err != nil {
			return Opened{}, err
		}
	}
	switch {
	case o.Resume:
		return o.resume(ctx)
	case o.From != "":
		return o.branch(ctx, progress)
	}
	j, err := Prepare(o.Options)
	if err != nil {
		return Opened{}, err
	}
	if o.Dir == "" {
		if o.Dir, err = session.NewDir(o.Options.Preset, time.Now()); err != nil {
			return Opened{}, err
		}
	}
	s, err := session.Create(o.Dir)
	return Opened{Job: j, Session: s}, err
}

func (o Order) resume(ctx context.Context) (r Opened, err error) {
	if r.Session, err = session.Open(o.Dir); err != nil {
		return r, err
	}
	defer r.closeAfter(&err)
	if err = Settable(o.Dir, 0, o.Options.Set); err != nil {
		return r, err
	}
	own, err := Program(option.Objective.Text(o.Options))
	if err != nil {
		return r, err
	}
	if r.From, err = own.Restore(ctx, o.Dir, 0, nil, max(o.Options.Threads, 0), nil); err != nil {
		return r, err
	}
	r.Job = r.From.Job
	return r, r.From.Continue(o.changes(r.From))
}

func (o Order) branch(ctx context.Context, progress func(event.Commit)) (r Opened, err error) {
	if err = Settable(o.From, o.At, o.Options.Set); err != nil {
		return r, err
	}
	if r.Session, err = session.Create(o.Dir); err != nil {
		return r, err
	}
	defer r.closeAfter(&err)
	if progress == nil {
		a, err := control.Announce(o.Dir, o.At)
		if err != nil {
			return r, err
		}
		defer a.Close()
		progress = func(k event.Commit) { a.Tell(k.To) }
	}
	own, err := Program(option.Objective.Text(o.Options))
	if err != nil {
		return r, err
	}
	if r.From, err = own.Restore(ctx, o.From, o.At, &Files{Dir: o.Dir}, o.Options.Threads, progress); err != nil {
		return r, err
	}
	r.Job = r.From.Job
	return r, r.From.Fork(filepath.Base(o.From), o.changes(r.From))
}

// changes are the options with the limit that was, where no other is given.
func (o Order) changes(from *Restored) Options {
	out := o.Options
	if out.Limit == (event.Limit{}) {
		out.Limit = from.Limit
	}
	return out
}

// closeAfter closes the session of what could not be opened.
func (r *Opened) closeAfter(err *error) {
	if *err != nil {
		r.Session.Close()
	}
}
