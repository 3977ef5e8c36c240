package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"brood/runtime/event"
	"brood/runtime/fleet"
	"brood/runtime/machine"
	"brood/runtime/message"
	"brood/runtime/worker"
	"brood/transport/quic"
	"brood/transport/wire"
)

// workerSession is the worker's side of one control connection, under one worker number.
type workerSession struct {
	cfg  Worker
	peer *quic.Peer
	mesh *quic.Mesh
	run  wire.RunID
	id   int

	prepared *prepared // nil until the worker is ready to join

	setup       chan message.Setup
	replies     chan any // the coordinator's replies to the store
	box         *fleet.Mailbox
	lastFailure string // the last failure that it reported; "" if none

	mu     sync.Mutex // guards the fields below
	shapes []event.Link
	roster wire.Roster
	worker *worker.Worker // nil until it is prepared
}

// handoverTimeout is how long a leaving worker waits for its members to move: the notice that providers commonly give
// before they preempt a machine.
const handoverTimeout = 30 * time.Second

// ErrHandover is returned by a worker that left before its members had moved.
var ErrHandover = errors.New("its members had not moved after " + handoverTimeout.String())

// grace is the delay before a failure is reported: longer than the coordinator takes to notice a lost worker.
const grace = 5 * time.Second

// runSession takes part in a run until it is over (nil), ctx ends, or the coordinator is lost. kept is the worker of
// the last session, nil if there is none; runSession sets it if this worker may return to the run, and frees it
// otherwise.
func runSession(
	ctx context.Context,
	cfg Worker,
	node *quic.Node,
	peer *quic.Peer,
	w wire.Welcome,
	hello *wire.Hello,
	kept **prepared,
) error {
	mesh, err := node.Mesh(w.Run)
	if err != nil {
		peer.Close(err.Error())
		return &RefusedError{err}
	}
	v := &workerSession{
		cfg:     cfg,
		peer:    peer,
		mesh:    mesh,
		run:     w.Run,
		id:      int(w.Worker),
		setup:   make(chan message.Setup, 1),
		replies: make(chan any, 1),
		box:     fleet.NewMailbox(),
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { cancel(v.receive(ctx)) })
	wg.Go(func() { v.sendTelemetry(ctx) })
	wg.Go(func() { v.handOver(ctx, cancel) })
	err = v.work(ctx, hello, *kept)
	if peer.Err() != nil {
		<-ctx.Done() // a reply could not be sent: receive knows the coordinator's last message, which explains it
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if _, out := errors.AsType[*RefusedError](err); out && v.lastFailure != "" {
		err = &RefusedError{fmt.Errorf("%w; this worker had reported: %s", err, v.lastFailure)}
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
	_, refused := errors.AsType[*RefusedError](err)
	if *kept = v.prepared; refused || errors.Is(err, errOver) {
		v.prepared.free()
		*kept = nil
	}
	if errors.Is(err, errOver) {
		return nil
	}
	return err
}

// handOver tells the coordinator that this worker leaves, once cfg.Leave is closed, and waits up to handoverTimeout.
func (v *workerSession) handOver(ctx context.Context, cancel context.CancelCauseFunc) {
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
	case <-time.After(handoverTimeout):
		cancel(ErrHandover)
	case <-ctx.Done():
	}
}

// sendTelemetry sends the counters of the links and of the machine, and the worker's activity, every telemetryPeriod.
func (v *workerSession) sendTelemetry(ctx context.Context) {
	meter := machine.New()
	_ = meter.Measure(time.Now()) // sets the start of the rates
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
			if w != nil { // without the lock: the device's driver may be slow
				machine.AddDevice(m.Machine, w)
				machine.AddRestarts(m.Machine, w)
				m.Doing = activity(w)
			}
			if v.send(m) != nil {
				return // receive notices that the connection is lost
			}
		case <-ctx.Done():
			return
		}
	}
}

// updateShapes adds a shape or replaces the roster, if not nil, and applies the shapes to the links.
func (v *workerSession) updateShapes(l *event.Link, r wire.Roster) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if l != nil {
		v.shapes = withShape(v.shapes, *l)
	}
	if r != nil {
		v.roster = r
	}
	applyShapes(v.mesh, v.id, v.shapes, v.roster)
}

