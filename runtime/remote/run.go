package remote

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/fleet"
	"brood/runtime/host"
	"brood/runtime/message"
	"brood/runtime/session"
	"brood/transport/quic"
	"brood/transport/wire"
)

// run is a run that workers of other processes take part in.
type run struct {
	srv       *Server
	id        wire.RunID
	dir       string // of its session
	config    event.Config
	members   int
	wanted    int // remote workers that it needs, in a series
	mesh      *quic.Mesh
	fleet     *fleet.Fleet
	ctx       context.Context // ends with the run
	cancel    context.CancelCauseFunc
	wg        sync.WaitGroup
	closeOnce sync.Once

	// Guarded by srv.mu.
	over    bool                          // its last record is in the log, and no other process continues it
	stopped bool                          // its last record is in the log, and another process will continue it
	closed  bool                          // no more workers are accepted
	shapes  []event.Link                  // ordered from oldest to newest
	handles map[wire.NodeID]*workerHandle // accepted
	roster  wire.Roster
	// the state that workers of the earlier process may hold; nil once the run has continued, from it or from another
	committed *message.Committed
}

// Serve is host.Serve for a run that accepts workers through this server, in addition to the given number of workers in
// this process. It accepts them from now on, until Close of the run ends their sessions.
//
// A server of a single run lets everyone with a URL join or view it, and saves its identity in the session. A server of
// a series may serve several runs, at the same time or in sequence. Each run accepts as many workers as its job waits
// for, and a replacement for one that is lost. A worker whose run is over continues with the run that lacks the fewest
// workers, among equals with the oldest. While no run lacks any, it asks again until the server closes. Each run
// gets a new id, so that a worker that was disconnected may return to any run.
func (s *Server) Serve(
	j *host.Job,
	sess *session.Session,
	from *host.Restored,
	watch func(event.Record),
	workers int,
) (*host.Run, error) {
	r := &run{
		srv:     s,
		id:      s.id,
		dir:     sess.Dir(),
		wanted:  j.Workers - workers,
		handles: map[wire.NodeID]*workerHandle{},
	}
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
	out, err := host.Serve(j, sess, from, r.watchEnd(watch), r.hosting(workers))
	if err != nil {
		r.close()
		return nil, err
	}
	r.fleet, r.config, r.members, r.committed = out.Fleet(), j.Config, j.Members, from.Committed()
	if err := s.open(r); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
}

