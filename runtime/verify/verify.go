// Package verify executes a log again on one worker and compares every commit. It is the simplest consumer of plans,
// edits and commits, and resume and fork are the same walk stopped at a round.
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

// Source gives the records of a log in order, io.EOF after the last.
type Source interface{ Next() (event.Record, error) }

// Result is what a walk found.
type Result struct {
	Commits, Rounds uint64 // compared
	Last            *event.Commit
	// payload of the compared rounds, as recorded and, unless WrongBytes, as predicted from the log alone
	Bytes      int64
	WrongBytes bool // the log says that the algorithm does not send what it predicts: see [event.AlertBytes]
	// with Config.Measured: records of points and evaluations that agree, and those that the execution does not give
	Points, Evaluations, Unmatched uint64
	Within                         Closeness // with Config.Within
}

// MismatchError says where the log and its execution part.
type MismatchError struct {
	Round     uint64
	What      string
	Got, Want string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("round %d: %s is recorded as %s, but its execution gives %s", e.Round, e.What, e.Want, e.Got)
}

// Walk is an execution in progress. The worker must be alone: every member is placed on it.
type Walk struct {
	w      *worker.Worker
	cfg    Config
	stop   uint64 // run no further than this round; 0 to the end
	epoch  uint32
	roster collective.Roster // as recorded
	at     uint64
	// rounds that the next commit can have: the first of a membership epoch has one, and each at most twice those of the
	// one before
	most   uint64
	alive  bool
	edits  []event.Edit // logged since the last commit
	cps    []event.Checkpoint
	exact  []bool                 // of cps: whether the state is that of a commit, which has its hash
	hashes map[uint64]string      // of the commits of this membership epoch, by round
	missed []event.Commit         // while skipping: those that may lie between a checkpoint's round and its record
	limit  event.Limit            // in force, of the run as it was recorded
	given  measurements           // of the last commit
	start  map[string]engine.Host // with Config.Within: parameters of the start, by row
	res    Result
}

// unknown is a number of rounds that no commit has.
const unknown = 1 << 62

// Config of a walk.
type Config struct {
	Worker *worker.Worker
	// From skips everything before this checkpoint instead of executing it; nil executes from the seed.
	From *event.Checkpoint
	// Settled is the record before which a round to stop at does not count: what came before was done again.
	Settled uint64
	// Measured compares points and evaluations as well. Worker then probes and tests as the workers of the run did.
	Measured bool
	Limit    event.Limit // with Measured: what the run began with
	Tests    int         // with Measured: test samples
	Within   *Tolerance  // nil: states have the recorded hashes
	// Progress is told of every commit compared; may be nil.
	Progress func(event.Commit)
}

// New starts a walk.
func New(cfg Config) *Walk {
	return &Walk{w: cfg.Worker, cfg: cfg, limit: cfg.Limit, hashes: map[uint64]string{}}
}

// Run consumes the log to its end, or to exactly round stop when stop > 0.
func Run(ctx context.Context, cfg Config, src Source, stop uint64) (Result, error) {
	v := New(cfg)
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
		if err := v.Record(ctx, r); err != nil {
			return v.res, err
		}
		if v.reached() && (r.Commit != nil || r.Checkpoint != nil) {
			return v.res, nil
		}
	}
}

// reached says whether this is the round to stop at.
func (v *Walk) reached() bool { return v.stop > 0 && v.alive && v.at >= v.stop }

// Record executes one record.
func (v *Walk) Record(ctx context.Context, r event.Record) error {
	if r.Alert != nil && r.Alert.Kind == event.AlertBytes {
		v.res.WrongBytes = true
	}
	if v.cfg.From != nil && !v.alive {
		return v.skip(ctx, r)
	}
	switch {
	case r.State != nil && r.State.Limit != nil:
		v.limit = *r.State.Limit
	case r.Points != nil && v.cfg.Measured:
		return v.points(*r.Points)
	case r.Evaluation != nil && v.cfg.Measured:
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

func (v *Walk) keep(cp event.Checkpoint) {
	v.cps, v.exact = append(v.cps, cp), append(v.exact, v.hashes[cp.Round] == cp.Hash)
}

// skip waits for the checkpoint to start from, and restores it as a plan of its own.
func (v *Walk) skip(ctx context.Context, r event.Record) error {
	cp := r.Checkpoint
	if r.Plan != nil {
		v.roster, v.missed, v.hashes = r.Plan.New, nil, map[uint64]string{}
	}
	if r.Commit != nil {
		v.hashes[r.Commit.To] = r.Commit.Hash
		v.missed = append(v.missed, *r.Commit)
	}
	from := v.cfg.From // a run that went back may have come to its state before, in an earlier epoch
	if cp == nil || cp.Epoch != from.Epoch || cp.Round != from.Round || cp.Hash != from.Hash {
		return nil
	}
	here := *cp
	here.Files = from.Files // the same state may have been saved again since
	v.keep(here)
	err := v.plan(ctx, savedPlan(cp.Epoch, *cp))
	v.most = unknown // of the commits that were skipped
	for _, c := range v.missed {
		if err == nil && c.To > cp.Round && !v.reached() {
			err = v.commit(ctx, c)
		}
	}
	return err
}

func (v *Walk) plan(ctx context.Context, p event.Plan) error {
	v.roster = p.New
	m := message.Plan{Plan: p}
	m.Old, m.New = p.Old.OnOne(v.w.ID()), p.New.OnOne(v.w.ID())
	m.Base = v.epoch
	want := ""
	if p.From == event.Saved {
		i := len(v.cps) - 1 // a run goes back to its newest
		for i >= 0 && !(v.cps[i].Round == p.At && v.cps[i].Algorithm == p.OldAlg &&
			slices.Equal(v.cps[i].Roster.Members, p.Old.Members)) {
			i--
		}
		if i < 0 {
			return fmt.Errorf("plan of membership epoch %d goes back to the checkpoint of round %d, which the log does not mention", p.Epoch, p.At)
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
	v.epoch, v.at, v.most, v.alive, v.edits = p.Epoch, p.At, 1, true, nil
	return v.setStart(ctx)
}

func (v *Walk) commit(ctx context.Context, c event.Commit) error {
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
	if c.Rounds != c.To-v.at || c.Rounds > v.most || c.Progress.Rounds != c.To { // a forged log would be executed for ever
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
		if part { // the log holds no hash of a round within a commit
			v.at = d.To
			return nil
		}
		if v.cfg.Measured {
			v.given = measured(d, v.cfg.Tests)
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

func (v *Walk) compare(c event.Commit, d message.Done) error {
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
