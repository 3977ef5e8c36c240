package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"brood/runtime/event"
	"brood/runtime/fleet"
	"brood/runtime/host"
	"brood/runtime/machine"
	"brood/runtime/message"
	"brood/runtime/worker"
	"brood/transport/quic"
	"brood/transport/wire"
)

// tenure is a worker's time on one control connection, under one number.
type tenure struct {
	cfg  Worker
	peer *quic.Peer
	mesh *quic.Mesh
	id   int

	setup   chan message.Setup
	replies chan any // of the coordinator, to the store
	box     *fleet.Mailbox
	failed  string // what it reported last that it could not do

	mu     sync.Mutex // guards what follows
	shapes []event.Link
	roster wire.Roster
	worker *worker.Worker // once there is one
}

// handover is how long a worker that leaves waits until its members have moved on: what those who preempt a machine
// commonly grant.
const handover = 30 * time.Second

// ErrHandover says that this worker has left, and its members had not moved on by then.
var ErrHandover = errors.New("its members had not moved on after " + handover.String())

// grace before a failure is reported: longer than the coordinator takes to notice a death.
const grace = 5 * time.Second

// stay takes part until the run is over (nil), ctx ends, or the coordinator is gone.
func stay(ctx context.Context, cfg Worker, node *quic.Node, peer *quic.Peer, w wire.Welcome, hello *wire.Hello) error {
	mesh, err := node.Mesh(w.Run)
	if err != nil {
		peer.Close(err.Error())
		return &RefusedError{err}
	}
	v := &tenure{cfg: cfg, peer: peer, mesh: mesh, id: int(w.Worker), setup: make(chan message.Setup, 1), replies: make(chan any, 1), box: fleet.NewMailbox()}
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { cancel(v.hear(ctx)) })
	wg.Go(func() { v.tell(ctx) })
	wg.Go(func() { v.leave(ctx, cancel) })
	err = v.work(ctx, hello)
	if peer.Err() != nil {
		<-ctx.Done() // a reply that could not be sent: who hears the coordinator knows what it said last
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if _, out := errors.AsType[*RefusedError](err); out && v.failed != "" {
		err = &RefusedError{fmt.Errorf("%w; this worker had reported: %s", err, v.failed)}
	}
	cancel(err)
	wg.Wait()
	mesh.Close()
	switch {
	case peer.Err() != nil:
	case errors.Is(err, errOver):
		leave(peer, errOver.Error())
	case errors.Is(err, context.Canceled):
		leave(peer, "stopped by its operator")
	default:
		leave(peer, err.Error())
	}
	peer.Close("")
	if errors.Is(err, errOver) {
		return nil
	}
	return err
}

// leave asks the coordinator to let this worker go, once that is wanted.
func (v *tenure) leave(ctx context.Context, cancel context.CancelCauseFunc) {
	select {
	case <-v.cfg.Leave:
	case <-ctx.Done():
		return
	}
	if err := v.send(message.Leaving{Worker: v.id}); err != nil {
		cancel(err)
		return
	}
	select {
	case <-time.After(handover):
		cancel(ErrHandover)
	case <-ctx.Done():
	}
}

// tell says now and then what the links measure, and the machine.
func (v *tenure) tell(ctx context.Context) {
	meter := machine.New()
	_ = meter.Measure(time.Now()) // rates count from here
	tick := time.NewTicker(telemetryPeriod)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			m := counts(v.mesh, v.id)
			m.Machine = meter.Measure(time.Now())
			v.mu.Lock()
			w := v.worker
			v.mu.Unlock()
			if w != nil { // without the lock: the device's driver may take its time
				machine.Device(m.Machine, w)
				machine.Programs(m.Machine, w)
			}
			if v.send(m) != nil {
				return // whoever hears the coordinator notices
			}
		case <-ctx.Done():
			return
		}
	}
}

// shaped makes the links as slow as they are to be. Either argument may be nil: as before.
func (v *tenure) shaped(l *event.Link, r wire.Roster) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if l != nil {
		v.shapes = reshaped(v.shapes, *l)
	}
	if r != nil {
		v.roster = r
	}
	applyShapes(v.mesh, v.id, v.shapes, v.roster)
}

// LateNote is what a slowed worker says when it leaves a run: its factor, and by how many percent its computing took
// longer than that, since other work had the processors.
const LateNote = "computed %g times slower, and %d %% longer than that"

