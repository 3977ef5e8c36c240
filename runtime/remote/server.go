// Package remote lets workers of other processes take part in a run, over QUIC: the coordinator's [Server] and the worker's
// [Work]. What they say to each other is runtime/message; tensors go from worker to worker and never through the coordinator,
// but for checkpoints. It imports transport and the packages of runtime that a run is made of.
//
//	srv, err := remote.Listen(remote.Config{Key: key, Address: ":4433", Enrol: 2})
//	run, err := host.Serve(job, sess, nil, watch, srv.Doors(0))
//	err = srv.Open(run)                 // workers with the URL srv.Join(wire.Worker) come in from here on
//	exit, err := run.Train(ctx)
//	err = srv.Close()                   // after the run: says goodbye to the workers
//
// In the order of a worker's life: Hello and Welcome (its number), Setup, its own preparation, Ready of epoch 0, the roster
// to everybody, its seat in the fleet, and then what the coordinator's core says, until Stop.
package remote

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/fleet"
	"brood/runtime/host"
	"brood/runtime/message"
	"brood/transport/identity"
	"brood/transport/quic"
	"brood/transport/wire"
)

// Config is what a server needs.
type Config struct {
	Key      *identity.Key // nil: that of Resume, else a new one
	Address  string        // HOST:PORT to listen on; "" is that of Resume
	Resume   string        // directory of a session: its workers and visitors come back to this server; "" for a new run
	Enrol    int           // workers that the join URL lets in; 0: none may come
	Guests   int           // viewers, and operators, that each of their URLs lets in
	Software string
	Note     func(string) // told who comes and goes; must not wait; may be nil
}

// Server lets workers in. Its methods may be called from any goroutine.
type Server struct {
	cfg   Config
	run   wire.RunID
	gate  *identity.Gate
	token map[wire.Role]string
	node  *quic.Node
	mesh  *quic.Mesh

	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	opened   sync.Once
	mu       sync.Mutex
	written  []byte // what keep wrote last
	dir      string // where keep writes; "" before Open
	session  string // directory of the session that visitors see; "" before it is there
	visitors map[*quic.Peer]struct{}
	shapes   []event.Link              // in the order in which they were set
	job      *job                      // nil before Open
	admitted map[wire.NodeID]admission // welcomed, not accepted yet
	seats    map[wire.NodeID]*seat     // accepted
	roster   wire.Roster
}

// job is what workers take part in.
type job struct {
	fleet   *fleet.Fleet
	config  event.Config
	members int
	dir     string
}

type admission struct {
	worker int
	at     time.Time
}

// defaultAddress is where a server listens that was told no other.
const defaultAddress = ":4433"

// arrival is how long a worker may take from Welcome to its acceptance.
const arrival = 10 * time.Second

// Listen opens the socket. Workers are told to come back later until Open.
func Listen(cfg Config) (*Server, error) {
	if cfg.Note == nil {
		cfg.Note = func(string) {}
	}
	s := &Server{cfg: cfg, gate: identity.NewGate(time.Now), token: map[wire.Role]string{}, admitted: map[wire.NodeID]admission{}, seats: map[wire.NodeID]*seat{}, visitors: map[*quic.Peer]struct{}{}}
	if err := s.remember(); err != nil {
		return nil, err
	}
	var err error
	for role, uses := range map[wire.Role]int{wire.Worker: cfg.Enrol, wire.Viewer: cfg.Guests, wire.Operator: cfg.Guests} {
		if uses > 0 {
			if s.token[role], err = s.gate.Issue(role, uses, 0); err != nil {
				return nil, err
			}
		}
	}
	allow := func(r wire.Role, kind uint16) bool { return r == wire.Worker && message.FromWorker(kind) }
	if s.node, err = quic.Listen(quic.Config{Key: s.cfg.Key, Address: s.cfg.Address, Admit: s.admit, Allow: allow}); err != nil {
		return nil, err
	}
	if s.mesh, err = s.node.Mesh(s.run); err != nil {
		return nil, errors.Join(err, s.node.Close())
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s, nil
}

// remember gives the server its key, its run and whom it lets in: those of the session that it resumes, or new ones.
func (s *Server) remember() (err error) {
	if s.cfg.Resume != "" {
		key, k, err := recall(s.cfg.Resume)
		if err != nil {
			return err
		}
		s.cfg.Key = cmp.Or(key, s.cfg.Key)
		if k != nil {
			s.run = k.Run
			s.gate.Restore(k.Gate)
			s.cfg.Address = cmp.Or(s.cfg.Address, k.Listen)
		}
	}
	s.cfg.Address = cmp.Or(s.cfg.Address, defaultAddress)
	if s.run == (wire.RunID{}) {
		if _, err := rand.Read(s.run[:]); err != nil {
			return fmt.Errorf("name the run: %w", err)
		}
	}
	if s.cfg.Key == nil {
		s.cfg.Key, err = identity.New()
	}
	return err
}

// Join is the URL that lets peers of a role in; "" where none does.
func (s *Server) Join(role wire.Role) string {
	if s.token[role] == "" {
		return ""
	}
	return s.url(s.token[role])
}

func (s *Server) url(token string) string {
	return identity.Join{Address: reachable(s.node.Address()), Token: token, Server: s.node.ID()}.String()
}

// reachable names an address that others can dial: where the socket listens everywhere, the machine's first public one.
func reachable(a net.Addr) string {
	u, ok := a.(*net.UDPAddr)
	if !ok || !u.IP.IsUnspecified() {
		return a.String()
	}
	best := "127.0.0.1"
	found, _ := net.InterfaceAddrs() // without them there is nobody to reach it anyway
	for _, x := range found {
		if n, ok := x.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			best = n.IP.String()
			break
		}
	}
	return net.JoinHostPort(best, fmt.Sprint(u.Port))
}