// open starts to accept workers and clients for a run that is ready to train. Until then the server asks them to retry.
func (s *Server) open(r *run) error {
	if !s.cfg.Series {
		s.mu.Lock()
		s.id = r.id
		s.mu.Unlock()
		if err := s.persistIn(r.dir); err != nil {
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

// KeepWorkers says that the run is about to be stopped and that another process will continue it: its workers wait for
// that process.
func (s *Server) KeepWorkers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keepsWorkers = true
}

// watchEnd wraps watch: it marks the run as over before its workers learn of it, so that no more are sent there.
func (r *run) watchEnd(watch func(event.Record)) func(event.Record) {
	return func(rec event.Record) {
		if s := rec.State; s != nil && s.Phase.Over() {
			r.srv.mu.Lock()
			r.stopped = r.srv.keepsWorkers && s.Phase == event.Stopped
			r.over = !r.stopped
			r.srv.mu.Unlock()
		}
		if rec.Plan != nil {
			r.srv.mu.Lock()
			r.committed = nil
			r.srv.mu.Unlock()
		}
		watch(rec)
	}
}

// hosting returns the hosting of a run that also has the given number of workers in this process.
func (r *run) hosting(workers int) host.Hosting {
	counted := false
	return host.Hosting{
		Workers: workers,
		Link:    r.localLink,
		Shape:   r.shape,
		Fleet:   r.describe,
		Doing:   r.doing,
		Gate:    r.srv.Gate,
		Close:   r.close,
		Overhead: func(id int) func() int64 {
			if counted {
				return nil // the workers of this process share one socket: its bytes are counted once
			}
			counted = true
			return func() int64 { return r.mesh.Totals().Overhead() }
		},
	}
}

// localLink adds a worker of this process to the roster and returns its link.
func (r *run) localLink(id int) collective.Link {
	s := r.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	r.addToRoster(wire.PeerAddress{
		Index:     uint32(id),
		Node:      s.node.ID(),
		Addresses: []string{reachable(s.node.Address())},
		Name:      "coordinator",
	})
	return r.mesh.Link(uint32(id))
}

// addToRoster adds or replaces a worker in the roster and sends the roster to all workers. The caller holds mu.
func (r *run) addToRoster(w wire.PeerAddress) {
	others := slices.DeleteFunc(slices.Clone(r.roster), func(o wire.PeerAddress) bool { return o.Index == w.Index })
	r.roster = append(others, w)
	slices.SortFunc(r.roster, func(a, b wire.PeerAddress) int { return int(int64(a.Index) - int64(b.Index)) })
	r.sendRoster()
}

// sendRoster sends the roster to all workers and applies the shapes of links. The caller holds srv.mu.
func (r *run) sendRoster() {
	m, err := r.roster.Message()
	if err == nil {
		err = r.mesh.SetRoster(r.roster)
	}
	if err != nil {
		r.srv.cfg.Note("cannot send the roster: " + err.Error())
		return
	}
	for _, t := range r.handles {
		if t.joined {
			_ = t.peer.Send(m) // a lost peer is noticed by its receive loop
		}
	}
	r.shapeLocal()
}

// join makes a worker that is prepared part of the run. It extends the roster first, so that every worker knows the
// address of a new one before the core names it.
func (r *run) join(t *workerHandle, ready message.Ready) {
	s := r.srv
	s.mu.Lock()
	t.joined = true
	s.gate.Keep(t.peer.Node())
	h := t.peer.Hello()
	for _, l := range r.shapes {
		t.shape(l)
	}
	r.addToRoster(wire.PeerAddress{
		Index:     uint32(t.id),
		Node:      t.peer.Node(),
		Addresses: append(slices.Clone(h.Listen), t.peer.Address().String()),
		Name:      h.Name,
	})
	s.mu.Unlock() // not held during AddRemote: the fleet's loop may ask for a link
	s.cfg.Note(fmt.Sprintf("%s joined", t))
	r.fleet.AddRemote(t.id, t.peer.Node().String(), ready, t)
}

// remove takes a worker out of the run and the roster and reports it lost to the fleet.
func (r *run) remove(t *workerHandle, why error) {
	s := r.srv
	s.mu.Lock()
	was := t.joined
	if r.handles[t.peer.Node()] == t {
		delete(r.handles, t.peer.Node())
		if _, again := s.admitted[t.peer.Node()]; !was && !again { // it never joined: its use of the URL is returned
			s.gate.Return(t.peer.Node(), wire.Worker)
			if err := s.persist(); err != nil {
				s.cfg.Note(err.Error())
			}
		}
	}
	t.joined = false
	if was && r.ctx.Err() == nil {
		r.roster = slices.DeleteFunc(slices.Clone(r.roster), func(w wire.PeerAddress) bool {
			return w.Index == uint32(t.id)
		})
		r.sendRoster()
	}
	if s.cfg.Series && errors.Is(why, errOver) && t.peer.Err() == nil {
		s.toInform[t.peer.Node()] = time.Now()
	}
	s.mu.Unlock()
	if was {
		r.fleet.Gone(t.id, why.Error())
	}
	if !errors.Is(why, errOver) && r.ctx.Err() == nil {
		s.cfg.Note(fmt.Sprintf("%s is gone: %v", t, why))
	}
}

// close ends the sessions of the workers: for good if the run is over, otherwise so that they may return to the process
// that resumes it. It returns when every goroutine of the run has ended. Later calls do nothing.
func (r *run) close() {
	r.closeOnce.Do(func() {
		s := r.srv
		s.mu.Lock()
		r.closed = true
		if !s.cfg.Series && slices.Contains(s.runs, r) { // another process may resume a single run that is not over
			s.over, s.unfinished = s.over || r.over, !r.over
		}
		s.runs = slices.DeleteFunc(s.runs, func(o *run) bool { return o == r })
		why := error(&evicted{fleet.Unfinished})
		if s.cfg.Series || r.over {
			why = errOver
			for _, t := range r.handles {
				t.stop()
			}
		}
		s.mu.Unlock()
		r.cancel(why)
		r.wg.Wait()
		r.mesh.Close()
	})
}
