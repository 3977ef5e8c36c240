package host

import (
	"context"
	"fmt"
	"slices"
	"time"

	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/message"
)

// reattachPatience is how long a resumed run waits for the workers of the earlier process. They usually return within a
// second. A dial that began just before the new process listened may take some three seconds longer.
const reattachPatience = 6 * time.Second

// awaitWorkers prepares to continue from the workers of the earlier process. It returns false if the log shows that
// they cannot hold the last committed state, or if they need not, since the newest checkpoint is of that state.
func (out *Restored) awaitWorkers(p *Past, threads int) bool {
	h := &p.h
	if h.plan == nil || h.last == nil || h.last.Epoch != h.plan.Epoch || h.phase.Over() ||
		h.saved() == nil && h.first.From != event.Fresh { // a rollback could not return to the start of a fork
		return false
	}
	out.Checkpoint = h.here
	out.Checkpoint.Epoch, out.Checkpoint.Hash = h.last.Epoch, h.last.Hash
	out.Checkpoint.Timeline = slices.DeleteFunc(slices.Clone(h.edits), func(e event.Edit) bool {
		return e.At >= h.last.To && !slices.ContainsFunc(h.plan.Timeline, e.Same)
	})
	out.first = h.first
	out.reattach = &coordinator.Reattach{Plan: *h.plan, Saved: h.saved(), Patience: reattachPatience}
	out.recompute = func(ctx context.Context, progress func(event.Commit)) (event.Checkpoint, error) {
		var r Restored
		err := r.execute(ctx, p, nil, threads, progress)
		return r.Checkpoint, err
	}
	return true
}

// Committed names the state that workers of the earlier process may hold, and from which the run then continues; nil if
// the run continues from a checkpoint.
func (out *Restored) Committed() *message.Committed {
	if out == nil || out.reattach == nil {
		return nil
	}
	return &message.Committed{Epoch: out.Checkpoint.Epoch, Round: out.Checkpoint.Round}
}

// recomputed recomputes the state of a resumed run whose workers do not return, and notes its progress from time to
// time.
func (r *Run) recomputed(ctx context.Context) (event.Checkpoint, error) {
	noted := time.Now()
	return r.Resumed.recompute(ctx, func(k event.Commit) {
		if time.Since(noted) < recomputeNotes {
			return
		}
		noted = time.Now()
		r.fleet.Note(coordinator.Note{
			Kind: event.AlertRecompute,
			Text: fmt.Sprintf("recomputed up to round %d of %d", k.To, r.Resumed.Checkpoint.Round),
		})
	})
}

// recomputeNotes is the time between notes of the progress of a recomputation.
const recomputeNotes = 10 * time.Second

// configure sets what a core needs to continue from the workers.
func (out *Restored) configure(core *coordinator.Config) {
	core.Reattach = out.reattach
	if p := out.first; out.reattach != nil && out.reattach.Saved == nil { // a rollback returns to the start
		core.Algorithm, core.Members, core.Edits = p.Algorithm, len(p.New.Members), p.Timeline
	}
}

// firstID returns the number of the first new worker. Workers of the earlier process return under lower numbers.
func (out *Restored) firstID() int {
	if out == nil || out.reattach == nil {
		return 0
	}
	return slices.Max(out.reattach.Plan.New.Owner) + 1
}