// Doors are those of a run that hosts so many workers in this process too.
func (s *Server) Doors(workers int) host.Doors {
	return host.Doors{Workers: workers, Link: s.local, Shape: s.Shape, Fleet: s.Fleet, Gate: s.Gate, Overhead: func(id int) func() int64 {
		if id > 0 {
			return nil // all of this process share one socket: its bytes are counted once
		}
		return func() int64 { return s.mesh.Totals().Overhead() }
	}}
}

// local puts a worker of this process on the roster.
func (s *Server) local(id int) optim.Link {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enlist(wire.Seat{Index: uint32(id), Node: s.node.ID(), Addresses: []string{reachable(s.node.Address())}, Name: "coordinator"})
	return s.mesh.Link(uint32(id))
}

// enlist puts a worker on the roster, in place of itself, and tells everybody. The caller holds mu.
func (s *Server) enlist(w wire.Seat) {
	s.roster = append(slices.DeleteFunc(slices.Clone(s.roster), func(o wire.Seat) bool { return o.Index == w.Index }), w)
	slices.SortFunc(s.roster, func(a, b wire.Seat) int { return int(int64(a.Index) - int64(b.Index)) })
	s.tell()
}

func (s *Server) tell() {
	m, err := s.roster.Message()
	if err == nil {
		err = s.mesh.SetRoster(s.roster)
	}
	if err != nil {
		s.cfg.Note("the roster cannot be told: " + err.Error())
		return
	}
	for _, t := range s.seats {
		if t.seated {
			_ = t.peer.Send(m) // who is gone is noticed where it is listened to
		}
	}
	s.shapeHere()
}

// Open lets workers in to a run that is ready to train, and whoever has a URL to look at it. What makes this server the one
// that they know is kept beside the session.
func (s *Server) Open(r *host.Run) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.job = &job{r.Fleet(), r.Job.Config, r.Job.Members, r.Session.Dir()}
	s.dir, s.session = r.Session.Dir(), r.Session.Dir()
	if err := s.cfg.Key.Save(filepath.Join(s.dir, keyFile)); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := s.keep(); err != nil {
		return err
	}
	s.attend()
	return nil
}

// attend takes in those who are welcomed, until the server closes.
func (s *Server) attend() {
	s.opened.Do(func() {
		s.wg.Go(func() {
			for {
				p, err := s.node.Accept(s.ctx)
				if err != nil {
					return // it closes
				}
				s.take(p)
			}
		})
	})
}

func (s *Server) take(p *quic.Peer) {
	if p.Role() == wire.Worker {
		if t := s.accept(p); t != nil {
			s.wg.Go(t.attend)
		} else {
			p.Close("come again")
		}
		return
	}
	s.mu.Lock()
	if s.gate.Revoked(p.Node()) { // while it came in
		s.mu.Unlock()
		p.Close("the key was revoked")
		return
	}
	s.visitors[p] = struct{}{}
	dir := s.session
	s.mu.Unlock()
	s.wg.Go(func() { s.receive(p, dir) })
}

