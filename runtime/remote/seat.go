package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"brood/runtime/message"
	"brood/runtime/session"
	"brood/transport/quic"
	"brood/transport/wire"
)

// seat is a worker of another process, as the coordinator sees it. It implements fleet.Seat.
type seat struct {
	srv  *Server
	job  *job
	peer *quic.Peer
	id   int

	ctx    context.Context // ends with the server, by Close, or when the worker breaks a rule
	cancel context.CancelCauseFunc
	seated bool // guarded by srv.mu

	mu    sync.Mutex
	asked map[string]bool // checkpoint files that it was told to save
	shelf shelf           // used by attend alone
	since time.Time
	links linkRates
}

// Polite ends of a seat.
var (
	errPutOut = errors.New("the run goes on without it")
	errOver   = errors.New("the run is over")
	errEnds   = errors.New("the coordinator ends before the run does")
)

// farewell is how long a goodbye may take.
const farewell = 2 * time.Second

func newSeat(s *Server, j *job, p *quic.Peer, id int) *seat {
	t := &seat{srv: s, job: j, peer: p, id: id, asked: map[string]bool{}, since: time.Now(), shelf: shelf{dir: j.dir}}
	t.ctx, t.cancel = context.WithCancelCause(s.ctx)
	return t
}

func (t *seat) String() string {
	return fmt.Sprintf("worker %d (%s at %s)", t.id, t.peer.Hello().Name, t.peer.Address())
}

// Post sends a message of the core.
func (t *seat) Post(msg any) {
	if save, ok := msg.(message.Save); ok {
		t.mu.Lock()
		t.asked[session.CheckpointFile(save.At, save.Epoch, t.id)] = true
		t.mu.Unlock()
	}
	t.send(msg)
	if _, stop := msg.(message.Stop); stop {
		t.cancel(errOver)
	}
}

// Close ends the worker.
func (t *seat) Close() { t.cancel(errPutOut) }

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

// attend hears the worker until it is gone.
func (t *seat) attend() {
	t.send(message.Setup{Config: t.job.config, Members: t.job.members})
	err := t.hear()
	t.shelf.drop()
	t.srv.leave(t, err)
	switch {
	case t.peer.Err() != nil:
		t.peer.Close("")
	case errors.Is(err, errPutOut), errors.Is(err, errOver), errors.Is(err, errEnds):
		ctx, cancel := context.WithTimeout(context.Background(), farewell)
		defer cancel()
		_ = t.peer.Leave(ctx, err.Error()) // gone either way
	default:
		t.peer.Cut(err.Error())
	}
	t.cancel(nil)
}

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
	var from int
	switch m := msg.(type) {
	case message.Ready:
		if from = m.Worker; from == t.id && m.Epoch == 0 {
			if t.seated {
				return errors.New("it says twice that it is prepared")
			}
			t.srv.sit(t)
			return nil
		}
	case message.Done:
		from = m.Worker
	case message.Failed:
		from = m.Worker
	case message.Saved:
		from = m.Worker
	case message.Leaving:
		if from = m.Worker; from == t.id && !t.seated {
			return errOver // it has nothing to hand over
		}
	case message.Telemetry:
		if m.Worker != t.id {
			return fmt.Errorf("it speaks as worker %d", m.Worker)
		}
		t.mu.Lock()
		t.links.take(m, time.Now())
		t.mu.Unlock()
		return nil
	case message.Get:
		t.send(t.shelf.give(m))
		return nil
	case message.Piece:
		return t.keep(m)
	default:
		return fmt.Errorf("a worker may not send %T", msg)
	}
	if from != t.id || !t.seated {
		return fmt.Errorf("it speaks as worker %d", from)
	}
	t.job.fleet.Report(msg)
	return nil
}

// keep takes a piece of a checkpoint that this worker was told to save.
func (t *seat) keep(p message.Piece) error {
	t.mu.Lock()
	ok := t.asked[p.Path]
	t.mu.Unlock()
	if !ok {
		return fmt.Errorf("it was not asked for the file %q", p.Path)
	}
	whole, kept, err := t.shelf.keep(p)
	if err != nil {
		return err
	}
	if whole {
		t.mu.Lock()
		delete(t.asked, p.Path)
		t.mu.Unlock()
	}
	t.send(kept)
	return nil
}
