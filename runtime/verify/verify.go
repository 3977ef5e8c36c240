// Package verify executes a log again on one worker and compares every commit. It is the simplest consumer of plans,
// edits and commits. Resume and fork are the same walk, stopped at a round.
package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/worker"
)

// Source returns the records of a log in order, and io.EOF after the last.
type Source interface{ Next() (event.Record, error) }

// Result is the result of a walk.
type Result struct {
	Commits, Rounds uint64 // compared
	Last            *event.Commit
	// payload of the compared rounds, as recorded; unless WrongBytes, it equals the prediction from the log alone
	Bytes      int64
	WrongBytes bool // the log has an [event.AlertBytes]: the algorithm does not send what it predicts
	// with Config.Measured: records of points and evaluations that agree, and records that the execution did not produce
	Points, Evaluations, Unmatched uint64
	Within                         Closeness // with Config.Within
}

// MismatchError reports the first difference between the log and its execution.
type MismatchError struct {
	Round     uint64
	What      string
	Got, Want string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("round %d: %s is recorded as %s, but its execution gives %s", e.Round, e.What, e.Want, e.Got)
}

// walk is an execution in progress. Its worker hosts every member.
type walk struct {
	w      *worker.Worker
	cfg    Config
	stop   uint64 // the last round to execute; 0: all
	epoch  uint32
	roster collective.Roster // as recorded
	at     uint64
	// largest number of rounds of the next commit: 1 for the first of the log, then at most twice that of the one before
	most   uint64
	alive  bool         // a plan was executed
	edits  []event.Edit // logged since the last commit
	cps    []event.Checkpoint
	exact  []bool                 // parallel to cps: a commit recorded the hash of the state
	hashes map[uint64]string      // by round: recorded by the commits of this membership epoch
	missed []event.Commit         // while skipping: commits that may be between the round of a checkpoint and its record
	limit  event.Limit            // of the recorded run at this record
	given  measurements           // of the last commit
	start  map[string]engine.Host // with Config.Within: parameters of the start, by row
	res    Result
}

// unknown is larger than the number of rounds of any commit.
const unknown = 1 << 62

// Config configures a walk.
type Config struct {
	Worker *worker.Worker
	// From is the checkpoint to start from; records before it are not executed. nil: start from the seed.
	From *event.Checkpoint
	// Settled is the index in the source of the first record at which the walk may stop: earlier rounds were executed
	// again later.
	Settled uint64
	// Measured compares points and evaluations too. Worker must then probe and test as the workers of the run did.
	Measured bool
	Limit    event.Limit // with Measured: at the start of the run
	Tests    int         // with Measured: number of test samples
	Held     int         // and of the validation samples that are scored with them; 0: they are not
	Within   *Tolerance  // nil: states must have the recorded hashes
	// Progress is called after each compared commit; may be nil.
	Progress func(event.Commit)
}

// Run executes the log to its end, or to exactly round stop if stop is not 0. It fails with a [MismatchError] or
// [DistanceError] at the first difference, and if the source fails or a record cannot be executed. The result then
// covers the commits before.
func Run(ctx context.Context, cfg Config, src Source, stop uint64) (Result, error) {
	v := &walk{w: cfg.Worker, cfg: cfg, limit: cfg.Limit, most: 1, hashes: map[uint64]string{}}
	for n := uint64(0); ; n++ {
		if v.stop = stop; n < cfg.Settled {
			v.stop = 0
		}
		r, err := src.Next()
		if errors.Is(err, io.EOF) {
			return v.res, nil
		}
		if err != nil {
			return v.res, err
		}
		if err := v.record(ctx, r); err != nil {
			return v.res, err
		}
		if v.reached() && (r.Commit != nil || r.Checkpoint != nil) {
			return v.res, nil
		}
	}
}

// reached reports whether the walk is at its last round.
func (v *walk) reached() bool { return v.stop > 0 && v.alive && v.at >= v.stop }

