// Package remote lets workers of other processes take part in runs, over QUIC: the coordinator's [Server] and the
// worker's [Work]. What they say to each other is runtime/message; tensors go from worker to worker and never through
// the coordinator, but for checkpoints. It imports transport and the packages of runtime that a run is made of.
//
//	srv, err := remote.Listen(remote.Config{Key: key, Address: ":4433", Enrol: 2})
//	run, err := srv.Serve(job, sess, nil, watch, 0) // workers with the URL srv.Join(wire.Worker) come in from here on
//	exit, err := run.Train(ctx)
//	err = run.Close()                               // says goodbye to the workers
//	err = srv.Close()
//
// In the order of a worker's life: Hello and Welcome (its run and its number), Setup, its own preparation, Ready of
// epoch 0, the roster to everybody, its seat in the fleet, and then what the coordinator's core says, until Stop. In a
// [Config.Series] it then says Hello again.
package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"brood/models/usererr"
	"brood/runtime/message"
	"brood/transport/identity"
	"brood/transport/quic"
	"brood/transport/wire"
)

// Config is what a server needs.
type Config struct {
	Key     *identity.Key // nil: that kept in Dir, else a new one
	Address string        // HOST:PORT to listen on; "" is that kept in Dir, else :4433
	// where an earlier server kept who it is: this one is the same to its workers and visitors; "" for a new one
	Dir string
	// several runs, and no visitors: see Serve. It keeps who it is in Dir, which no other process may use
	Series   bool
	Enrol    int // workers that the join URL lets in; 0: none may come
	Guests   int // viewers, and operators, that each of their URLs lets in
	Software string
	Note     func(string) // told who comes and goes; must not wait; may be nil
}

// Server lets workers in. Its methods may be called from any goroutine.
type Server struct {
	cfg   Config
	id    wire.RunID // of its run; in a series each has its own
	gate  *identity.Gate
	token map[wire.Role]string
	node  *quic.Node

	ctx    context.Context // ends with the server
	cancel context.CancelFunc
	wg     sync.WaitGroup
	heard  chan struct{} // holds a token when due may have shrunk

	mu       sync.Mutex
	written  []byte // what keep wrote last
	dir      string // where keep writes; "" is nowhere, yet
	session  string // directory of the session that visitors see; "" before it is there
	visitors map[*quic.Peer]struct{}
	runs     []*run // that workers may join, oldest first
	over     bool   // there will be no other, and workers are told so
	broke    bool   // its run was not over when this process let go of it
	paused   bool   // there will be others, by another server
	admitted map[wire.NodeID]admission
	away     map[wire.NodeID]time.Time // until when workers stay away that were sent
	due      map[wire.NodeID]time.Time // workers of a series that were told, then, to ask again
}

// admission is of a worker that was welcomed and not accepted yet.
type admission struct {
	run    *run
	worker int
	at     time.Time
}

// defaultAddress is where a server listens that was told no other.
const defaultAddress = ":4433"

// arrival is how long a worker may take from Welcome to its acceptance.
const arrival = 10 * time.Second

// Listen opens the socket. Workers are told to come back later until a run is served. Close the server.
func Listen(cfg Config) (*Server, error) {
	if cfg.Note == nil {
		cfg.Note = func(string) {}
	}
	if _, _, err := net.SplitHostPort(cfg.Address); cfg.Address != "" && err != nil {
		return nil, usererr.Errorf("listen on %q: name an address as HOST:PORT", cfg.Address)
	}
	s := &Server{cfg: cfg, gate: identity.NewGate(time.Now), token: map[wire.Role]string{}, heard: make(chan struct{}, 1),
		visitors: map[*quic.Peer]struct{}{}, admitted: map[wire.NodeID]admission{}, due: map[wire.NodeID]time.Time{}, away: map[wire.NodeID]time.Time{}}
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
	if s.node, err = quic.Listen(quic.Config{Key: s.cfg.Key, Address: s.cfg.Address, Admit: s.admit, Known: s.gate.Knows, Allow: allow}); err != nil {
		return nil, err
	}
	if cfg.Series && cfg.Dir != "" { // a session is written to by whoever holds its lock: see Serve
		if err := s.keepIn(cfg.Dir); err != nil {
			return nil, errors.Join(err, s.node.Close())
		}
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.wg.Go(s.attend)
	return s, nil
}

// remember gives the server its key, its run and whom it lets in: those of the directory that it goes on from, or new
// ones.
func (s *Server) remember() (err error) {
	if s.cfg.Dir != "" {
		key, k, err := recall(s.cfg.Dir)
		if err != nil {
			return err
		}
		s.cfg.Key = cmp.Or(key, s.cfg.Key)
		if k != nil {
			s.id = k.Run
			s.gate.Restore(k.Gate)
			s.cfg.Address = cmp.Or(s.cfg.Address, k.Listen)
		}
	}
	s.cfg.Address = cmp.Or(s.cfg.Address, defaultAddress)
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

// attend takes in those who are welcomed, until the server closes.
func (s *Server) attend() {
	for {
		p, err := s.node.Accept(s.ctx)
		if err != nil {
			return // it closes
		}
		if p.Role() == wire.Worker {
			s.accept(p)
		} else {
			s.look(p)
		}
	}
}

// accept gives a worker that was welcomed its seat. One of the same key that is still there is cut off: it has come
// again.
func (s *Server) accept(p *quic.Peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.admitted[p.Node()]
	if !ok {
		s.wg.Go(func() { sendAway(p, message.Away{Why: "it came in twice at once", After: time.Second}) })
		return
	}
	delete(s.admitted, p.Node())
	for _, r := range s.runs {
		if old := r.seats[p.Node()]; old != nil {
			old.cancel(errors.New("it came again"))
		}
	}
	t := newSeat(a.run, p, a.worker)
	a.run.seats[p.Node()] = t
	if !a.run.closed {
		a.run.wg.Go(t.attend)
		return
	}
	if s.cfg.Series {
		t.stop()
	}
	s.wg.Go(t.attend) // its run has ended meanwhile
}

// Close ends the runs that are still open, tells the workers of a series that nothing is left, for which it waits up to
// lastWord, and frees the socket. It returns when every goroutine of the server has ended.
func (s *Server) Close() error {
	s.mu.Lock()
	s.over = s.over || s.cfg.Series && !s.paused
	runs := slices.Clone(s.runs)
	s.mu.Unlock()
	for _, r := range runs {
		r.close()
	}
	s.lastWords()
	s.cancel()
	s.wg.Wait()
	return s.node.Close()
}

// Pause says that a series goes on by another server of the same directory: workers are not told that nothing is left,
// and look for it for their patience.
func (s *Server) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = true
}

// lastWord is how long those who were told to ask again are waited for.
const lastWord = 5 * time.Second

// lastWords waits until those who are due have heard that nothing is left, or are gone.
func (s *Server) lastWords() {
	tick := time.NewTicker(lastWord / 50)
	defer tick.Stop()
	for {
		s.mu.Lock()
		maps.DeleteFunc(s.due, func(_ wire.NodeID, told time.Time) bool { return time.Since(told) > lastWord })
		left := len(s.due)
		if s.paused {
			left = 0
		}
		s.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-s.heard:
		case <-tick.C:
		}
	}
}
