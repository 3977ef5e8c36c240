// Package control connects viewers and operators to a run: a server in the process of the run, and a client that
// implements the workbench's Source and Commander. Messages are length-prefixed CBOR over a stream; on the same machine
// the stream is the session's Unix socket.
package control

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view"
)

// ringSize and ringPoints bound the records and points that a server keeps in memory for viewers after it drops older
// ones, which are read from the log. It drops them once either count reaches twice its bound.
const (
	ringSize   = 1 << 14
	ringPoints = 1 << 19
)

// Room estimates the bytes that a server keeps in memory after the given numbers of records and of points in them.
func Room(records, points float64) int64 {
	return int64(recordBytes*min(records, 2*ringSize) + pointBytes*min(points, 2*ringPoints))
}

// Measured sizes in bytes: of a record in the ring, and of a point (a member and its value).
const recordBytes, pointBytes = 250, 14

// Server answers viewers. The run calls Watch for every record.
type Server struct {
	// Fleet returns the state of the workers; may be nil. Set it before Serve.
	Fleet func(context.Context) view.Fleet

	// Gate creates and revokes join URLs; nil if the run is not served. Set it before Serve.
	Gate func(Gate) (url string, err error)

	dir     string
	command func(context.Context, event.Command) (event.Receipt, error)

	mu      sync.Mutex
	view    *view.View
	ring    []event.Record // positions [base, base+len)
	base    uint64
	points  int           // in the ring
	changed chan struct{} // closed and replaced at each new record, and at the end
	over    bool          // there will be no more records
	viewers int
	pending int // commands whose receipt is not yet sent
	lease   lease

	wg     sync.WaitGroup
	cancel context.CancelFunc
	ctx    context.Context
}

// NewServer returns a server for the session in dir. v contains all records of the log so far and belongs to the server
// from now on. command executes the commands of clients.
func NewServer(
	dir string, v *view.View, command func(context.Context, event.Command) (event.Receipt, error),
) *Server {
	ctx, cancel := context.WithCancel(context.Background())
	return &Server{
		dir:     dir,
		command: command,
		view:    v,
		base:    v.Position,
		changed: make(chan struct{}),
		ctx:     ctx,
		cancel:  cancel,
	}
}

// Watch passes a record that is already in the log to the viewers. It does not block.
func (s *Server) Watch(r event.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view.Apply(r)
	if len(s.ring) >= 2*ringSize || s.points >= 2*ringPoints {
		n := 0
		for ; len(s.ring)-n > ringSize || s.points > ringPoints; n++ {
			s.points -= points(s.ring[n])
		}
		s.base += uint64(n)
		s.ring = append(s.ring[:0:0], s.ring[n:]...)
	}
	s.ring = append(s.ring, r)
	s.points += points(r)
	close(s.changed)
	s.changed = make(chan struct{})
}

// points returns the number of values in a record.
func points(r event.Record) int {
	if r.Points == nil {
		return 0
	}
	return len(r.Points.Members)
}

// View returns a copy of the current view.
func (s *Server) View() *view.View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.Clone()
}

// Over marks the end of the records: clients that have read all of them receive io.EOF.
func (s *Server) Over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	close(s.changed)
	s.changed = make(chan struct{})
}

// Serve starts to answer clients of l in the background, until Close. Close may be called immediately.
func (s *Server) Serve(l net.Listener) {
	s.wg.Go(func() {
		<-s.ctx.Done()
		l.Close()
	})
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.wg.Go(func() { s.talk(c) })
		}
	})
}

// closeTimeout is how long Close waits for viewers to read the end of a run. Remote viewers cannot read it from the
// log. It is many times the interval between two requests on a busy machine.
const closeTimeout = 5 * time.Second

// Close ends all connections. First it waits up to closeTimeout for viewers that have not read the end of the run and
// for clients that wait for a receipt, for example of the command that ended the run.
func (s *Server) Close() {
	s.Over()
	deadline := time.Now().Add(closeTimeout)
	for time.Now().Before(deadline) {
		s.mu.Lock()
		n := s.viewers + s.pending
		s.mu.Unlock()
		if n == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.cancel()
	s.wg.Wait()
}

// talk answers the requests of connection c until it ends. The connection counts as a viewer from its first request
// with a client name that reads records or a snapshot.
func (s *Server) talk(c net.Conn) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	go func() { <-ctx.Done(); c.Close() }()
	viewer := false
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if viewer {
			s.viewers--
		}
		s.lease.disconnected(c)
	}()
	asked := requests(ctx, cancel, c, maxMessage)
	for {
		var q request
		select {
		case q = <-asked:
		case <-ctx.Done():
			return
		}
		if !viewer && q.Client != "" && q.Command == nil && !q.Fleet && q.Gate == nil && !q.Ahead {
			viewer = true
			s.mu.Lock()
			s.viewers++
			s.mu.Unlock()
		}
		s.addPending(q, 1)
		a := s.answer(ctx, c, q)
		err := answerTo(c, a)
		s.addPending(q, -1)
		if err != nil || a.EOF {
			return
		}
	}
}

