package remote

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"brood/runtime/event"
	"brood/runtime/fleet"
	"brood/runtime/message"
	"brood/runtime/session"
	"brood/runtime/worker"
	"brood/transport/quic"
	"brood/transport/wire"
)

// workerHandle is the coordinator's side of a worker in another process. It implements fleet.WorkerHandle.
type workerHandle struct {
	run  *run
	peer *quic.Peer
	id   int

	ctx        context.Context // ends with the run, by Close, or when the worker violates the protocol
	cancel     context.CancelCauseFunc
	joined     bool // its worker is in the run; guarded by the server's mu
	acceptedAt time.Time

	mu             sync.Mutex
	saves          map[string]message.Save // orders to save, by the path of the file, until it was received
	pendingReplies int                     // maximum number of replies to orders that are still due
	lastFile       *event.File             // the newest checkpoint file that was received; nil before
	lastSave       message.Save            // order of lastFile
	since          time.Time
	links          linkRates

	machine   map[event.Measure]float64 // of its last telemetry
	doing     worker.Doing              // of its last telemetry; zero if it was idle
	machineAt time.Time                 // when that arrived

	// Used by the serve goroutine alone.
	files   checkpointStore
	leaving bool
	budget  tokenBucket // rate limit of telemetry
}

// maxPendingReplies bounds the replies that may be under way when a worker is ordered to abort: to grants, to a save,
// and to one plan for each worker that left in sequence.
const maxPendingReplies = 64

// errOver ends a worker's session because the run is over.
var errOver = errors.New("the run is over")

// evicted ends a worker's session; the message tells the worker why, and whether it may return.
type evicted struct{ message.Evict }

func (a *evicted) Error() string { return a.Why }

// goodbyeTimeout is how long the exchange that closes a connection may take.
const goodbyeTimeout = 2 * time.Second

func newHandle(r *run, p *quic.Peer, id int) *workerHandle {
	t := &workerHandle{
		run:        r,
		peer:       p,
		id:         id,
		saves:      map[string]message.Save{},
		acceptedAt: time.Now(),
		since:      time.Now(),
		files:      checkpointStore{dir: r.dir},
	}
	t.ctx, t.cancel = context.WithCancelCause(r.ctx)
	return t
}

func (t *workerHandle) String() string {
	text := fmt.Sprintf("worker %d (%s at %s)", t.id, t.peer.Hello().Name, t.peer.Address())
	if t.run.srv.cfg.Series {
		text += " of " + filepath.Base(t.run.dir)
	}
	return text
}

// Post implements fleet.WorkerHandle: it sends an order of the core. Stop and Evict also end the session; the worker of
// a run that another process will continue may return.
func (t *workerHandle) Post(msg message.Order) {
	t.mu.Lock()
	switch m := msg.(type) {
	case message.Save:
		t.saves[session.CheckpointFile(m.At, m.Epoch, t.id)] = m
		t.pendingReplies++
	case message.Plan, message.Grant, message.Audit: // a worker replies to an Audit as an auditor, or if it fails
		t.pendingReplies++
	case message.Abort:
		t.pendingReplies = min(t.pendingReplies, maxPendingReplies) // earlier replies may still be under way
	}
	t.mu.Unlock()
	switch m := msg.(type) {
	case message.Stop:
		t.run.srv.mu.Lock()
		stopped := t.run.stopped
		t.run.srv.mu.Unlock()
		if stopped {
			t.cancel(&evicted{fleet.Unfinished})
			return
		}
		t.stop()
	case message.Evict:
		t.run.srv.recordEviction(t.peer.Node(), m.After)
		t.cancel(&evicted{m})
	default:
		t.send(msg)
	}
}

// stop ends the session because the run is over.
func (t *workerHandle) stop() {
	t.send(message.Stop{})
	t.cancel(errOver)
}

// Close implements fleet.WorkerHandle. The worker stops if the run is over; otherwise it may return to the process that
// resumes the run.
func (t *workerHandle) Close() {
	s := t.run.srv
	s.mu.Lock()
	over := t.run.over
	s.mu.Unlock()
	if over {
		t.stop()
	} else {
		t.cancel(&evicted{fleet.Unfinished})
	}
}

// send encodes and sends a message. A failure ends the session.
func (t *workerHandle) send(msg any) {
	m, err := encode(msg)
	if err == nil {
		err = t.peer.Send(m)
	}
	if err != nil {
		t.cancel(fmt.Errorf("send it %T: %w", msg, err))
	}
}

func encode(msg any) (wire.Message, error) {
	kind, body, err := message.Encode(msg)
	return wire.Message{Kind: kind, Body: body}, err
}

// serve runs the worker's session until it ends, then closes the connection. A panic while handling a message ends this
// session alone.
func (t *workerHandle) serve() {
	t.run.srv.mu.Lock()
	committed := t.run.committed
	t.run.srv.mu.Unlock()
	t.send(message.Setup{Config: t.run.config, Members: t.run.members, Committed: committed})
	err := recoverFault(t.run.fleet.Fault, t.receive)
	t.files.discard()
	t.run.remove(t, err)
	a, isAway := errors.AsType[*evicted](err)
	switch {
	case t.peer.Err() != nil:
		t.peer.Close("")
	case isAway:
		sendEviction(t.peer, a.Evict)
	case errors.Is(err, errOver):
		leave(t.peer, err.Error())
	default:
		t.peer.Cut(err.Error())
	}
	t.cancel(nil)
}

