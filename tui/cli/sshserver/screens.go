package sshserver

import (
	"context"
	"fmt"
	"sync"

	"charm.land/ssh"
	gossh "golang.org/x/crypto/ssh"
)

// screens limits the open sessions, for each key and in total: one connection may open any number of sessions, and
// each costs a workbench.
type screens struct {
	wg  sync.WaitGroup // goroutines that forward requests
	mu  sync.Mutex
	of  map[string]int // sessions by key
	all int
}

const (
	maxScreens = 32
	maxOfKey   = 8
	maxEnv     = 32   // environment variables of a session
	maxEnvSize = 1024 // bytes of each
)

// keyOf is the context key of the public key of a connection.
type keyOf struct{}

// handle accepts a session unless a limit is reached.
func (s *screens) handle(srv *ssh.Server, conn *gossh.ServerConn, ch gossh.NewChannel, ctx ssh.Context) {
	key, _ := ctx.Value(keyOf{}).(string)
	if err := s.enter(key); err != nil {
		_ = ch.Reject(gossh.ResourceShortage, "brood: "+err.Error()) // the client may be gone
		return
	}
	ssh.DefaultSessionHandler(srv, conn, &counted{
		NewChannel: ch,
		wg:         &s.wg,
		ctx:        ctx,
		leave:      sync.OnceFunc(func() { s.leave(key) }),
	}, ctx)
}

func (s *screens) enter(key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.of[key] >= maxOfKey:
		return fmt.Errorf("your key looks at this run on %d screens already: leave one of them with q", maxOfKey)
	case s.all >= maxScreens:
		return fmt.Errorf("%d screens look at this run by SSH already: try again later, or use brood attach", maxScreens)
	}
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.of[key]++
	s.all++
	return nil
}

func (s *screens) leave(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.of[key]--; s.of[key] == 0 {
		delete(s.of, key)
	}
}

// counted is a session that counts as a screen. Its count ends when its requests end. It rejects excess environment
// variables.
type counted struct {
	gossh.NewChannel
	wg    *sync.WaitGroup
	ctx   context.Context // of the connection
	leave func()
}

// Accept accepts the session and forwards its requests.
func (c *counted) Accept() (gossh.Channel, <-chan *gossh.Request, error) {
	ch, all, err := c.NewChannel.Accept()
	if err != nil {
		c.leave()
		return ch, all, err
	}
	reqs := make(chan *gossh.Request)
	c.wg.Go(func() { // ends with the channel or the connection, which the server's Close closes
		defer c.leave()
		defer close(reqs)
		variables := 0
		for r := range all {
			if r.Type == "env" {
				if variables++; variables > maxEnv || len(r.Payload) > maxEnvSize {
					_ = r.Reply(false, nil)
					continue
				}
			}
			select {
			case reqs <- r:
			case <-c.ctx.Done():
				return
			}
		}
	})
	return ch, reqs, nil
}

// Reject rejects the session and releases its count.
func (c *counted) Reject(reason gossh.RejectionReason, message string) error {
	defer c.leave()
	return c.NewChannel.Reject(reason, message)
}
