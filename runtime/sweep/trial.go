package sweep

import (
	"errors"
	"fmt"

	"brood/runtime/archive"

	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/session"
)

// Trial is one run of a batch. State, Tally and Failed change while the batch runs: read them within [Batch.Each], or
// after the end of the trial.
type Trial struct {
	Point   []string     // a value for each column
	Label   string       // Point as text
	Seed    int          // 1 or more
	Options host.Options // initial options; the batch sets threads and remote workers
	Dir     string       // directory of its session

	Limit event.Limit // set by Check; with Halving that of the rung
	Work  float64     // see [host.Job.Work]; set by Check; with Halving from the start to the end of the rung
	Rung  int         // with Halving the last rung that it trains in, from 1
	Out   bool        // with Halving it trains in no later rung

	State  State
	Tally  *archive.Tally // results so far; nil before the log is read
	Failed error          // why it could not be run; nil unless State is Failed

	whole     event.Limit // with Halving that of the last rung
	wholeWork float64
	claim     string // lock of the process that trains it
}

// State is the progress of a trial.
type State int

// States of a trial.
const (
	Waits     State = iota // not begun, or interrupted
	Runs                   // this process trains it
	Elsewhere              // another process trains it
	Done
	Diverged // a block contains NaN or infinity; it is not repeated
	Failed   // it could not be run; another process, or a later one, may try again
)

func (s State) over() bool { return s == Done || s == Diverged }

// Over reports whether the trial is done or has diverged.
func (t *Trial) Over() bool { return t.State.over() }

// Outcome returns measured, out or diverged for a trial that is over, else "".
func (t *Trial) Outcome() string {
	if t.State == Done && t.Out {
		return "out"
	}
	return map[State]string{Done: "measured", Diverged: "diverged"}[t.State]
}

func (t *Trial) String() string { return fmt.Sprintf("%s seed %d", t.Label, t.Seed) }

// Metric returns a metric of the trial; ok is false if it has no value.
func (t *Trial) Metric(name string) (x float64, ok bool) {
	if t.Tally == nil {
		return 0, false
	}
	return t.Tally.Metric(name)
}

// Missed reports whether a finished trial did not meet the target of its limit.
func (t *Trial) Missed() bool {
	return t.State == Done && t.Tally.Goal.Limit.Target != "" && t.Tally.Goal.Met == ""
}

// Part returns the completed fraction of the limit in epochs or rounds, from 0 to 1; 0 if it limits neither.
func (t *Trial) Part() float64 {
	if t.Tally == nil {
		return 0
	}
	return t.Limit.Part(t.Tally.Goal.Progress)
}

// readLog returns the state and the results of a trial from its log. A trial that reached its limit is done, even if
// its process was killed, provided that the log has its final test.
func (t *Trial) readLog() (State, *archive.Tally, error) {
	out, err := archive.ReadTally(t.Dir)
	switch {
	case errors.Is(err, session.ErrNoLog):
		return Waits, archive.NewTally(), nil
	case err != nil:
		return Waits, nil, fmt.Errorf("%w: remove %s to run it again", err, t.Dir)
	case out.Diverged:
		return Diverged, out, nil
	case t.Rung > 0:
		return t.rungState(out), out, nil
	case out.Phase == event.Finished:
		return Done, out, nil
	case out.Goal.Reached() && (out.Bare() || out.Tested() != nil && out.Tested().Round == out.Sum.Rounds):
		return Done, out, nil // the final test may be missing after a full disk or a power failure
	}
	return Waits, out, nil
}

// rungState returns the state of a trial of a rung from the results in its log. A trial that has another limit than the
// rung, and reached that of the rung, was trained on by another process.
func (t *Trial) rungState(out *archive.Tally) State {
	reached := t.Limit.Reached(out.Goal.Progress)
	tested := out.Bare() || out.Tested() != nil && out.Tested().Round == out.Sum.Rounds
	finished := out.Phase == event.Finished
	switch {
	case reached && (finished || tested || out.Goal.Limit != t.Limit),
		finished && !out.Goal.Limit.Reached(out.Goal.Progress):
		return Done
	}
	return Waits
}

// ended returns the state and the results of a trial after its training, which returned err. It returns an error unless
// the trial is over or was interrupted.
func (t *Trial) ended(err error, interrupted bool) (State, *archive.Tally, error) {
	state, out, bad := t.readLog()
	switch {
	case bad != nil:
		return state, out, bad
	case state != Waits, errors.Is(err, ErrInterrupted), err == nil && interrupted:
		return state, out, nil
	case err == nil:
		err = errors.New("stopped by a command")
	}
	return state, out, err
}
