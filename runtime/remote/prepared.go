package remote

import (
	"context"
	"errors"
	"fmt"

	"brood/runtime/host"
	"brood/runtime/message"
	"brood/runtime/worker"
	"brood/transport/wire"
)

// prepared is what a worker builds for a run. It outlives a session with the coordinator: if the coordinator's process
// ends, the worker returns to the next one with the state that it holds.
type prepared struct {
	run    wire.RunID
	id     int    // number of the worker in the run
	dir    string // for files in transit
	remove func() // removes dir
	job    *host.Job
	worker *worker.Worker
}

// free ends the worker. It does nothing for nil.
func (p *prepared) free() {
	if p != nil {
		p.worker.Free()
		p.remove()
	}
}

// setNumber sets the number under which this worker holds rows of the run of its last session.
func (p *prepared) setNumber(h *wire.Hello) {
	h.Worker = nil
	if p != nil {
		id := uint32(p.id)
		h.Worker = &id
	}
}

// errNumberTaken ends the session of a worker whose rows the run may need under the number of its last session.
var errNumberTaken = errors.New("the number of this worker is not free yet")

// reuse continues with the worker of the last session, if it holds the state that the run continues from. Otherwise it
// frees it and returns nil. An error ends the session, and the worker keeps its rows for the next one.
func (v *workerSession) reuse(ctx context.Context, p *prepared, setup message.Setup, st *store) (*message.Held, error) {
	if p == nil || p.run != v.run || setup.Committed == nil {
		p.free()
		return nil, nil
	}
	v.prepared = p
	if p.id != v.id {
		return nil, errNumberTaken
	}
	st.dir = p.dir
	p.worker.Reconnect(v.mesh.Link(uint32(v.id)), st, v.overhead)
	held, err := p.worker.Holds(ctx, *setup.Committed)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	m, unfit := encode(message.Ready{Worker: v.id, Held: held})
	if err == nil && held != nil && unfit == nil && len(m.Body) <= wire.MaxBody {
		return held, nil
	}
	v.prepared = nil
	p.free()
	return nil, nil
}

// prepare builds the worker. The error is a *RefusedError if a retry is useless.
func (v *workerSession) prepare(setup message.Setup, st *store) (err error) {
	p := &prepared{run: v.run, id: v.id}
	if p.dir, p.remove, err = scratch(); err != nil {
		return &RefusedError{fmt.Errorf("create a folder for checkpoints in transit: %w", err)}
	}
	defer func() {
		if err != nil {
			p.remove()
		}
	}()
	st.dir = p.dir
	if f := setup.Config.Init; f != nil {
		if f.Path != initFile {
			return &RefusedError{fmt.Errorf("the run takes its initial parameters from %q: "+
				"the coordinator is of another version", f.Path)}
		}
		if _, err := st.fetch(*f); err != nil {
			return fmt.Errorf("fetch the initial parameters: %w", err)
		}
	}
	if p.job, err = v.cfg.Own.FromSession(p.dir, setup.Config); err != nil {
		return &RefusedError{fmt.Errorf("this machine cannot take part: %w", err)}
	}
	p.job.Device, p.job.Slow, p.job.Lag = v.cfg.Device, v.cfg.debt, &host.Lag{}
	link := v.mesh.Link(uint32(v.id))
	if p.worker, err = p.job.Worker(v.id, link, v.overhead, st, v.cfg.Threads, true); err != nil {
		return &RefusedError{fmt.Errorf("this machine cannot take part: %w", err)}
	}
	v.prepared = p
	return nil
}

// overhead returns the bytes that this session's transport sent in addition to payload.
func (v *workerSession) overhead() int64 { return v.mesh.Totals().Overhead() }
