package host

import (
	"context"
	"fmt"
	goruntime "runtime"
	"slices"

	"brood/optim"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/timeline"
	"brood/runtime/worker"
)

// Restored is a recorded session that is ready to be resumed or forked.
type Restored struct {
	Job        *Job
	Checkpoint event.Checkpoint // of exactly the requested round
	Executed   uint64           // rounds that were recomputed to reach it
	Skipped    []error          // why newer checkpoints were skipped: missing or damaged
	Epoch      uint32
	Late       []event.Edit  // acknowledged edits that are not yet in effect
	Asked      event.Pending // accepted commands that have no round yet
	Limit      event.Limit
	Hosts      int // workers of the newest plan

	met      string // how the run met the target of its limit; "" if it did not
	losses   coordinator.Losses
	finished bool // the log records that the run finished
	branch   bool // a fork, which starts a new log

	// If workers of the earlier process may hold the state: how to wait for them, and how to recompute it without them.
	// Checkpoint then has no files.
	reattach  *coordinator.Reattach
	first     *event.Plan // of the run
	recompute func(ctx context.Context, progress func(event.Commit)) (event.Checkpoint, error)
}

// Restore recovers the state of the session in dir after round at (0: the last commit) and saves it through store, or
// into dir if store is nil. Rounds since the nearest checkpoint are recomputed and compared with the recorded commits;
// progress is called after each of them and may be nil. threads 0 means one per processor.
func Restore(
	ctx context.Context, dir string, at uint64, store worker.Store, threads int, progress func(event.Commit),
) (*Restored, error) {
	return (*Own)(nil).Restore(ctx, dir, at, store, threads, progress)
}

// Restore is [Restore] for a session of this graph or objective.
func (o *Own) Restore(
	ctx context.Context, dir string, at uint64, store worker.Store, threads int, progress func(event.Commit),
) (*Restored, error) {
	p, err := o.Past(dir, at)
	if err != nil {
		return nil, err
	}
	return restore(ctx, p, store, threads, progress, false)
}

// restore is [Restore] for a past that has been read. With reattach set, the run may continue from workers that hold
// the state.
func restore(
	ctx context.Context, p *Past, store worker.Store, threads int, progress func(event.Commit), reattach bool,
) (*Restored, error) {
	out, h := p.restored(p.Job), &p.h
	cp := h.saved()
	switch {
	case store == nil && cp != nil && p.toEnd() && cp.Epoch == h.epoch && cp.Round == h.end &&
		(h.last == nil || cp.Hash == h.last.Hash):
		out.Checkpoint = *cp
	case reattach && out.awaitWorkers(p, threads):
	default:
		if err := out.execute(ctx, p, store, threads, progress); err != nil {
			return nil, err
		}
	}
	return out, out.settle(p)
}

// recorded returns the state after the requested round as far as the log has it: options can be applied to it, and no
// run can start from it. It changes neither the past nor its job.
func (p *Past) recorded() (*Restored, error) {
	j := *p.Job
	out := p.restored(&j)
	out.Checkpoint = p.h.here
	return out, out.settle(p)
}

// restored returns the part of a restored session that does not depend on its state.
func (p *Past) restored(j *Job) *Restored {
	h := &p.h
	out := &Restored{
		Job:      j,
		Skipped:  h.skipped,
		Epoch:    h.epoch,
		Limit:    h.goal.Limit,
		Hosts:    h.hosts,
		finished: h.phase == event.Finished,
	}
	if p.toEnd() {
		out.Asked, out.met, out.losses = h.asked, h.goal.Met, h.goal.Losses
	}
	return out
}

// toEnd reports whether the requested round is that of the last commit.
func (p *Past) toEnd() bool { return p.at == 0 || p.at == p.h.end }

// settle sets what depends on the checkpoint: the edits that are not yet in effect, and the algorithm and the members
// of the job.
func (out *Restored) settle(p *Past) (err error) {
	if p.toEnd() {
		for _, e := range append(p.h.pendingForkEdits(out.Checkpoint), p.h.edits...) {
			if e.At >= out.Checkpoint.Round && !slices.ContainsFunc(out.Checkpoint.Timeline, e.Same) {
				out.Late = append(out.Late, e)
			}
		}
	}
	out.Job.Alg, err = out.Job.lookup(out.Checkpoint.Algorithm)
	out.Job.Members = len(out.Checkpoint.Roster.Members)
	return err
}

