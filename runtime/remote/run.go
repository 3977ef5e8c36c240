package remote

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/fleet"
	"brood/runtime/host"
	"brood/runtime/session"
	"brood/transport/quic"
	"brood/transport/wire"
)

// run is what workers take part in.
type run struct {
	srv     *Server
	id      wire.RunID
	dir     string // of its session
	config  event.Config
	members int
	wants   int // workers of other processes, in a series
	mesh    *quic.Mesh
	fleet   *fleet.Fleet

	ctx    context.Context // ends with the run
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	ends   sync.Once

	// Under srv.mu.
	over   bool                  // its last record is in the log
	closed bool                  // nobody else gets a seat
	shapes []event.Link          // in the order in which they were set
	seats  map[wire.NodeID]*seat // accepted
	roster wire.Roster
}

// Serve is host.Serve for a run that workers come to through this server, besides so many in this process: they are let
// in from now on, until Close of the run says goodbye to them.
//
// A server serves one run, which whoever has a URL may join, or look at, and keeps who it is beside the session. One of
// a series may serve several, at once and one after another. Each takes as many workers as its job waits for, and
// another where one is lost. A worker whose run is over goes on with the run that lacks fewest, of these with the
// oldest, and asks again while none lacks any, until the server closes. A worker holds nothing of a run that it was cut
// off from, so it does not matter which it comes back to: ids of runs are new each time.
func (s *Server) Serve(j *host.Job, sess *session.Session, from *host.Restored, watch func(event.Record), workers int) (*host.Run, error) {
	r := &run{srv: s, id: s.id, dir: sess.Dir(), wants: j.Workers - workers, seats: map[wire.NodeID]*seat{}}
	if r.id == (wire.RunID{}) {
		if _, err := rand.Read(r.id[:]); err != nil {
			return nil, fmt.Errorf("name the run: %w", err)
		}
	}
	var err error
	if r.mesh, err = s.node.Mesh(r.id); err != nil {
		return nil, err
	}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	out, err := host.Serve(j, sess, from, r.watching(watch), r.hosting(workers))
	if err != nil {
		r.close()
		return nil, err
	}
	r.fleet, r.config, r.members = out.Fleet(), j.Config, j.Members
	if err := s.open(r); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
}

// open lets workers in to a run that is ready to train, and whoever has a URL to look at it. Until then all of them are
// told to try again.
func (s *Server) open(r *run) error {
	if !s.cfg.Series {
		s.mu.Lock()
		s.id = r.id
		s.mu.Unlock()
		if err := s.keepIn(r.dir); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = append(s.runs, r)
	if !s.cfg.Series {
		s.session = r.dir
	}
	return nil
}

// watching notices the end of a run before its workers hear of it: no more go there.
func (r *run) watching(watch func(event.Record)) func(event.Record) {
	return func(rec event.Record) {
		if s := rec.State; s != nil && (s.Phase == event.Finished || s.Phase == event.Stopped || s.Phase == event.Failed) {
			r.srv.mu.Lock()
			r.over = true
			r.srv.mu.Unlock()
		}
		watch(rec)
	}
}

// hosting is that of a run that hosts so many workers in this process too.
func (r *run) hosting(workers int) host.Hosting {
	return host.Hosting{Workers: workers, Link: r.local, Shape: r.shape, Fleet: r.describe, Gate: r.srv.Gate, Close: r.close, Overhead: func(id int) func() int64 {
		if id > 0 {
			return nil // all of this process share one socket: its bytes are counted once
		}
		return func() int64 { return r.mesh.Totals().Overhead() }
	}}
}

// local puts a worker of this process on the roster.
func (r *run) local(id int) optim.Link {
	s := r.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	r.enlist(wire.Contact{Index: uint32(id), Node: s.node.ID(), Addresses: []string{reachable(s.node.Address())}, Name: "coordinator"})
	return r.mesh.Link(uint32(id))
}

// enlist puts a worker on the roster, in place of itself, and tells everybody. The caller holds mu.
func (r *run) enlist(w wire.Contact) {
	r.roster = append(slices.DeleteFunc(slices.Clone(r.roster), func(o wire.Contact) bool { return o.Index == w.Index }), w)
	slices.SortFunc(r.roster, func(a, b wire.Contact) int { return int(int64(a.Index) - int64(b.Index)) })
	r.tell()
}

func (r *run) tell() {
	m, err := r.roster.Message()
	if err == nil {
		err = r.mesh.SetRoster(r.roster)
	}
	if err != nil {
		r.srv.cfg.Note("the roster cannot be told: " + err.Error())
		return
	}
	for _, t := range r.seats {
		if t.seated {
			_ = t.peer.Send(m) // who is gone is noticed where it is listened to
		}
	}
	r.shapeHere()
}

// sit makes a worker that is prepared part of the run. Whoever may be told to talk to it knows where it is.
func (r *run) sit(t *seat) {
	s := r.srv
	s.mu.Lock()
	t.seated = true
	s.gate.Keep(t.peer.Node())
	h := t.peer.Hello()
	for _, l := range r.shapes {
		t.shape(l)
	}
	r.enlist(wire.Contact{Index: uint32(t.id), Node: t.peer.Node(), Addresses: append(slices.Clone(h.Listen), t.peer.Address().String()), Name: h.Name})
	s.mu.Unlock() // the fleet's loop may want a link just now
	s.cfg.Note(fmt.Sprintf("%s joined", t))
	r.fleet.Seat(t.id, t.peer.Node().String(), t)
}

// leave takes a worker off the roster.
func (r *run) leave(t *seat, why error) {
	s := r.srv
	s.mu.Lock()
	was := t.seated
	if r.seats[t.peer.Node()] == t {
		delete(r.seats, t.peer.Node())
		if _, again := s.admitted[t.peer.Node()]; !was && !again { // it took no part: another may, by the same URL
			s.gate.Return(t.peer.Node(), wire.Worker)
			if err := s.keep(); err != nil {
				s.cfg.Note(err.Error())
			}
		}
	}
	t.seated = false
	if was && r.ctx.Err() == nil {
		r.roster = slices.DeleteFunc(slices.Clone(r.roster), func(w wire.Contact) bool { return w.Index == uint32(t.id) })
		r.tell()
	}
	if s.cfg.Series && errors.Is(why, errOver) && t.peer.Err() == nil {
		s.due[t.peer.Node()] = time.Now()
	}
	s.mu.Unlock()
	if was {
		r.fleet.Gone(t.id, why.Error())
	}
	if !errors.Is(why, errOver) && r.ctx.Err() == nil {
		s.cfg.Note(fmt.Sprintf("%s is gone: %v", t, why))
	}
}

// close says goodbye to the workers, if the run is over; else they may come back to whoever goes on with it. It returns
// when every goroutine of the run has ended.
func (r *run) close() {
	r.ends.Do(func() {
		s := r.srv
		s.mu.Lock()
		r.closed = true
		if !s.cfg.Series && slices.Contains(s.runs, r) { // else another process may go on with it
			s.over, s.broke = s.over || r.over, !r.over
		}
		s.runs = slices.DeleteFunc(s.runs, func(o *run) bool { return o == r })
		why := error(&away{fleet.Unfinished})
		if s.cfg.Series || r.over {
			why = errOver
			for _, t := range r.seats {
				t.stop()
			}
		}
		s.mu.Unlock()
		r.cancel(why)
		r.wg.Wait()
		r.mesh.Close()
	})
}