// record executes one record.
func (v *walk) record(ctx context.Context, r event.Record) error {
	if r.Alert != nil && r.Alert.Kind == event.AlertBytes {
		v.res.WrongBytes = true
	}
	begins := r.Config != nil && r.Config.Begins != nil
	if begins { // a run may have removed records since the caller chose the rounds
		b := r.Config.Begins.Round
		if from := v.cfg.From; v.stop > 0 && v.stop < b || from != nil && from.Round < b {
			return errors.New(r.Config.Removed() + ", among them those to execute: run the command again")
		}
	}
	if v.cfg.From != nil && !v.alive {
		return v.skip(ctx, r)
	}
	switch {
	case begins:
		v.most = unknown // it depends on removed commits
	case r.State != nil && r.State.Limit != nil:
		v.limit = *r.State.Limit
	case r.Points != nil && v.cfg.Measured && v.alive:
		return v.points(*r.Points)
	case r.Evaluation != nil && v.cfg.Measured && v.alive:
		return v.evaluation(*r.Evaluation)
	case r.Plan != nil:
		return v.plan(ctx, *r.Plan)
	case r.Edit != nil:
		v.edits = append(v.edits, *r.Edit)
	case r.Commit != nil:
		return v.commit(ctx, *r.Commit)
	case r.Checkpoint != nil:
		v.keep(*r.Checkpoint)
	}
	return nil
}

// keep adds a checkpoint to those that a plan can restore.
func (v *walk) keep(cp event.Checkpoint) {
	v.cps, v.exact = append(v.cps, cp), append(v.exact, v.hashes[cp.Round] == cp.Hash)
}

// skip ignores records up to the checkpoint to start from, restores that by a plan, and then executes the commits that
// the log has between the round of the checkpoint and its record.
func (v *walk) skip(ctx context.Context, r event.Record) error {
	cp := r.Checkpoint
	if r.Plan != nil {
		v.roster, v.missed, v.hashes = r.Plan.New, nil, map[uint64]string{}
	}
	if r.Commit != nil {
		v.hashes[r.Commit.To] = r.Commit.Hash
		v.missed = append(v.missed, *r.Commit)
	}
	from := v.cfg.From // compare the epoch too: a run that went back may have reached this state in an earlier one
	if cp == nil || cp.Epoch != from.Epoch || cp.Round != from.Round || cp.Hash != from.Hash {
		return nil
	}
	here := *cp
	here.Files = from.Files // the same state may have been saved again later
	v.keep(here)
	err := v.plan(ctx, savedPlan(cp.Epoch, *cp))
	v.most = unknown // it depends on skipped commits
	for _, c := range v.missed {
		if err == nil && c.To > cp.Round && !v.reached() {
			err = v.commit(ctx, c)
		}
	}
	return err
}

// plan executes a plan with all members on the worker. It compares the state with the hash of the checkpoint that the
// plan restores, if a commit recorded one.
func (v *walk) plan(ctx context.Context, p event.Plan) error {
	v.roster = p.New
	m := message.Plan{Plan: p}
	m.Old, m.New = p.Old.OnOne(v.w.ID()), p.New.OnOne(v.w.ID())
	m.Base, m.Mirrored = v.epoch, nil
	want := ""
	if p.From == event.Saved {
		i := len(v.cps) - 1 // a run goes back to the newest checkpoint that fits
		for i >= 0 && !(v.cps[i].Round == p.At && v.cps[i].Algorithm == p.OldAlg &&
			slices.Equal(v.cps[i].Roster.Members, p.Old.Members)) {
			i--
		}
		if i < 0 {
			return fmt.Errorf("plan of membership epoch %d goes back to the checkpoint of round %d, which the log does not "+
				"mention", p.Epoch, p.At)
		}
		if m.Checkpoint = &v.cps[i]; v.exact[i] {
			want = v.cps[i].Hash
		}
	}
	switch reply := v.w.Handle(ctx, m).(type) {
	case message.Ready:
	case message.Failed:
		return fmt.Errorf("membership epoch %d at round %d: %s", p.Epoch, p.At, reply.Err)
	default:
		return errors.Join(ctx.Err(), fmt.Errorf("membership epoch %d of the log is older than its predecessor", p.Epoch))
	}
	if want != "" {
		got, err := v.w.State(ctx)
		if err != nil {
			return err
		}
		if got.Hash != want {
			return &MismatchError{Round: p.At, What: "the state of the checkpoint", Got: got.Hash, Want: want}
		}
	}
	v.hashes = map[uint64]string{}
	v.epoch, v.at, v.alive, v.edits = p.Epoch, p.At, true, nil
	return v.setStart(ctx)
}

