// Package remote runs workers in other processes, over QUIC: the coordinator's [Server] and the worker's [Work]. The
// messages between them are those of runtime/message. Tensors go directly from worker to worker; only checkpoints pass
// through the coordinator.
//
//	srv, err := remote.Listen(remote.Config{Key: key, Address: ":4433", Enrol: 2})
//	run, err := srv.Serve(job, sess, nil, watch, 0) // accepts workers with the URL srv.Join(wire.Worker) from now on
//	exit, err := run.Train(ctx)
//	err = run.Close()                               // ends the sessions of the workers
//	err = srv.Close()
//
// A worker's session has these steps: Hello and Welcome (its run and number), Setup, the worker's preparation, Ready of
// epoch 0, the roster to all workers, its handle in the fleet, and then the orders of the coordinator's core until
// Stop. In a [Config.Series] the worker then sends Hello again.
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

// Config configures a server.
type Config struct {
	Key     *identity.Key // nil: the key saved in Dir, else a new one
	Address string        // HOST:PORT to listen on; "": the address saved in Dir, else :4433
	// directory of an earlier server, whose identity this one takes over, so that its workers and clients reconnect;
	// "": none
	Dir string
	// several runs and no clients, see Serve; the server saves its identity in Dir, which no other process may use
	Series   bool
	Enrol    int // number of workers that the join URL admits; 0: none
	Guests   int // number of viewers, and of operators, that each of their URLs admits
	Software string
	Note     func(string) // receives a line for each event, such as a join; must not block; may be nil
}

// Server admits workers and clients to runs. Its methods may be called from any goroutine.
type Server struct {
	cfg   Config
	id    wire.RunID // of its run; zero in a series, where each run has an id
	gate  *identity.Gate
	token map[wire.Role]string
	node  *quic.Node

	ctx      context.Context // ends with the server
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	informed chan struct{} // holds a token when toInform may have shrunk

	mu           sync.Mutex
	written      []byte // content of the file that persist wrote last
	dir          string // directory that persist writes to; "": none yet
	session      string // directory of the session that clients see; "": none yet
	clients      map[*quic.Peer]struct{}
	runs         []*run // runs that workers may join, oldest first
	over         bool   // no other run follows, and workers are notified
	unfinished   bool   // its run was not over when this process closed it
	paused       bool   // another server will continue the series
	keepsWorkers bool   // see KeepWorkers
	admitted     map[wire.NodeID]admission
	evictedUntil map[wire.NodeID]time.Time // workers that were evicted, and when each may return
	toInform     map[wire.NodeID]time.Time // workers of a series that were asked to retry, and when
}

// admission belongs to a worker that was sent Welcome and is not accepted yet.
type admission struct {
	run    *run
	worker int
	at     time.Time
}

// defaultAddress is the address to listen on if none is configured.
const defaultAddress = ":4433"

// arrival is the maximum time of a worker from Welcome to its acceptance.
const arrival = 10 * time.Second

