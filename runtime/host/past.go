package host

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"

	"brood/models/arith"
	"brood/models/engine"
	"brood/models/gpu"
	"brood/runtime/checkpoint"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/session"
	"brood/runtime/verify"
	"brood/runtime/worker"
)

// Past is a recorded session whose state after a round can be recomputed. The session may be running; nothing here
// changes it.
type Past struct {
	Job *Job // job of the session
	dir string
	at  uint64 // requested round; 0: the last commit
	h   history
}

// Past opens the session in dir to recompute it up to and including round at (0: the last commit). It returns an error
// if the log does not reach that round, or if the model, the data or the kernels are not available as they were
// recorded. If only the data or the kernels are missing, it returns the Past too, for [Past.Load]. o may be nil, for
// sessions of a list of layers.
func (o *Own) Past(dir string, at uint64) (*Past, error) {
	h, err := read(dir, at)
	if err != nil {
		return nil, err
	}
	if h.last == nil && h.epoch == 0 && h.saved() == nil {
		return nil, fmt.Errorf("%s has no committed round to resume from; start a new run", dir)
	}
	if b := h.config.Begins; b != nil && at > 0 && at < b.Round {
		return nil, fmt.Errorf("round %d of %s is gone: %s", at, dir, h.config.Removed())
	}
	if c := h.config; at > 0 && at < c.ParentAt {
		return nil, fmt.Errorf("round %d is before the start of %s, which branches from %s after round %d: ask %s for it",
			at, dir, c.Parent, c.ParentAt, c.Parent)
	}
	if at > h.end {
		return nil, fmt.Errorf("round %d is after the last committed round %d of %s", at, h.end, dir)
	}
	h.nearest(dir)
	j, err := o.FromSession(dir, h.config)
	if j == nil {
		return nil, err
	}
	return &Past{Job: j, dir: dir, at: at, h: h}, err
}

// Past returns the recorded part of the run, up to its last commit. Its job is that of the run, so that the data are
// not read again.
func (r *Run) Past() (*Past, error) {
	dir := r.Session.Dir()
	h, err := read(dir, 0)
	if err != nil {
		return nil, err
	}
	h.nearest(dir)
	return &Past{Job: r.Job, dir: dir, h: h}, nil
}

// Name returns the name of the session, the last element of its directory.
func (p *Past) Name() string { return filepath.Base(p.dir) }

// Dir returns the directory of the session.
func (p *Past) Dir() string { return p.dir }

// Round returns the requested round, or that of the last commit; 0 if there is no commit.
func (p *Past) Round() uint64 { return cmp.Or(p.at, p.h.end) }

// Members returns the members in the requested round, in ascending order. The caller must not change the slice.
func (p *Past) Members() []engine.Member { return p.h.here.Roster.Members }

// Recompute executes the log on one worker, from the nearest checkpoint up to and including the requested round, and
// compares every commit. progress is called after each commit and may be nil. threads 0 means one per processor. It
// returns the worker, which the caller frees. It returns an error if a commit differs.
func (p *Past) Recompute(ctx context.Context, threads int, progress func(event.Commit)) (*worker.Worker, error) {
	w, _, err := p.recompute(ctx, nil, threads, progress)
	return w, err
}

// Follow is [Past.Recompute] from the first round of the log. It calls each after every round with a copy of the
// centre, before progress is called for the commit of that round. An error of each ends Follow.
func (p *Past) Follow(
	ctx context.Context, threads int, each func(round uint64, centre engine.Host) error, progress func(event.Commit),
) (*worker.Worker, error) {
	w, _, err := p.run(ctx, &checkpoint.Files{Dir: p.dir}, threads, each, verify.Config{
		Settled:  p.h.settled,
		Progress: progress,
	})
	return w, err
}

// recompute is [Past.Recompute] with a store for checkpoints, nil for none. It also returns the number of rounds
// executed. If a run in progress removes the checkpoint at the same time, it tries the next older one.
func (p *Past) recompute(
	ctx context.Context, store worker.Store, threads int, progress func(event.Commit),
) (*worker.Worker, uint64, error) {
	h := p.h
	for {
		w, rounds, err := p.run(ctx, &checkpoint.Files{Dir: p.dir, Other: store}, threads, nil, verify.Config{
			From:     h.saved(),
			Settled:  h.settled,
			Progress: progress,
		})
		if err == nil || h.saved() == nil || ctx.Err() != nil || intact(p.dir, h.saved()) == nil {
			return w, rounds, err
		}
		h.nearest(p.dir)
	}
}

// run executes the log with config c on a new worker, which the caller frees. each may be nil, see [Past.Follow]. It
// also returns the number of rounds executed.
func (p *Past) run(
	ctx context.Context, files *checkpoint.Files, threads int, each func(uint64, engine.Host) error, c verify.Config,
) (*worker.Worker, uint64, error) {
	w, err := p.Job.singleWorker(files, threads, false)
	if err != nil {
		return nil, 0, err
	}
	if each != nil {
		w.Follow(each)
	}
	c.Worker = w
	res, err := recomputeLog(ctx, c, p.dir, p.at)
	if err != nil {
		w.Free()
		return nil, 0, fmt.Errorf("execute %s again: %w", p.dir, err)
	}
	return w, res.Rounds, nil
}

// recomputeLog executes the log in dir up to and including round at, see [verify.Run].
func recomputeLog(ctx context.Context, c verify.Config, dir string, at uint64) (res verify.Result, err error) {
	r, err := session.OpenReader(dir)
	if err != nil {
		return res, err
	}
	defer r.Close()
	c.Settled -= min(c.Settled, r.At()) // older records may be removed
	return verify.Run(ctx, c, r, at)
}

// Loadable reports whether [Past.Load] returns the state after the requested round: a checkpoint is of exactly this
// round, and the model has no batch-norm statistics, which need the data.
func (p *Past) Loadable() bool { return p.h.holds(p.at) && p.Job.Net.Layout.Stats == 0 }

// Load returns a worker with the state of the nearest checkpoint, which the caller frees. There must be one, see
// [Past.Loadable]. The worker computes nothing on samples, so it needs neither the data of the session, which Load
// replaces by an empty set if they are missing, nor the tensor cores of its kernels. threads 0 means one per processor.
func (p *Past) Load(ctx context.Context, threads int) (*worker.Worker, error) {
	j, cp := p.Job, *p.h.saved()
	if j.Samples == nil || j.Samples.Digest() != j.Config.Digest {
		j.clearSamples()
	}
	on := *j
	if _, _, ok := gpu.ParseTensorKind(j.Config.Kernels); ok {
		on.Config.Kernels, on.Device = arith.Name, ""
	}
	w, err := on.singleWorker(&checkpoint.Files{Dir: p.dir}, threads, false)
	if err != nil {
		return nil, err
	}
	all := cp.Roster.OnOne(w.ID())
	plan := event.Plan{
		Epoch:     cp.Epoch,
		At:        cp.Round,
		From:      event.Saved,
		Old:       all,
		New:       all,
		OldAlg:    cp.Algorithm,
		Algorithm: cp.Algorithm,
		Timeline:  cp.Timeline,
	}
	if failed, ok := w.Handle(ctx, message.Plan{Plan: plan, Checkpoint: &cp}).(message.Failed); ok {
		w.Free()
		return nil, fmt.Errorf("load round %d: %s", cp.Round, failed.Err)
	}
	return w, nil
}
