package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"brood/models/usererr"
	"brood/runtime/control"
	"brood/runtime/session"
	"brood/runtime/view"
	"brood/transport/identity"
	"brood/transport/quic"
	"brood/transport/wire"
)

// The session's control socket for those who look and command: viewers and operators. Each of their conversations is passed on
// to the session's socket, so that they are seen and led like everybody who sits at this machine.

// Visit lets viewers and operators in to the session of this directory, which is running.
func (s *Server) Visit(dir string) {
	s.mu.Lock()
	s.session = dir
	s.mu.Unlock()
}

// look takes a visitor in.
func (s *Server) look(p *quic.Peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gate.Revoked(p.Node()) { // while it came in
		s.wg.Go(func() { p.Close("the key was revoked") })
		return
	}
	s.visitors[p] = struct{}{}
	dir := s.session
	s.wg.Go(func() { s.receive(p, dir) })
}

// receive hears a visitor's conversations until it is gone.
func (s *Server) receive(p *quic.Peer, dir string) {
	name := visitorName(p)
	s.cfg.Note(fmt.Sprintf("%s %s looks in from %s", p.Role(), name, p.Address()))
	for {
		c, err := p.Accept(s.ctx)
		if err != nil {
			break
		}
		s.wg.Go(func() {
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			s.wg.Go(func() { // who is gone asks for nothing more
				select {
				case <-p.Done():
					cancel()
				case <-ctx.Done():
				}
			})
			to, err := dialSession(ctx, dir)
			if err != nil {
				c.Close() // the run is over
				return
			}
			// a visitor that breaks off is gone
			_ = control.Relay(ctx, c, to, control.Visitor{Name: name, Command: p.Role() == wire.Operator}, s.Gate)
		})
	}
	p.Close("")
	s.mu.Lock()
	delete(s.visitors, p)
	s.mu.Unlock()
	if s.ctx.Err() == nil {
		s.cfg.Note(fmt.Sprintf("%s %s is gone", p.Role(), name))
	}
}

// visitorName is what a visitor is called at the session's control socket, whatever it calls itself there.
func visitorName(p *quic.Peer) string { return fmt.Sprintf("%s@%s", p.Hello().Name, p.Node().Short()) }

// release ends what a visitor who does not come back holds of the writer's lease.
func (s *Server) release(dir, name string) {
	ctx, cancel := context.WithTimeout(s.ctx, time.Second)
	defer cancel()
	c := control.NewClient(name, false, func(ctx context.Context) (net.Conn, error) { return dialSession(ctx, dir) })
	defer c.Close()
	c.Stand()                            // for all viewers of that name
	_, _ = c.Lease(ctx, view.LeaseLeave) // else it ends by itself
}

func dialSession(ctx context.Context, dir string) (net.Conn, error) {
	socket, err := session.SocketPath(dir)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	return d.DialContext(ctx, "unix", socket)
}

// Gate makes a join URL, or shuts out whoever holds a key: see control.Gate.
func (s *Server) Gate(g control.Gate) (url string, err error) {
	if g.Revoke != "" {
		return "", s.revoke(g.Revoke)
	}
	for _, role := range []wire.Role{wire.Worker, wire.Viewer, wire.Operator} {
		if role.String() == g.Role {
			if s.cfg.Series && role != wire.Worker {
				return "", errors.New(noVisitors)
			}
			token, err := s.gate.Issue(role, max(1, g.Uses), g.TTL)
			if err != nil {
				return "", err
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.cfg.Note(fmt.Sprintf("a URL lets %d more in as %s", max(1, g.Uses), role))
			return s.url(token), s.keep()
		}
	}
	return "", usererr.Errorf("there is no role %q: choose worker, viewer or operator", g.Role)
}

// revoke shuts a key out and ends its connections.
func (s *Server) revoke(prefix string) error {
	prefix = strings.ToLower(prefix)
	var found []wire.NodeID
	for _, k := range s.gate.State().Known {
		// a key may have several roles
		if strings.HasPrefix(strings.ToLower(k.Node.String()), prefix) && !slices.Contains(found, k.Node) {
			found = append(found, k.Node)
		}
	}
	if len(found) != 1 {
		return fmt.Errorf("%d keys that came in begin with %q: give more of it, as the fleet's table shows it", len(found), prefix)
	}
	s.gate.Revoke(found[0])
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.admitted, found[0])
	for _, r := range s.runs {
		if t := r.seats[found[0]]; t != nil {
			t.cancel(errors.New("its key was revoked"))
		}
	}
	for p := range s.visitors {
		if p.Node().Equal(found[0]) {
			dir := s.session
			s.wg.Go(func() {
				p.Close("the key was revoked") // before: a command takes the lease again
				s.release(dir, visitorName(p))
			})
		}
	}
	s.cfg.Note(fmt.Sprintf("the key %s is revoked", found[0].Short()))
	return s.keep()
}

// Key is the identity with which a person looks at runs of others: known to their gates once it came in.
func Key() (*identity.Key, error) {
	path, err := session.State("client.key")
	if err != nil {
		return nil, err
	}
	return identity.Load(path)
}