// work prepares the job and does what comes into the mailbox. An error is final.
func (v *tenure) work(ctx context.Context, hello *wire.Hello) error {
	var setup message.Setup
	select {
	case setup = <-v.setup:
	case <-ctx.Done():
		return ctx.Err()
	}
	dir, remove, err := scratch()
	if err != nil {
		return &RefusedError{fmt.Errorf("a place for checkpoints on their way: %w", err)}
	}
	defer remove()
	st := &store{ctx: ctx, dir: dir, send: v.send, replies: v.replies}
	if f := setup.Config.Init; f != nil {
		if f.Path != initFile {
			return &RefusedError{fmt.Errorf("the run takes its initial parameters from %q: the coordinator is of another version", f.Path)}
		}
		if _, err := st.fetch(*f); err != nil {
			return fmt.Errorf("fetch the initial parameters: %w", err)
		}
	}
	job, err := v.cfg.Own.FromSession(dir, setup.Config)
	if err != nil {
		return &RefusedError{fmt.Errorf("this machine cannot take part: %w", err)}
	}
	job.Device, job.Slow, job.Lag = v.cfg.Device, v.cfg.debt, &host.Lag{}
	if v.cfg.Slow > 1 {
		defer func() { v.cfg.Note(fmt.Sprintf(LateNote, v.cfg.Slow, int(100*job.Lag.Late()))) }()
	}
	hello.Data = map[string]string{setup.Config.Data: setup.Config.Digest}
	w, err := job.Worker(v.id, v.mesh.Link(uint32(v.id)), func() int64 { return v.mesh.Totals().Overhead() }, st, v.cfg.Threads, true)
	if err != nil {
		return &RefusedError{fmt.Errorf("this machine cannot take part: %w", err)}
	}
	v.mu.Lock()
	v.worker = w
	v.mu.Unlock()
	if err := v.send(message.Ready{Worker: v.id}); err != nil {
		return err
	}
	v.cfg.Note(fmt.Sprintf("joined as worker %d: %s on %s, %d members", v.id, setup.Config.Model, setup.Config.Data, setup.Members))
	var lost error
	err = fleet.Attend(ctx, v.box, w, grace, func(reply message.Report) {
		if f, ok := reply.(message.Failed); ok {
			v.failed = f.Err
		}
		if err := v.send(fitting(reply)); err != nil && lost == nil {
			lost = err
			v.box.Close()
		}
	})
	if err != nil {
		return &RefusedError{err}
	}
	return lost
}

// fitting is a reply, or the failure that it does not fit into a message: one round of very many members may not.
func fitting(reply message.Report) message.Report {
	d, ok := reply.(message.Done)
	if !ok {
		return reply
	}
	m, err := encode(d)
	if err == nil && len(m.Body) <= wire.MaxBody {
		return reply
	}
	return message.Failed{Worker: d.Worker, Epoch: d.Epoch, Err: fmt.Sprintf("its report of rounds %d to %d takes %d bytes, and a message holds %d: host fewer members on each worker",
		d.From+1, d.To, len(m.Body), wire.MaxBody)}
}

func (v *tenure) send(msg any) error {
	m, err := encode(msg)
	if err != nil {
		return err
	}
	return v.peer.Send(m)
}

// hear takes what the coordinator says until it is gone, or the run is over.
func (v *tenure) hear(ctx context.Context) error {
	for {
		m, err := v.peer.Receive(ctx)
		if err != nil {
			if gone, ok := errors.AsType[*quic.GoneError](err); ok && (gone.Cause == quic.Left || gone.Cause == quic.Ended) {
				return &RefusedError{fmt.Errorf("the coordinator ended this worker's part: %s", gone.Reason)}
			}
			return err
		}
		if m.Kind == wire.KindRoster {
			roster, err := wire.ParseRoster(m.Body)
			if err == nil {
				err = v.mesh.SetRoster(roster)
			}
			if err != nil {
				return err
			}
			v.shaped(nil, roster)
			continue
		}
		msg, err := message.Decode(m.Kind, m.Body)
		if err != nil {
			return &RefusedError{err}
		}
		switch msg := msg.(type) {
		case message.Setup:
			select {
			case v.setup <- msg:
			default:
				return &RefusedError{errors.New("the coordinator sets this worker up twice")}
			}
		case message.Stop:
			return errOver
		case message.Away:
			if msg.After > 0 {
				return &away{msg}
			}
			return &RefusedError{fmt.Errorf("the coordinator sent this worker away for good: %s", msg.Why)}
		case message.Shape:
			v.shaped(&msg.Link, nil)
		case message.Kept, message.Piece:
			select {
			case v.replies <- msg:
			default: // nobody asked
			}
		case message.Order:
			v.box.Post(msg)
		default:
			return &RefusedError{fmt.Errorf("the coordinator sends a %T, which only workers do", msg)}
		}
	}
}