// commit executes the rounds of a commit, or those up to v.stop, and compares the result.
func (v *walk) commit(ctx context.Context, c event.Commit) error {
	if !v.alive {
		return fmt.Errorf("the log commits round %d before any plan", c.To)
	}
	if c.Epoch != v.epoch || c.To <= v.at {
		return &MismatchError{
			Round: c.To,
			What:  "the order of commits",
			Got:   fmt.Sprintf("membership epoch %d after round %d", v.epoch, v.at),
			Want:  fmt.Sprintf("membership epoch %d, round %d", c.Epoch, c.To),
		}
	}
	if c.Rounds != c.To-v.at || c.Rounds > v.most || c.Progress.Rounds != c.To { // a forged log could take forever
		return &MismatchError{
			Round: c.To,
			What:  "the number of rounds of the commit",
			Want:  fmt.Sprintf("%d of %d", c.Rounds, c.Progress.Rounds),
			Got:   fmt.Sprintf("%d of %d, and the grant had no more than %d", c.To-v.at, c.To, v.most),
		}
	}
	v.most = min(2*v.most, unknown)
	g := message.Grant{Epoch: v.epoch, From: v.at, To: c.To, Committed: v.at, Onward: true}
	if v.cfg.Measured {
		g.Limit = v.limit
	}
	part := v.stop > 0 && c.To > v.stop
	if part {
		g.To = v.stop
	}
	var later []event.Edit
	for _, e := range v.edits {
		if e.At < g.To {
			g.Edits = append(g.Edits, e)
		} else {
			later = append(later, e)
		}
	}
	v.edits = later
	v.w.Placement(v.roster)
	switch d := v.w.Handle(ctx, g).(type) {
	case message.Done:
		if part { // the log has no hash of a round within a commit
			v.at = d.To
			return nil
		}
		if v.cfg.Measured {
			v.given = measured(d, v.cfg.Tests, v.cfg.Held)
		}
		if err := v.compare(c, d); err != nil || v.cfg.Within == nil {
			return err
		}
		return v.compareSaved(ctx)
	case message.Failed:
		return fmt.Errorf("rounds %d to %d: %s", v.at+1, c.To, d.Err)
	}
	return errors.Join(ctx.Err(), fmt.Errorf("rounds %d to %d were not executed", v.at+1, c.To))
}

// compare compares the state, progress and bytes of a commit with the report of its execution.
func (v *walk) compare(c event.Commit, d message.Done) error {
	if got := message.Root(d.Digests); got != c.Hash && v.cfg.Within == nil {
		return &MismatchError{Round: c.To, What: "the state", Got: got, Want: c.Hash}
	}
	if c.Progress != d.Progress {
		return &MismatchError{
			Round: c.To,
			What:  "the progress",
			Got:   fmt.Sprintf("%+v", d.Progress),
			Want:  fmt.Sprintf("%+v", c.Progress),
		}
	}
	for _, op := range slices.Sorted(maps.Keys(both(c.Sent, d.Predicted))) {
		if c.Sent[op] != d.Predicted[op] && !v.res.WrongBytes {
			return &MismatchError{
				Round: c.To,
				What:  "the bytes of " + string(op),
				Got:   fmt.Sprint(d.Predicted[op]),
				Want:  fmt.Sprint(c.Sent[op]),
			}
		}
		v.res.Bytes += c.Sent[op]
	}
	v.res.Commits++
	v.res.Rounds += c.To - v.at
	v.res.Last = &c
	v.hashes[c.To] = c.Hash
	v.at = c.To
	if v.cfg.Progress != nil {
		v.cfg.Progress(c)
	}
	return nil
}

// both returns the union of the keys.
func both(a, b map[collective.Op]int64) map[collective.Op]bool {
	out := map[collective.Op]bool{}
	for op := range a {
		out[op] = true
	}
	for op := range b {
		out[op] = true
	}
	return out
}
