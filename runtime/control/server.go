// Package control lets viewers and operators at a run: a server inside the run's process, and a client with the shape of a
// workbench's Source and Commander. Messages are length-prefixed CBOR over a stream; on this machine that stream is the
// session's Unix socket.
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

// ringSize is the newest records kept in memory for viewers, and ringPoints the points in them; older ones are read
// from the log.
const (
	ringSize   = 1 << 14
	ringPoints = 1 << 19
)

// Room predicts the bytes that a server holds of so many records with so many points.
func Room(records, points float64) int64 {
	return int64(recordBytes*min(records, 2*ringSize) + pointBytes*min(points, 2*ringPoints))
}

// recordBytes is a record in the ring, pointBytes a member and its value; both were measured.
const recordBytes, pointBytes = 250, 14

// Server answers viewers. The run calls Watch for every record.
type Server struct {
	// Fleet tells of the workers; nil where nobody can. Set it before Serve.
	Fleet func(context.Context) view.Fleet

	// Gate lets others in and shuts them out; nil where the run is not served. Set it before Serve.
	Gate func(Gate) (url string, err error)

	dir     string
	command func(context.Context, event.Command) (event.Receipt, error)

	mu      sync.Mutex
	view    *view.View
	ring    []event.Record // positions [base, base+len)
	base    uint64
	points  int           // in the ring
	changed chan struct{} // closed and replaced when there is more
	over    bool
	viewers int
	owed    int // receipts
	lease   lease

	wg     sync.WaitGroup
	cancel context.CancelFunc
	ctx    context.Context
}

// NewServer readies a control socket for the session in dir, whose log holds what view has seen.
func NewServer(dir string, v *view.View, command func(context.Context, event.Command) (event.Receipt, error)) *Server {
	ctx, cancel := context.WithCancel(context.Background())
	return &Server{dir: dir, command: command, view: v, base: v.Position, changed: make(chan struct{}), ctx: ctx, cancel: cancel}
}

// Watch is told of a record that is in the log. It does not block.
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

func points(r event.Record) int {
	if r.Points == nil {
		return 0
	}
	return len(r.Points.Members)
}

// View is what a viewer would see now: the caller's own.
func (s *Server) View() *view.View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.Clone()
}

// Over says that there will never be another record.
func (s *Server) Over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	close(s.changed)
	s.changed = make(chan struct{})
}

// Serve begins to answer on l, until Close, which may come at once.
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

// lastLook is how long viewers have to see how a run ended, where they ask at all. Those elsewhere cannot look it up:
// to them a run whose process leaves first is gone. It is many times what a busy machine takes between two questions.
const lastLook = 5 * time.Second

// Close ends all conversations. Viewers that have not seen the end get a while for it, and so does whoever waits for a
// receipt: of the command that ended the run, for instance.
func (s *Server) Close() {
	s.Over()
	deadline := time.Now().Add(lastLook)
	for time.Now().Before(deadline) {
		s.mu.Lock()
		n := s.viewers + s.owed
		s.mu.Unlock()
		if n == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.cancel()
	s.wg.Wait()
}

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
		s.lease.gone(c)
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
		s.owe(q, 1)
		a := s.answer(ctx, c, q)
		err := answerTo(c, a)
		s.owe(q, -1)
		if err != nil || a.EOF {
			return
		}
	}
}

// owe counts the commands that wait for a receipt.
func (s *Server) owe(q request, n int) {
	if q.Command == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owed += n
}

func (s *Server) answer(ctx context.Context, c net.Conn, q request) (a answer) {
	var err error
	from := party{q.Client, q.Viewer[:min(len(q.Viewer), maxViewer)], c}
	switch {
	case q.Ahead: // it has begun
	case q.Lease != "":
		err = s.about(from, q.Lease)
	case q.Command != nil:
		a.Receipt, err = s.obey(ctx, from, q.Take, *q.Command)
	case q.Gate != nil:
		if err = errors.New("this run is not served: brood open SESSION lets others look, by URLs that it prints"); s.Gate != nil {
			a.URL, err = s.Gate(*q.Gate)
		}
	case q.Said:
		a.Said, err = session.Said(s.dir)
		if q.Heard != nil {
			a.After = q.Heard.After(a.Said)
			a.Said = a.Said[a.After:]
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

// obey passes a command on when nobody else holds the writer's lease.
func (s *Server) obey(ctx context.Context, from party, take bool, c event.Command) (event.Receipt, error) {
	s.mu.Lock()
	reason := s.lease.command(from, take, time.Now())
	s.mu.Unlock()
	if reason != "" {
		return event.Receipt{ID: c.ID, Reason: reason}, nil
	}
	return s.command(ctx, c)
}

// about asks for the lease or gives it away.
func (s *Server) about(from party, act view.LeaseAct) error {
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

func (s *Server) snapshot(at uint64) (*view.View, error) {
	s.mu.Lock()
	if at >= s.view.Position {
		defer s.mu.Unlock()
		return s.view.Clone(), nil
	}
	s.mu.Unlock()
	return folded(s.dir, at)
}

// next waits for records after a position; with a limit to that it may come back with none.
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
			if b.Records, err = past(s.dir, after, most); err != nil {
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
