package host

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/fxamacker/cbor/v2"

	"brood/runtime/checkpoint"
	"brood/runtime/control"
	"brood/runtime/event"
	"brood/runtime/session"
)

// Order specifies a run, for this process or for another one that it is sent to. It starts a new run; with Resume it
// resumes the session Dir; with From it forks that session.
type Order struct {
	// Dir is the directory of the session. A new run and a fork create it. For a new run, "" means a new directory among
	// the user's sessions.
	Dir    string
	Resume bool
	// Repeated says that the command which began the session was started again: the run is complete if it has ended at
	// its limit, of seconds too.
	Repeated bool
	// Reattach lets a resumed run continue from the workers of the earlier process, which may hold its state.
	Reattach bool
	From     string // directory of the parent session of a fork
	At       uint64 // round of the parent after which the fork starts, at least 1

	// Options are the options of a new run. For a resumed run or a fork they contain only changes: options that may
	// change, Unattended and Set. A zero field keeps the recorded value.
	Options Options
}

// Opened is a run that is ready to start. The caller closes its session or passes it to [Start], which then owns it.
type Opened struct {
	Job     *Job
	Session *session.Session
	From    *Restored // nil for a new run
}

// Write encodes the order as CBOR, for [ReadOrder].
func (o Order) Write(w io.Writer) error { return cbor.NewEncoder(w).Encode(o) }

// ReadOrder decodes an order that [Order.Write] encoded. It fails for unknown fields: fields that an order lacks have
// defaults, so that any other object would start a default run.
func ReadOrder(r io.Reader) (o Order, err error) {
	mode, err := cbor.DecOptions{ExtraReturnErrors: cbor.ExtraDecErrorUnknownField}.DecMode()
	if err == nil {
		err = mode.NewDecoder(r).Decode(&o)
	}
	if err != nil {
		return o, fmt.Errorf("read order of a run: %w; start runs with brood run", err)
	}
	return o, nil
}

// Open prepares the run. If it fails, a directory that it created remains. A resumed run and a fork recompute the
// rounds since a checkpoint: Open calls progress, unless it is nil, after each of them. It announces those of a resumed
// run, and those of a fork without progress, on the control socket of the session.
func (o Order) Open(ctx context.Context, progress func(event.Commit)) (Opened, error) {
	if o.Resume || o.From != "" {
		if err := o.Options.CheckResume(); err != nil {
			return Opened{}, err
		}
	}
	switch {
	case o.Resume:
		return o.resume(ctx, progress)
	case o.From != "":
		return o.fork(ctx, progress)
	}
	command, err := commandDigest(o.Options)
	if err != nil {
		return Opened{}, err
	}
	j, err := Prepare(o.Options)
	if err != nil {
		return Opened{}, err
	}
	j.Config.Command = command
	if o.Dir == "" {
		if o.Dir, err = session.NewDir(o.Options.Preset, time.Now()); err != nil {
			return Opened{}, err
		}
	}
	s, err := session.Create(o.Dir)
	return Opened{Job: j, Session: s}, err
}

// resume opens the session Dir and restores its last committed state.
func (o Order) resume(ctx context.Context, progress func(event.Commit)) (r Opened, err error) {
	if r.Session, err = session.Open(o.Dir); err != nil {
		return r, err
	}
	defer r.closeAfter(&err)
	p, err := o.past(o.Dir)
	if err != nil {
		return r, err
	}
	a, err := control.Announce(o.Dir, p.Round())
	if err != nil {
		return r, err
	}
	defer a.Close()
	report := func(k event.Commit) {
		a.Report(k.To)
		if progress != nil {
			progress(k)
		}
	}
	if r.From, err = restore(ctx, p, nil, max(o.Options.Threads, 0), report, o.Reattach); err != nil {
		return r, err
	}
	r.Job = r.From.Job
	return r, o.apply(r.From)
}

// fork creates the session Dir from the state of session From after round At.
func (o Order) fork(ctx context.Context, progress func(event.Commit)) (r Opened, err error) {
	p, err := o.past(o.From)
	if err != nil {
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
		progress = func(k event.Commit) { a.Report(k.To) }
	}
	if r.From, err = restore(ctx, p, &checkpoint.Files{Dir: o.Dir}, o.Options.Threads, progress, false); err != nil {
		return r, err
	}
	r.Job = r.From.Job
	return r, o.apply(r.From)
}

// past reads the session in dir that the order resumes or forks. It returns an error if the options of the order do not
// fit the recorded state, so that they are rejected before rounds are recomputed.
func (o Order) past(dir string) (*Past, error) {
	own, err := resumedProgram(o.Options)
	if err != nil {
		return nil, err
	}
	p, err := own.Past(dir, o.At)
	if err != nil {
		return nil, err
	}
	recorded, err := p.recorded()
	if err != nil {
		return nil, err
	}
	return p, o.apply(recorded)
}

// apply makes a restored state the start of the run.
func (o Order) apply(from *Restored) error {
	changes := o.Options
	if changes.Limit == (event.Limit{}) {
		changes.Limit = from.Limit
	}
	switch {
	case o.From != "":
		return from.Fork(filepath.Base(o.From), changes)
	case o.Repeated && from.finished && changes.Limit == from.Limit:
		return from.complete()
	}
	return from.Continue(changes)
}

// closeAfter closes the session if *err is not nil.
func (r *Opened) closeAfter(err *error) {
	if *err != nil {
		r.Session.Close()
	}
}
