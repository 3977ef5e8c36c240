package sshserver

import (
	"context"
	"fmt"
	"sync"

	"charm.land/ssh"
	gossh "golang.org/x/crypto/ssh"
)

// screens counts the sessions that are open, of each key and of all: a connection may ask for any number of them, and
// each costs a screen.
type screens struct {
	wg  sync.WaitGroup // of what passes requests on
	mu  sync.Mutex
	of  map[string]int // by key
	all int
}

const (
	maxScreens = 32
	maxOfKey   = 8
	maxEnv     = 32   // variables of a session
	maxEnvSize = 1024 // bytes of each
)

// keyOf is the context's key for the public key that a connection came with.
type keyOf struct{}

// handle lets a session begin where there is room for it.
func (s *screens) handle(srv *ssh.Server, conn *gossh.ServerConn, ch gossh.NewChannel, ctx ssh.Context) {
	key, _ := ctx.Value(keyOf{}).(string)
	if err := s.enter(key); err != nil {
		_ = ch.Reject(gossh.ResourceShortage, "brood: "+err.Error()) // it may be gone
		return
	}
	ssh.DefaultSessionHandler(srv, conn, &counted{NewChannel: ch, wg: &s.wg, ctx: ctx, leave: sync.OnceFunc(func() { s.leave(key) })}, ctx)
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

// counted is a session that takes a screen. It ends with its requests, and keeps a sane number of variables.
type counted struct {
	gossh.NewChannel
	wg    *sync.WaitGroup
	ctx   context.Context // of the connection
	leave func()
}

// Accept begins the session.
func (c *counted) Accept() (gossh.Channel, <-chan *gossh.Request, error) {
	ch, all, err := c.NewChannel.Accept()
	if err != nil {
		c.leave()
		return ch, all, err
	}
	reqs := make(chan *gossh.Request)
	c.wg.Go(func() { // it ends with the channel or the connection, which the server's Close ends
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

// Reject refuses the session.
func (c *counted) Reject(reason gossh.RejectionReason, message string) error {
	defer c.leave()
	return c.NewChannel.Reject(reason, message)
}