// Listen opens the socket and serves connections in the background. Until a run is served, workers are asked to retry.
// The caller must close the server.
func Listen(cfg Config) (*Server, error) {
	if cfg.Note == nil {
		cfg.Note = func(string) {}
	}
	if _, _, err := net.SplitHostPort(cfg.Address); cfg.Address != "" && err != nil {
		return nil, usererr.Errorf("listen on %q: name an address as HOST:PORT", cfg.Address)
	}
	s := &Server{
		cfg:          cfg,
		gate:         identity.NewGate(time.Now),
		token:        map[wire.Role]string{},
		informed:     make(chan struct{}, 1),
		clients:      map[*quic.Peer]struct{}{},
		admitted:     map[wire.NodeID]admission{},
		toInform:     map[wire.NodeID]time.Time{},
		evictedUntil: map[wire.NodeID]time.Time{},
	}
	if err := s.loadIdentity(); err != nil {
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
	s.node, err = quic.Listen(quic.Config{
		Key:     s.cfg.Key,
		Address: s.cfg.Address,
		Admit:   s.admit,
		Known:   s.gate.Knows,
		Allow:   allow,
	})
	if err != nil {
		return nil, err
	}
	// a single run saves in its session, which only the holder of its lock may write: see open
	if cfg.Series && cfg.Dir != "" {
		if err := s.persistIn(cfg.Dir); err != nil {
			return nil, errors.Join(err, s.node.Close())
		}
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.wg.Go(s.acceptLoop)
	return s, nil
}

// loadIdentity sets the server's key, run id and gate: those saved in cfg.Dir, or new ones.
func (s *Server) loadIdentity() (err error) {
	if s.cfg.Dir != "" {
		key, k, err := loadState(s.cfg.Dir)
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

// Join returns the URL that admits peers of a role; "" if the server admits none.
func (s *Server) Join(role wire.Role) string {
	if s.token[role] == "" {
		return ""
	}
	return s.url(s.token[role])
}

func (s *Server) url(token string) string {
	return identity.Join{Address: reachable(s.node.Address()), Token: token, Server: s.node.ID()}.String()
}

// reachable returns an address that others can dial. If the socket listens on all interfaces, that is the first global
// unicast IPv4 address of the machine, or 127.0.0.1 if there is none.
func reachable(a net.Addr) string {
	u, ok := a.(*net.UDPAddr)
	if !ok || !u.IP.IsUnspecified() {
		return a.String()
	}
	best := "127.0.0.1"
	found, _ := net.InterfaceAddrs() // without interfaces nothing can reach it anyway
	for _, x := range found {
		if n, ok := x.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			best = n.IP.String()
			break
		}
	}
	return net.JoinHostPort(best, fmt.Sprint(u.Port))
}

// acceptLoop accepts admitted peers until the server closes.
func (s *Server) acceptLoop() {
	for {
		p, err := s.node.Accept(s.ctx)
		if err != nil {
			return // the server closes
		}
		if p.Role() == wire.Worker {
			s.accept(p)
		} else {
			s.acceptClient(p)
		}
	}
}

// accept creates the handle of an admitted worker. An earlier session of the same key is ended, since the worker has
// reconnected.
func (s *Server) accept(p *quic.Peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.admitted[p.Node()]
	if !ok {
		s.wg.Go(func() {
			sendEviction(p, message.Evict{Why: "it connected twice at the same time",
				After: time.Second})
		})
		return
	}
	delete(s.admitted, p.Node())
	for _, r := range s.runs {
		if old := r.handles[p.Node()]; old != nil {
			old.cancel(errors.New("it connected again"))
		}
	}
	t := newHandle(a.run, p, a.worker)
	a.run.handles[p.Node()] = t
	if !a.run.closed {
		a.run.wg.Go(t.serve)
		return
	}
	if s.cfg.Series {
		t.stop()
	}
	s.wg.Go(t.serve) // the run has ended meanwhile
}

// Close ends the runs that are still open, tells the workers of a series that there are no more runs, for which it
// waits up to finalWait, and closes the socket. It returns when every goroutine of the server has ended.
func (s *Server) Close() error {
	s.mu.Lock()
	s.over = s.over || s.cfg.Series && !s.paused
	runs := slices.Clone(s.runs)
	s.mu.Unlock()
	for _, r := range runs {
		r.close()
	}
	s.waitInformed()
	s.cancel()
	s.wg.Wait()
	return s.node.Close()
}

// Pause declares that another server of the same directory will continue the series. Workers are then not notified that
// no other run follows; they retry until their patience ends.
func (s *Server) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = true
}

// finalWait is how long Close waits for workers that were asked to retry.
const finalWait = 5 * time.Second

// waitInformed waits until the workers in toInform know that there are no more runs, or finalWait has passed for them.
func (s *Server) waitInformed() {
	tick := time.NewTicker(finalWait / 50)
	defer tick.Stop()
	for {
		s.mu.Lock()
		maps.DeleteFunc(s.toInform, func(_ wire.NodeID, asked time.Time) bool { return time.Since(asked) > finalWait })
		left := len(s.toInform)
		if s.paused {
			left = 0
		}
		s.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-s.informed:
		case <-tick.C:
		}
	}
}