// execute recomputes the state of p, saves it through store, and sets Executed and Checkpoint.
func (out *Restored) execute(
	ctx context.Context, p *Past, store worker.Store, threads int, progress func(event.Commit),
) error {
	w, rounds, err := p.recompute(ctx, store, threads, progress)
	if err != nil {
		return err
	}
	defer w.Free()
	out.Executed = rounds
	cp, err := w.State(ctx)
	if err != nil {
		return fmt.Errorf("%s up to round %d: %w", p.dir, p.at, err)
	}
	saved, ok := w.Handle(ctx, message.Save{Epoch: cp.Epoch, At: cp.Round}).(message.Saved)
	if !ok || saved.Err != "" {
		return fmt.Errorf("save round %d: %s", cp.Round, saved.Err)
	}
	cp.Files = saved.Files
	out.Checkpoint = cp
	return nil
}

// complete returns the error of a run that is complete.
func (out *Restored) complete() error {
	e := &CompleteError{Progress: out.Checkpoint.Progress}
	if out.met == "" {
		e.Missed = out.Limit.Target
	}
	return e
}

// CompleteError reports that a run that should be resumed has reached its limit.
type CompleteError struct {
	Progress event.Progress
	Missed   string // the target that was not met; "" if the run had none or met it
}

func (e *CompleteError) Error() string {
	return fmt.Sprintf("the run is complete: %d rounds, %.4g epochs; give it more, such as --rounds %d",
		e.Progress.Rounds, e.Progress.Epochs, 2*e.Progress.Rounds)
}

// Continue applies the options that may change when a session is resumed, such as its workers, limit and device, and
// stages knob edits. A run that reached its limit but was killed before its log recorded the end is resumed to record
// it. Continue returns a *CompleteError if the run is complete, and an error if an option does not fit.
func (out *Restored) Continue(o Options) error {
	j := out.Job
	j.Workers, j.Threads = max(out.Hosts, 1), goruntime.NumCPU()
	j.ApplyResumed(&j.Config, o)
	j.Limit, j.Unattended = o.Limit, o.Unattended
	if err := j.checkTarget(); err != nil {
		return err
	}
	if at := j.Device; at != "" && !j.Modelless() { // before anything is written
		kinds, err := j.own.Kernels(at)
		if err != nil {
			return err
		}
		if !slices.Contains(kinds, j.Config.Kernels) {
			return &otherKernelsError{at, kinds[0], j.Config.Kernels}
		}
	}
	p := out.Checkpoint.Progress
	if o.Limit != out.Limit {
		out.met = ""
	}
	complete := o.Limit.Reached(p) || out.met != "" || out.losses.Stalled(o.Limit) != ""
	if complete && (out.finished || o.Limit != out.Limit) {
		return out.complete()
	}
	check := j.Options
	check.Members = len(out.Checkpoint.Roster.Members)
	if err := check.Check(); err != nil {
		return err
	}
	return out.stage(o.Set, o.By)
}

// stage stages knob edits for the first round after the restored one, and validates the resulting coordinator
// configuration.
func (out *Restored) stage(set []event.Setting, by string) error {
	p := out.Checkpoint.Progress
	j := out.Job
	shape := optim.Shape{Roster: out.Checkpoint.Roster, Layout: j.Net.Layout, Data: j.size()}
	before := append(slices.Clone(out.Checkpoint.Timeline), out.Late...)
	from := timeline.Position{Round: out.Checkpoint.Round, Epochs: p.Epochs, Steps: p.Steps}
	late, err := edits(j.Alg, before, set, by, shape, from)
	if err != nil {
		return err
	}
	out.Late = append(out.Late, late...)
	core := j.core()
	core.Edits, core.Resume, core.Late, core.Asked = nil, &out.Checkpoint, out.Late, out.Asked
	_, err = coordinator.New(core)
	return err
}

// Fork turns the restored state into the start of a new session with the given parent. It drops the parent's edits and
// commands for later rounds: which of them exist by now depends on how far the parent has run.
func (out *Restored) Fork(parent string, o Options) error {
	j := out.Job
	j.Config.Begins = nil
	j.Config.Parent, j.Config.ParentAt, j.Config.Limit = parent, out.Checkpoint.Round, o.Limit
	out.branch, out.Epoch, out.Checkpoint.Epoch, out.Late = true, 0, 0, nil
	out.Checkpoint.Timeline = slices.DeleteFunc(slices.Clone(out.Checkpoint.Timeline),
		func(e event.Edit) bool { return e.At >= out.Checkpoint.Round })
	// commands and outcome belong to the parent
	out.Asked, out.met, out.finished, out.losses = event.Pending{}, "", true, coordinator.Losses{}
	if err := out.Continue(o); err != nil {
		return err
	}
	for _, e := range out.Late { // expressions are in the units of the log, like those of its edits
		j.Config.Set = append(j.Config.Set, event.Setting{Knob: e.Knob, Expr: e.Expr})
	}
	j.Config.By = o.By
	return nil
}
