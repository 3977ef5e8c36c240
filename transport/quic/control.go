package quic

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"brood/transport/wire"
)

// control is a connection whose first words were said: the control connection of a peer, or the first connection of a
// pair. It keeps the heartbeat, writes what is posted to its stream and hands on what it reads there. The first failure
// ends all of it.
type control struct {
	opening
	pulse pulse
	born  time.Time                       // heartbeats count from here
	frame func(wire.Header, []byte) error // frames of the stream but Leave; it may wait
	data  func(*wire.Reader) error        // the stream of data; nil refuses one

	packets func() uint64 // that came so far

	ctx    context.Context // ends with the connection
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	err    *GoneError // why; nil while it lives
	queue  [][]byte
	queued int // bytes
	most   int
	wake   chan struct{} // holds a token when queue may have changed
}

func newControl(o opening, most int) *control {
	c := &control{opening: o, born: time.Now(), most: most, wake: make(chan struct{}, 1)}
	c.packets = func() uint64 { return c.conn.ConnectionStats().PacketsReceived }
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c
}

// start runs the connection; frame and data must be set.
func (c *control) start() {
	c.pulse.heard(time.Now())
	c.run(c.write)
	c.run(c.read)
	c.run(c.beat)
	c.run(c.streams)
	c.wg.Go(func() { // the connection may end by itself
		<-c.conn.Context().Done()
		c.fail(context.Cause(c.conn.Context()))
	})
}

// run is a goroutine of the connection; its error ends it.
func (c *control) run(f func() error) {
	c.wg.Go(func() {
		if err := f(); err != nil {
			c.fail(err)
		}
	})
}

// fail ends the connection. The first reason counts.
func (c *control) fail(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = gone(err)
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

// failure is why the connection ended.
func (c *control) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		return nil
	}
	return c.err
}

// post queues a frame. It never waits; a peer for which too much waits is cut.
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

// leave says goodbye after all that was posted, and waits until the peer has ended the connection, or ctx ends.
func (c *control) leave(ctx context.Context, reason string) error {
	frame, err := wire.Marshal(wire.Header{Sender: wire.Nobody}, wire.Leave{Reason: wire.CleanText(reason)})
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

// streams takes the peer's one-way streams; the first frame of each says what it is for. One of which nothing has come
// yet, since no small message was sent so far, keeps no other waiting.
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
			return broken("it opens a stream that it may not have, of kind %d", kind)
		})
	}
}