// LateNote is the format of the note that a slowed worker leaves a run with: its factor, and by how many percent its
// computation exceeded it, since other work used the processors.
const LateNote = "computed %g times slower, and %d %% longer than that"

// work prepares the worker, or takes the one of the last session, and executes orders from the mailbox until the run
// ends. It returns a *RefusedError if a retry is useless.
func (v *workerSession) work(ctx context.Context, hello *wire.Hello, kept *prepared) error {
	var setup message.Setup
	select {
	case setup = <-v.setup:
	case <-ctx.Done():
		v.prepared = kept
		return ctx.Err()
	}
	st := &store{ctx: ctx, send: v.send, replies: v.replies}
	held, err := v.reuse(ctx, kept, setup, st)
	if err != nil {
		return err
	}
	if held == nil {
		if err := v.prepare(setup, st); err != nil {
			return err
		}
	}
	hello.Data = map[string]string{setup.Config.Data: setup.Config.Digest}
	p := v.prepared
	if v.cfg.Slow > 1 {
		defer func() { v.cfg.Note(fmt.Sprintf(LateNote, v.cfg.Slow, int(100*p.job.Lag.Late()))) }()
	}
	v.mu.Lock()
	v.worker = p.worker
	v.mu.Unlock()
	if err := v.send(message.Ready{Worker: v.id, Held: held, Machine: v.cfg.Machine}); err != nil {
		return err
	}
	text := fmt.Sprintf("joined as worker %d: %s on %s, %d members",
		v.id, setup.Config.Model, setup.Config.Data, setup.Members)
	if held != nil {
		text += fmt.Sprintf(", with its rows of round %d", held.Round)
	}
	v.cfg.Note(text)
	var lost error
	err = fleet.Attend(ctx, v.box, p.worker, grace, func(reply message.Report) {
		if f, ok := reply.(message.Failed); ok {
			v.lastFailure = f.Err
		}
		if m, ok := reply.(message.Saved); ok && len(m.Files) == 1 {
			statement := event.Statement(m.At, m.Epoch, m.Hash, m.Files[0])
			m.Signature.Key, m.Signature.Sum = v.cfg.Key.Public(), v.cfg.Key.Sign(statement)
			reply = m
		}
		if err := v.send(fitReply(reply)); err != nil && lost == nil {
			lost = err
			v.box.Close()
		}
	})
	if err != nil {
		return &RefusedError{err}
	}
	return lost
}

// fitReply returns the reply, or a Failed if it does not fit into a message: one round of very many members may not.
func fitReply(reply message.Report) message.Report {
	d, ok := reply.(message.Done)
	if !ok {
		return reply
	}
	m, err := encode(d)
	if err == nil && len(m.Body) <= wire.MaxBody {
		return reply
	}
	text := fmt.Sprintf("its report of rounds %d to %d takes %d bytes, and a message holds %d: "+
		"host fewer members on each worker", d.From+1, d.To, len(m.Body), wire.MaxBody)
	return message.Failed{Worker: d.Worker, Epoch: d.Epoch, Err: text}
}

func (v *workerSession) send(msg any) error {
	m, err := encode(msg)
	if err != nil {
		return err
	}
	return v.peer.Send(m)
}

// receive handles the coordinator's messages until the connection is lost (an error) or the run is over (errOver).
func (v *workerSession) receive(ctx context.Context) error {
	for {
		m, err := v.peer.Receive(ctx)
		if err != nil {
			gone, ok := errors.AsType[*quic.GoneError](err)
			if ok && (gone.Cause == quic.Left || gone.Cause == quic.Ended) {
				return &RefusedError{fmt.Errorf("the coordinator ended this worker's session: %s", gone.Reason)}
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
			v.updateShapes(nil, roster)
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
				return &RefusedError{errors.New("the coordinator sent Setup twice")}
			}
		case message.Stop:
			return errOver
		case message.Evict:
			if msg.After > 0 {
				return &evicted{msg}
			}
			return &RefusedError{fmt.Errorf("the coordinator evicted this worker: %s", msg.Why)}
		case message.Shape:
			v.updateShapes(&msg.Link, nil)
		case message.Stored, message.Piece:
			select {
			case v.replies <- msg:
			default: // no request is waiting
			}
		case message.Order:
			v.box.Post(msg)
		default:
			return &RefusedError{fmt.Errorf("the coordinator sent a %T, which only workers send", msg)}
		}
	}
}