// addPending adds n to the number of commands that wait for a receipt, if q is a command.
func (s *Server) addPending(q request, n int) {
	if q.Command == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending += n
}

// answer executes a request from connection c. Errors are part of the answer.
func (s *Server) answer(ctx context.Context, c net.Conn, q request) (a answer) {
	var err error
	from := viewerID{q.Client, q.Viewer[:min(len(q.Viewer), maxViewer)], c}
	switch {
	case q.Ahead: // the run has started: the answer is a nil Ahead
	case q.Lease != "":
		err = s.changeLease(from, q.Lease)
	case q.Command != nil:
		a.Receipt, err = s.apply(ctx, from, q.Take, *q.Command)
	case q.Gate != nil:
		err = errors.New("this run is not served: brood open SESSION prints URLs that let others watch it")
		if s.Gate != nil {
			a.URL, err = s.Gate(*q.Gate)
		}
	case q.ProcessLog:
		a.Lines, err = session.ProcessLog(s.dir)
		if q.Known != nil {
			a.After = q.Known.After(a.Lines)
			a.Lines = a.Lines[a.After:]
		}
	case q.Fleet:
		if s.Fleet != nil {
			f := s.Fleet(ctx)
			a.Fleet = &f
		}
	case q.Snapshot:
		a.View, err = s.snapshot(q.At)
	default:
		a.Batch, err = s.next(ctx, q.At, q.Max, q.Wait)
	}
	s.mu.Lock()
	a.Viewers, a.Lease = s.viewers, s.lease.of(from, time.Now())
	a.Writer = a.Lease.Holder == "" || a.Lease.Mine
	s.mu.Unlock()
	if errors.Is(err, io.EOF) {
		a.EOF = true
	} else if err != nil {
		a.Err = err.Error()
	}
	return a
}

// apply executes a command unless another viewer holds the writer's lease; then the receipt has the reason.
func (s *Server) apply(ctx context.Context, from viewerID, take bool, c event.Command) (event.Receipt, error) {
	s.mu.Lock()
	reason := s.lease.command(from, take, time.Now())
	s.mu.Unlock()
	if reason != "" {
		return event.Receipt{ID: c.ID, Reason: reason}, nil
	}
	return s.command(ctx, c)
}

// changeLease requests, transfers or releases the writer's lease.
func (s *Server) changeLease(from viewerID, act view.LeaseAct) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch act {
	case view.LeaseAsk:
		return s.lease.ask(from, time.Now())
	case view.LeaseGive:
		return s.lease.give(from, time.Now())
	case view.LeaseLeave:
		s.lease.leave(from)
	}
	return nil
}

// snapshot returns the view after the first at records, or a copy of the current one if there are fewer.
func (s *Server) snapshot(at uint64) (*view.View, error) {
	s.mu.Lock()
	if at >= s.view.Position {
		defer s.mu.Unlock()
		return s.view.Clone(), nil
	}
	s.mu.Unlock()
	return folded(s.dir, at)
}

// next waits for records after a position and returns at most the given number of them (1 to 4096). If wait is not 0,
// it returns an empty batch after that time. It returns io.EOF at the end of the run.
func (s *Server) next(ctx context.Context, after uint64, most int, wait time.Duration) (b view.Batch, err error) {
	most = max(1, min(most, 4096))
	var enough <-chan time.Time
	if wait > 0 {
		enough = time.After(wait)
	}
	for {
		s.mu.Lock()
		end, changed, over := s.base+uint64(len(s.ring)), s.changed, s.over
		if after >= s.base && after < end {
			rest := s.ring[after-s.base:]
			b.Records = append(b.Records, rest[:min(len(rest), most)]...)
		}
		old := after < s.base
		s.mu.Unlock()
		switch {
		case len(b.Records) > 0:
		case old:
			if b.Records, err = readLog(s.dir, after, most); err != nil {
				return b, err
			}
		case over:
			return b, io.EOF
		default:
			select {
			case <-changed:
				continue
			case <-enough:
				return view.Batch{Next: after, Live: true}, nil
			case <-ctx.Done():
				return b, ctx.Err()
			}
		}
		b.Next = after + uint64(len(b.Records))
		b.Live = b.Next >= end
		return b, nil
	}
}
