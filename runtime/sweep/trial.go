package sweep

import (
	"errors"
	"fmt"

	"brood/runtime/archive"

	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/session"
)

// Trial is one run of a batch. State, Tally and Failed change while the batch runs: they are read within [Batch.Each],
// or by who is told of the end of the trial.
type Trial struct {
	Point   []string     // a value for each column
	Label   string       // the same for a person
	Seed    int          // 1 or more
	Options host.Options // what it begins with; the batch adds threads, and workers that come from elsewhere
	Dir     string       // of its session

	Limit event.Limit // at which it ends, since Check
	Work  float64     // see [host.Job.Work], since Check

	State  State
	Tally  *archive.Tally // what it measured, or has measured so far; nil before it was looked at
	Failed error          // why it could not be run

	claim string // locked by the process that is at it
}

// State is how far a trial is.
type State int

// States of a trial.
const (
	Waits     State = iota
	Runs            // this process is at it
	Elsewhere       // another process trains it
	Done
	Diverged // a block was not finite: it is not tried again
	Failed   // it could not be run, by this process or now
)

func (s State) over() bool { return s == Done || s == Diverged }

// Over says that nothing is left to do.
func (t *Trial) Over() bool { return t.State.over() }

// Outcome is the word for a trial that is over: measured or diverged; "" of others.
func (t *Trial) Outcome() string {
	return map[State]string{Done: "measured", Diverged: "diverged"}[t.State]
}

func (t *Trial) String() string { return fmt.Sprintf("%s seed %d", t.Label, t.Seed) }

// Metric is a figure that the trial came to; ok is false where it did not.
func (t *Trial) Metric(name string) (x float64, ok bool) {
	if t.Tally == nil {
		return 0, false
	}
	return t.Tally.Metric(name)
}

// Missed says that a trial which is done ended before it met the target of its limit.
func (t *Trial) Missed() bool {
	return t.State == Done && t.Tally.Goal.Limit.Target != "" && t.Tally.Goal.Met == ""
}

// Part is how far a run under way is, of its limit in epochs or rounds, from 0 to 1; 0 where it has neither.
func (t *Trial) Part() float64 {
	if t.Tally == nil {
		return 0
	}
	return t.Limit.Part(t.Tally.Goal.Progress)
}

// look reads from a trial's log how far it is. One that is at its limit is done, whatever ended its process.
func (t *Trial) look() (State, *archive.Tally, error) {
	out, err := archive.ReadTally(t.Dir)
	switch {
	case errors.Is(err, session.ErrNoLog):
		return Waits, archive.NewTally(), nil
	case err != nil:
		return Waits, nil, fmt.Errorf("%w: remove %s to run it again", err, t.Dir)
	case out.Diverged:
		return Diverged, out, nil
	case out.Phase == event.Finished:
		return Done, out, nil
	case out.Goal.Reached() && (out.Bare() || out.Tested() != nil && out.Tested().Round == out.Sum.Rounds):
		return Done, out, nil // without that test what it came to is not in the log: a full disk, or a power cut
	}
	return Waits, out, nil
}

// ended is what became of a trial, and why it did not end as it should: it is no error that it diverged or was
// interrupted.
func (t *Trial) ended(err error, interrupted bool) (State, *archive.Tally, error) {
	state, out, bad := t.look()
	switch {
	case bad != nil:
		return state, out, bad
	case state != Waits, errors.Is(err, ErrLeft), err == nil && interrupted:
		return state, out, nil
	case err == nil:
		err = errors.New("somebody stopped it")
	}
	return state, out, err
}