// sendEviction tells a worker why it is evicted and whether it may return, and ends the connection.
func sendEviction(p *quic.Peer, a message.Evict) {
	if m, err := encode(a); err == nil && p.Send(m) != nil {
		return // the worker is gone already
	}
	leave(p, a.Why)
}

// leave closes a connection with a reason that the peer receives.
func leave(p *quic.Peer, reason string) {
	ctx, cancel := context.WithTimeout(context.Background(), goodbyeTimeout)
	defer cancel()
	_ = p.Leave(ctx, reason) // the peer is gone in any case
}

// recoverFault turns a panic in f into an error and passes its stack to keep, for a bug report.
func recoverFault(keep func(what any, stack []byte), f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			keep(r, debug.Stack())
			err = fmt.Errorf("its message caused a bug in brood: %v; please report it", r)
		}
	}()
	return f()
}

// receive handles the worker's messages until the session ends, and returns why.
func (t *workerHandle) receive() error {
	for {
		m, err := t.peer.Receive(t.ctx)
		if t.ctx.Err() != nil {
			return context.Cause(t.ctx)
		}
		if err != nil {
			return err
		}
		msg, err := message.Decode(m.Kind, m.Body)
		if err == nil {
			err = t.handle(msg)
		}
		if err != nil {
			return err
		}
	}
}

// handle processes a message. An error is a violation of the protocol, which ends the session.
func (t *workerHandle) handle(msg any) error {
	switch m := msg.(type) {
	case message.Report:
		return t.handleReport(m)
	case message.Telemetry:
		if m.Worker != t.id {
			return fmt.Errorf("it sends as worker %d", m.Worker)
		}
		return t.handleTelemetry(m)
	case message.Get:
		t.send(t.files.serve(m))
		return nil
	case message.Piece:
		return t.storePiece(m)
	default:
		return fmt.Errorf("a worker may not send %T", msg)
	}
}

// maxMachine is the maximum number of bytes of the name of a worker's machine.
const maxMachine = 64

// handleReport passes a report to the core. Before the worker has joined, only Ready of epoch 0 is allowed, which makes
// it join.
func (t *workerHandle) handleReport(r message.Report) error {
	if r.Sender() == t.id {
		switch m := r.(type) {
		case message.Ready:
			if m.Epoch == 0 && t.joined {
				return errors.New("it reports twice that it is prepared")
			}
			if m.Epoch == 0 {
				if n := len(m.Machine); n > maxMachine {
					return fmt.Errorf("the name of its machine has %d bytes: at most %d", n, maxMachine)
				}
				t.run.join(t, m)
				return nil
			}
		case message.Leaving:
			if !t.joined {
				return errOver // it hosts no members yet
			}
		}
	}
	if r.Sender() != t.id || !t.joined {
		return fmt.Errorf("it sends as worker %d", r.Sender())
	}
	if err := t.checkReply(r); err != nil {
		return err
	}
	t.run.fleet.Report(r)
	return nil
}

// checkReply requires that a reply answers an order: at most one for each plan, grant and save, and Saved only for the
// file that was received.
func (t *workerHandle) checkReply(msg message.Report) error {
	if _, ok := msg.(message.Leaving); ok {
		if t.leaving {
			return errors.New("it reports twice that it leaves")
		}
		t.leaving = true
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pendingReplies--; t.pendingReplies < 0 {
		return fmt.Errorf("it sent %T without an order", msg)
	}
	if m, ok := msg.(message.Saved); ok && m.Err == "" {
		path := session.CheckpointFile(m.At, m.Epoch, t.id)
		if len(m.Files) != 1 || t.lastFile == nil || m.Files[0] != *t.lastFile || t.lastFile.Path != path {
			return fmt.Errorf("it reports that it saved %.200q, and transferred %+v", fmt.Sprint(m.Files), t.lastFile)
		}
		return checkSignature(m.Signature, t.peer.Node(), t.lastSave, *t.lastFile)
	}
	return nil
}

// checkSignature requires the signature of a worker's key under a file that it was ordered to save.
func checkSignature(s event.Signature, worker wire.NodeID, order message.Save, f event.File) error {
	if s.Node() != worker || !s.Signs(event.Statement(order.At, order.Epoch, order.Hash, f)) {
		return fmt.Errorf("it saved %q without a signature of its key", f.Path)
	}
	return nil
}

// storePiece stores a piece of a checkpoint file that this worker was ordered to save.
func (t *workerHandle) storePiece(p message.Piece) error {
	t.mu.Lock()
	order, ok := t.saves[p.Path]
	t.mu.Unlock()
	if !ok {
		return fmt.Errorf("it was not ordered to save the file %q", p.Path)
	}
	if p.Total > order.Most {
		return fmt.Errorf("its file %q has %d bytes; its members take at most %d", p.Path, p.Total, order.Most)
	}
	whole, kept, err := t.files.append(p)
	if err != nil {
		return err
	}
	if whole {
		t.mu.Lock()
		delete(t.saves, p.Path)
		t.lastSave = order
		t.lastFile = &event.File{Path: p.Path, Digest: t.files.digest(), Bytes: p.Total}
		t.mu.Unlock()
	}
	t.send(kept)
	return nil
}
