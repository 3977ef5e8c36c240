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
	"brood/transport/quic"
	"brood/transport/wire"
)

// seat is a worker of another process, as the coordinator sees it. It implements fleet.Seat.
type seat struct {
	run  *run
	peer *quic.Peer
	id   int

	ctx    context.Context // ends with the run, by Close, or when the worker breaks a rule
	cancel context.CancelCauseFunc
	seated bool // under the server's mu
	came   time.Time

	mu    sync.Mutex
	asked map[string]int64 // checkpoint files that it was told to save, and the bytes that they may have
	owes  int              // replies to what it was told, at most
	kept  *event.File      // the newest of the asked files that is here
	since time.Time
	links linkRates

	machine   map[event.Measure]float64 // what it told of it, and when
	machineAt time.Time

	// Used by attend alone.
	shelf  shelf
	leaves bool
	told   bucket // of telemetry
}

// maxOwed replies may be on their way when a worker is told to drop what it is doing: to grants, a save, and a plan for
// each of those who left one after the other.
const maxOwed = 64

// errOver ends a seat politely.
var errOver = errors.New("the run is over")

// away ends a seat: the worker is told why, and whether it may come back.
type away struct{ message.Away }

func (a *away) Error() string { return a.Why }

// farewell is how long a goodbye may take.
const farewell = 2 * time.Second

func newSeat(r *run, p *quic.Peer, id int) *seat {
	t := &seat{run: r, peer: p, id: id, asked: map[string]int64{}, came: time.Now(), since: time.Now(), shelf: shelf{dir: r.dir}}
	t.ctx, t.cancel = context.WithCancelCause(r.ctx)
	return t
}

func (t *seat) String() string {
	text := fmt.Sprintf("worker %d (%s at %s)", t.id, t.peer.Hello().Name, t.peer.Address())
	if t.run.srv.cfg.Series {
		text += " of " + filepath.Base(t.run.dir)
	}
	return text
}

// Post sends a message of the core.
func (t *seat) Post(msg message.Order) {
	t.mu.Lock()
	switch m := msg.(type) {
	case message.Save:
		t.asked[session.CheckpointFile(m.At, m.Epoch, t.id)] = m.Most
		t.owes++
	case message.Plan, message.Grant:
		t.owes++
	case message.Abort:
		t.owes = min(t.owes, maxOwed) // what is on its way
	}
	t.mu.Unlock()
	switch m := msg.(type) {
	case message.Stop:
		t.stop()
	case message.Away:
		t.run.srv.sent(t.peer.Node(), m.After)
		t.cancel(&away{m})
	default:
		t.send(msg)
	}
}

// stop tells the worker that the run is over.
func (t *seat) stop() {
	t.send(message.Stop{})
	t.cancel(errOver)
}

// Close ends the worker when the fleet does: the run is over, or another process may go on with it.
func (t *seat) Close() {
	s := t.run.srv
	s.mu.Lock()
	over := t.run.over
	s.mu.Unlock()
	if over {
		t.stop()
	} else {
		t.cancel(&away{fleet.Unfinished})
	}
}

func (t *seat) send(msg any) {
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

// attend hears the worker until it is gone. A fault in handling it ends the seat, and nothing else.
func (t *seat) attend() {
	t.send(message.Setup{Config: t.run.config, Members: t.run.members})
	err := surely(t.run.fleet.Fault, t.hear)
	t.shelf.drop()
	t.run.leave(t, err)
	a, isAway := errors.AsType[*away](err)
	switch {
	case t.peer.Err() != nil:
		t.peer.Close("")
	case isAway:
		sendAway(t.peer, a.Away)
	case errors.Is(err, errOver):
		leave(t.peer, err.Error())
	default:
		t.peer.Cut(err.Error())
	}
	t.cancel(nil)
}

// sendAway tells a worker why it is sent away and whether it may come back, and ends the connection.
func sendAway(p *quic.Peer, a message.Away) {
	if m, err := encode(a); err == nil && p.Send(m) != nil {
		return // it is gone
	}
	leave(p, a.Why)
}

// leave says goodbye.
func leave(p *quic.Peer, reason string) {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	_ = p.Leave(ctx, reason) // gone either way
}

// surely turns a mistake of ours in f into an error, and keeps its stack for the report.
func surely(keep func(what any, stack []byte), f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			keep(r, debug.Stack())
			err = fmt.Errorf("what it sent cannot be handled, by a mistake of brood's own: %v; report this", r)
		}
	}()
	return f()
}

// hear takes what the worker says until it is gone.
func (t *seat) hear() error {
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
			err = t.take(msg)
		}
		if err != nil {
			return err
		}
	}
}

// take obeys a message. An error is a broken rule.
func (t *seat) take(msg any) error {
	switch m := msg.(type) {
	case message.Report:
		return t.reports(m)
	case message.Telemetry:
		if m.Worker != t.id {
			return fmt.Errorf("it speaks as worker %d", m.Worker)
		}
		return t.measured(m)
	case message.Get:
		t.send(t.shelf.give(m))
		return nil
	case message.Piece:
		return t.keep(m)
	default:
		return fmt.Errorf("a worker may not send %T", msg)
	}
}

// reports hands a report on to the core. Before the worker is seated it may only say that it is prepared.
func (t *seat) reports(r message.Report) error {
	if r.Sender() == t.id {
		switch m := r.(type) {
		case message.Ready:
			if m.Epoch == 0 && t.seated {
				return errors.New("it says twice that it is prepared")
			}
			if m.Epoch == 0 {
				t.run.sit(t)
				return nil
			}
		case message.Leaving:
			if !t.seated {
				return errOver // it has nothing to hand over
			}
		}
	}
	if r.Sender() != t.id || !t.seated {
		return fmt.Errorf("it speaks as worker %d", r.Sender())
	}
	if err := t.answers(r); err != nil {
		return err
	}
	t.run.fleet.Report(r)
	return nil
}

// answers holds a reply against what the worker was told: one at most to each plan, grant and save, and a file that
// came.
func (t *seat) answers(msg message.Report) error {
	if _, ok := msg.(message.Leaving); ok {
		if t.leaves {
			return errors.New("it says twice that it leaves")
		}
		t.leaves = true
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.owes--; t.owes < 0 {
		return fmt.Errorf("it answers with %T, and was asked nothing", msg)
	}
	if m, ok := msg.(message.Saved); ok && m.Err == "" {
		path := session.CheckpointFile(m.At, m.Epoch, t.id)
		if len(m.Files) != 1 || t.kept == nil || m.Files[0] != *t.kept || t.kept.Path != path {
			return fmt.Errorf("it says that it saved %.200q, and brought %+v", fmt.Sprint(m.Files), t.kept)
		}
	}
	return nil
}

// keep takes a piece of a checkpoint that this worker was told to save.
func (t *seat) keep(p message.Piece) error {
	t.mu.Lock()
	most, ok := t.asked[p.Path]
	t.mu.Unlock()
	if !ok {
		return fmt.Errorf("it was not asked for the file %q", p.Path)
	}
	if p.Total > most {
		return fmt.Errorf("its file %q has %d bytes, and what it holds takes %d at most", p.Path, p.Total, most)
	}
	whole, kept, err := t.shelf.keep(p)
	if err != nil {
		return err
	}
	if whole {
		t.mu.Lock()
		delete(t.asked, p.Path)
		t.kept = &event.File{Path: p.Path, Digest: t.shelf.digest(), Bytes: p.Total}
		t.mu.Unlock()
	}
	t.send(kept)
	return nil
}
