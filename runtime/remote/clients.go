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

// Viewers and operators of other machines use the session's control socket. Each of their streams is relayed to it, so
// that they appear and are coordinated like clients on this machine.

// AdmitClients admits viewers and operators to the running session in dir.
func (s *Server) AdmitClients(dir string) {
	s.mu.Lock()
	s.session = dir
	s.mu.Unlock()
}

// acceptClient starts to serve an admitted client.
func (s *Server) acceptClient(p *quic.Peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gate.Revoked(p.Node()) { // revoked after it was admitted
		s.wg.Go(func() { p.Close("the key was revoked") })
		return
	}
	s.clients[p] = struct{}{}
	dir := s.session
	s.wg.Go(func() { s.serveClient(p, dir) })
}

// serveClient relays a client's streams to the session in dir until the client is gone.
func (s *Server) serveClient(p *quic.Peer, dir string) {
	name := clientName(p)
	s.cfg.Note(fmt.Sprintf("%s %s connected from %s", p.Role(), name, p.Address()))
	for {
		c, err := p.Accept(s.ctx)
		if err != nil {
			break
		}
		s.wg.Go(func() {
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			s.wg.Go(func() { // a client that is gone sends no more requests
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
			// the relay ends when the client closes its stream
			_ = control.Relay(ctx, c, to, control.RelayedClient{Name: name, Command: p.Role() == wire.Operator}, s.Gate)
		})
	}
	p.Close("")
	s.mu.Lock()
	delete(s.clients, p)
	s.mu.Unlock()
	if s.ctx.Err() == nil {
		s.cfg.Note(fmt.Sprintf("%s %s is gone", p.Role(), name))
	}
}

// clientName returns the name of a client at the session's control socket: NAME@KEY. It replaces any name that the
// client sends on a stream.
func clientName(p *quic.Peer) string { return fmt.Sprintf("%s@%s", p.Hello().Name, p.Node().Short()) }

// releaseLease ends the writer's lease of a client that does not return.
func (s *Server) releaseLease(dir, name string) {
	ctx, cancel := context.WithTimeout(s.ctx, time.Second)
	defer cancel()
	c := control.NewClient(name, false, func(ctx context.Context) (net.Conn, error) { return dialSession(ctx, dir) })
	defer c.Close()
	c.ActAsUser()                        // acts for all clients of that name
	_, _ = c.Lease(ctx, view.LeaseLeave) // on failure the lease expires
}

func dialSession(ctx context.Context, dir string) (net.Conn, error) {
	socket, err := session.SocketPath(dir)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	return d.DialContext(ctx, "unix", socket)
}

// Gate creates a join URL, or revokes a key or all URLs: see control.Gate.
func (s *Server) Gate(g control.Gate) (url string, err error) {
	switch {
	case g.Revoke != "":
		return "", s.revoke(g.Revoke)
	case g.Expire:
		n := s.gate.Expire()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cfg.Note(fmt.Sprintf("URLs revoked: %d", n))
		return "", s.persist()
	}
	for _, role := range []wire.Role{wire.Worker, wire.Viewer, wire.Operator} {
		if role.String() == g.Role {
			if s.cfg.Series && role != wire.Worker {
				return "", errors.New(noClients)
			}
			token, err := s.gate.Issue(role, max(1, g.Uses), g.TTL)
			if err != nil {
				return "", err
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.cfg.Note(fmt.Sprintf("a URL admits %d more as %s", max(1, g.Uses), role))
			return s.url(token), s.persist()
		}
	}
	return "", usererr.Errorf("there is no role %q: choose worker, viewer or operator", g.Role)
}

// revoke revokes the key that begins with prefix and ends its connections. It fails unless exactly one key matches.
func (s *Server) revoke(prefix string) error {
	prefix = strings.ToLower(prefix)
	var found []wire.NodeID
	for _, k := range s.gate.State().Known {
		// a key may have several roles
		if strings.HasPrefix(strings.ToLower(k.Node.String()), prefix) && !slices.Contains(found, k.Node) {
			found = append(found, k.Node)
		}
	}
	switch len(found) {
	case 0:
		return fmt.Errorf("no admitted key begins with %q: give one of the fleet's table, or of a NAME@KEY in the log",
			prefix)
	case 1:
	default:
		return fmt.Errorf("%d admitted keys begin with %q: give more of its characters", len(found), prefix)
	}
	s.gate.Revoke(found[0])
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.admitted, found[0])
	for _, r := range s.runs {
		if t := r.handles[found[0]]; t != nil {
			t.cancel(errors.New("its key was revoked"))
		}
	}
	for p := range s.clients {
		if p.Node().Equal(found[0]) {
			dir := s.session
			s.wg.Go(func() {
				p.Close("the key was revoked") // first: a command would take the lease again
				s.releaseLease(dir, clientName(p))
			})
		}
	}
	s.cfg.Note(fmt.Sprintf("the key %s is revoked", found[0].Short()))
	return s.persist()
}

// Key loads the key with which a person connects to runs of others. A run's gate knows it once it was admitted.
func Key() (*identity.Key, error) {
	path, err := session.State("client.key")
	if err != nil {
		return nil, err
	}
	return identity.Load(path)
}
