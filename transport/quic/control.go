package quic

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"brood/transport/wire"
)

// control is an open connection after its first messages: the control connection of a peer, or the first connection of
// a pair. It sends heartbeats, writes posted frames to its stream and passes the frames that it reads to frame. The
// first failure ends the connection and all its goroutines.
type control struct {
	opening
	pulse pulse
	born  time.Time                       // the origin of heartbeat times
	frame func(wire.Header, []byte) error // handles frames of the stream except Leave; it may wait
	data  func(*wire.Reader) error        // handles the stream of data; nil refuses one

	packets func() uint64        // packets received so far
	silence func() time.Duration // the connection ends after this time without a packet
	sparse  bool                 // it sends fewer heartbeats if it may be silent for longer
	probes  atomic.Bool          // the peer's port may be probed: see allowProbes

	ctx    context.Context // cancelled when the connection ends
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	err    *GoneError // why it ended; nil while it is open
	queue  [][]byte
	queued int           // bytes in queue
	most   int           // limit of queued, in bytes
	wake   chan struct{} // holds a token when queue may have changed
}

func newControl(o opening, most int) *control {
	c := &control{opening: o, born: time.Now(), most: most, wake: make(chan struct{}, 1)}
	c.packets = func() uint64 { return c.conn.ConnectionStats().PacketsReceived }
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c
}

// start starts the connection's goroutines; frame and data must be set.
func (c *control) start() {
	c.pulse.received(time.Now())
	c.run(c.write)
	c.run(c.read)
	c.run(c.beat)
	c.run(c.streams)
	c.wg.Go(func() { // the other side or quic-go may end the connection
		<-c.conn.Context().Done()
		c.fail(context.Cause(c.conn.Context()))
	})
}

// run starts a goroutine; if f fails, the connection ends with its error.
func (c *control) run(f func() error) {
	c.wg.Go(func() {
		if err := f(); err != nil {
			c.fail(err)
		}
	})
}

// fail ends the connection. Only the first reason is stored.
func (c *control) fail(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = newGoneError(err)
	c.queue, c.queued = nil, 0
	c.mu.Unlock()
	code := codeBroken
	switch c.err.Cause {
	case Closed, Left:
		code = codeDone
	case Silent:
		code = codeSilent
	}
	_ = c.conn.CloseWithError(code, c.err.Reason)
	c.cancel(c.err)
}

func (c *control) wait() { c.wg.Wait() }

// failure returns why the connection ended, a *GoneError; nil while it is open.
func (c *control) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		return nil
	}
	return c.err
}

// post queues a frame without waiting. If more than most bytes would wait, it ends the connection.
func (c *control) post(frame []byte) error {
	c.mu.Lock()
	if c.err != nil {
		defer c.mu.Unlock()
		return c.err
	}
	if c.queued+len(frame) > c.most && c.queued > 0 {
		c.mu.Unlock()
		err := broken("it does not read: %d KiB wait for it", c.most>>10)
		c.fail(err)
		return err
	}
	c.queue = append(c.queue, frame)
	c.queued += len(frame)
	c.mu.Unlock()
	signal(c.wake)
	return nil
}

func signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

func (c *control) write() error {
	for {
		c.mu.Lock()
		if len(c.queue) == 0 {
			c.mu.Unlock()
			select {
			case <-c.wake:
				continue
			case <-c.ctx.Done():
				return nil
			}
		}
		frame := c.queue[0]
		c.mu.Unlock()
		if _, err := c.stream.Write(frame); err != nil {
			return err
		}
		c.mu.Lock()
		if len(c.queue) > 0 {
			c.queue[0] = nil
			c.queue = c.queue[1:]
			c.queued -= len(frame)
		}
		c.mu.Unlock()
	}
}

func (c *control) read() error {
	for {
		h, p, err := c.frames.Next()
		if err != nil {
			return err
		}
		if h.Kind == wire.KindLeave {
			m, err := wire.Unmarshal(h, p)
			if err != nil {
				return err
			}
			return &GoneError{Left, m.(wire.Leave).Reason}
		}
		if err := c.frame(h, p); err != nil {
			return err
		}
	}
}

// leave sends Leave after the queued frames and waits until the peer ends the connection or ctx is done.
func (c *control) leave(ctx context.Context, reason string) error {
	frame, err := wire.Marshal(wire.Header{Sender: wire.NoWorker}, wire.Leave{Reason: wire.CleanText(reason)})
	if err != nil {
		return err
	}
	if err := c.post(frame); err != nil {
		return err
	}
	select {
	case <-c.ctx.Done():
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.fail(&GoneError{Closed, reason})
	c.wait()
	return err
}

// streams accepts the peer's one-way streams and dispatches each by the kind of its first frame. Each has a goroutine,
// since the stream of small messages stays empty until the first of them.
func (c *control) streams() error {
	var beats, data atomic.Bool
	for {
		s, err := c.conn.AcceptUniStream(c.ctx)
		if err != nil {
			if c.ctx.Err() != nil {
				return nil
			}
			return err
		}
		c.run(func() error {
			r := wire.NewReader(s)
			kind, err := r.Peek()
			switch {
			case err != nil:
				return err
			case kind == wire.KindHeartbeat && beats.CompareAndSwap(false, true):
				return c.listen(r)
			case kind == wire.KindData && c.data != nil && data.CompareAndSwap(false, true):
				return c.data(r)
			}
			return broken("unexpected stream, its first frame is of kind %d", kind)
		})
	}
}