// admit decides on a Hello.
func (s *Server) admit(_ context.Context, r quic.Request) (wire.Welcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Hello.Role != wire.Worker {
		return s.admitVisitor(r)
	}
	if s.job == nil && s.session != "" {
		return wire.Welcome{}, wire.Refused{Code: wire.CodeRole, Reason: "this run takes no workers, since it was not begun by brood serve: it lets people look only"}
	}
	if s.job == nil {
		return wire.Welcome{}, wire.Refused{Code: wire.CodeBusy, Reason: "the run is being prepared: it is tried again", Retry: true}
	}
	h, c := r.Hello, s.job.config
	if kinds := strings.Split(h.Kernels, ","); h.Role == wire.Worker && !slices.Contains(kinds, c.Kernels) {
		return wire.Welcome{}, wire.Refused{Code: wire.CodeRefused, Reason: fmt.Sprintf("this run computes with kernels %s and your machine has %s: start the run with kernels that both have (BROOD_CPU, BROOD_ENGINE)", c.Kernels, strings.Join(kinds, ", "))}
	}
	for _, a := range h.Listen {
		if _, _, err := net.SplitHostPort(a); err != nil || len(h.Listen) > 8 {
			return wire.Welcome{}, wire.Refused{Code: wire.CodeRefused, Reason: fmt.Sprintf("%q is no HOST:PORT where other workers could reach you: see --advertise", a)}
		}
	}
	if h.Run != (wire.RunID{}) && h.Run != s.run {
		return wire.Welcome{}, wire.Refused{Code: wire.CodeRun, Reason: fmt.Sprintf("run %s is over and this is run %s: ask for its join URL", h.Run, s.run)}
	}
	if before, ok := s.admitted[r.Node]; ok && time.Since(before.at) < arrival {
		return wire.Welcome{}, wire.Refused{Code: wire.CodeBusy, Reason: "the same key is coming in just now: it is tried again", Retry: true}
	}
	if err := s.gate.Admit(r.Node, h.Role, h.Token); err != nil {
		return wire.Welcome{}, err
	}
	if d, ok := h.Data[c.Data]; ok && d != c.Digest {
		return wire.Welcome{}, wire.Refused{Code: wire.CodeData, Reason: fmt.Sprintf("this run trains on %s with digest %s and yours has %s: copy the files", c.Data, c.Digest, d)}
	}
	if err := s.keep(); err != nil {
		return wire.Welcome{}, wire.Refused{Code: wire.CodeBusy, Reason: err.Error(), Retry: true}
	}
	id := s.job.fleet.Reserve()
	s.admitted[r.Node] = admission{id, time.Now()}
	return wire.Welcome{Run: s.run, Worker: uint32(id), Software: s.cfg.Software}, nil
}

// admitVisitor decides on somebody who wants to look. The caller holds mu.
func (s *Server) admitVisitor(r quic.Request) (wire.Welcome, error) {
	if s.session == "" {
		return wire.Welcome{}, wire.Refused{Code: wire.CodeBusy, Reason: "the run is being prepared: try again in a moment", Retry: true}
	}
	own := 0
	for p := range s.visitors {
		if p.Node().Equal(r.Node) {
			own++
		}
	}
	if len(s.visitors) >= maxVisitors || own >= maxOfOneKey {
		return wire.Welcome{}, wire.Refused{Code: wire.CodeBusy, Reason: fmt.Sprintf("%d are looking already, %d of them by this key", len(s.visitors), own), Retry: true}
	}
	if err := s.gate.Admit(r.Node, r.Hello.Role, r.Hello.Token); err != nil {
		return wire.Welcome{}, err
	}
	if err := s.keep(); err != nil {
		return wire.Welcome{}, wire.Refused{Code: wire.CodeBusy, Reason: err.Error(), Retry: true}
	}
	return wire.Welcome{Run: s.run, Worker: wire.Nobody, Software: s.cfg.Software}, nil
}

// maxVisitors may look at once, and so many of one key.
const (
	maxVisitors = 256
	maxOfOneKey = 16
)

// accept gives a peer that was welcomed its seat. One of the same key that is still there is cut off: it has come again.
func (s *Server) accept(p *quic.Peer) *seat {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.admitted[p.Node()]
	if !ok {
		return nil
	}
	delete(s.admitted, p.Node())
	if old := s.seats[p.Node()]; old != nil {
		old.cancel(errors.New("it came again"))
	}
	t := newSeat(s, s.job, p, a.worker)
	s.seats[p.Node()] = t
	return t
}

// sit makes a worker that is prepared part of the run. Whoever may be told to talk to it knows where it is.
func (s *Server) sit(t *seat) {
	s.mu.Lock()
	t.seated = true
	h := t.peer.Hello()
	for _, l := range s.shapes {
		t.shape(l)
	}
	s.enlist(wire.Seat{Index: uint32(t.id), Node: t.peer.Node(), Addresses: append(slices.Clone(h.Listen), t.peer.Address().String()), Name: h.Name})
	s.mu.Unlock() // the fleet's loop may want a link just now
	s.cfg.Note(fmt.Sprintf("%s joined", t))
	s.job.fleet.Seat(t.id, t)
}

// leave takes a worker off the roster.
func (s *Server) leave(t *seat, why error) {
	s.mu.Lock()
	if s.seats[t.peer.Node()] == t {
		delete(s.seats, t.peer.Node())
	}
	was := t.seated
	t.seated = false
	if was && s.ctx.Err() == nil {
		s.roster = slices.DeleteFunc(slices.Clone(s.roster), func(w wire.Seat) bool { return w.Index == uint32(t.id) })
		s.tell()
	}
	s.mu.Unlock()
	if was {
		s.job.fleet.Gone(t.id, why.Error())
	}
	if !errors.Is(why, errOver) && s.ctx.Err() == nil {
		s.cfg.Note(fmt.Sprintf("%s is gone: %v", t, why))
	}
}

// Close says goodbye to the workers and frees the socket. It returns when every goroutine of the server has ended.
func (s *Server) Close() error {
	s.cancel(errEnds)
	s.wg.Wait()
	return s.node.Close()
}
