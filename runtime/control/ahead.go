package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"brood/runtime/session"
)

// Ahead is the progress of a process that recomputes a recorded round before its run starts.
type Ahead struct {
	Round uint64 `cbor:"0,keyasint"` // last recomputed round
	Of    uint64 `cbor:"1,keyasint"` // round from which the run starts
}

// Announcer serves the control socket of a session while its run has not started. It answers every request with the
// progress of the recomputation. Close it before the run opens the control socket.
type Announcer struct {
	listener net.Listener
	cancel   context.CancelFunc
	wg       sync.WaitGroup

	mu    sync.Mutex
	ahead Ahead
}

// Listen opens the socket of the session in dir. A stale one, left by a killed process, is replaced: the caller holds
// the session's lock.
func Listen(dir string) (net.Listener, error) {
	path, err := session.SocketPath(dir)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("socket of the session: %w", err)
	}
	return l, nil
}

// Announce opens the control socket of the session in dir, whose lock the caller holds, and announces that the run will
// start from round of. The caller closes the announcer.
func Announce(dir string, of uint64) (*Announcer, error) {
	l, err := Listen(dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &Announcer{listener: l, cancel: cancel, ahead: Ahead{Of: of}}
	a.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			a.wg.Go(func() { a.talk(ctx, c) })
		}
	})
	return a, nil
}

// Report sets the last recomputed round.
func (a *Announcer) Report(round uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ahead.Round = round
}

// Close closes the connections and removes the socket.
func (a *Announcer) Close() {
	a.cancel()
	a.listener.Close() // which removes the socket
	a.wg.Wait()
}

func (a *Announcer) talk(ctx context.Context, c net.Conn) {
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	for {
		var q request
		if receive(c, maxMessage, &q) != nil {
			return
		}
		a.mu.Lock()
		now := a.ahead
		a.mu.Unlock()
		out := answer{Ahead: &now}
		if !q.Ahead {
			out.Err = fmt.Sprintf("the run has not begun: it is recomputing round %d of %d; try again", now.Round, now.Of)
		}
		if answerTo(c, out) != nil {
			return
		}
	}
}

// Ahead returns the progress of the recomputation before the run starts; nil once the run has started.
func (c *Client) Ahead(ctx context.Context) (*Ahead, error) {
	a, err := c.ask(ctx, &c.watch, request{Ahead: true})
	return a.Ahead, err
}
