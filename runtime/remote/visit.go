package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"brood/runtime/door"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/transport/identity"
	"brood/transport/quic"
	"brood/transport/wire"
)

// Doors of the session for those who look and command: viewers and operators. Each of their conversations is passed on to the
// session's socket, so that they are seen and led like everybody who sits at this machine.

// Visit lets viewers and operators in to the session of this directory, which is running.
func (s *Server) Visit(dir string) {
	s.mu.Lock()
	s.session = dir
	s.mu.Unlock()
	s.attend()
}

// receive hears a visitor's conversations until it is gone.
func (s *Server) receive(p *quic.Peer, dir string) {
	name := fmt.Sprintf("%s@%s", p.Hello().Name, p.Node().Short())
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
			_ = door.Relay(ctx, c, to, door.Visitor{Name: name, Command: p.Role() == wire.Operator}, s.Gate) // a visitor that breaks off is gone
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

func dialSession(ctx context.Context, dir string) (net.Conn, error) {
	socket, err := session.SocketPath(dir)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	return d.DialContext(ctx, "unix", socket)
}

// Gate makes a join URL, or shuts out whoever holds a key: see door.Gate.
func (s *Server) Gate(g door.Gate) (url string, err error) {
	if g.Revoke != "" {
		return "", s.revoke(g.Revoke)
	}
	for _, role := range []wire.Role{wire.Worker, wire.Viewer, wire.Operator} {
		if role.String() == g.Role {
			token, err := s.gate.Issue(role, max(1, g.Uses), g.TTL)
			if err != nil {
				return "", err
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.cfg.Note(fmt.Sprintf("%d are invited, each as %s", max(1, g.Uses), role))
			return s.url(token), s.keep()
		}
	}
	return "", fmt.Errorf("there is no role %q: choose worker, viewer or operator", g.Role)
}

// revoke shuts a key out and ends its connections.
func (s *Server) revoke(prefix string) error {
	prefix = strings.ToLower(prefix)
	var found []wire.NodeID
	for _, k := range s.gate.State().Known {
		if strings.HasPrefix(strings.ToLower(k.Node.String()), prefix) && !slices.Contains(found, k.Node) { // a key may have several roles
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
	if t := s.seats[found[0]]; t != nil {
		t.cancel(errors.New("its key was revoked"))
	}
	for p := range s.visitors {
		if p.Node().Equal(found[0]) {
			s.wg.Go(func() { p.Close("the key was revoked") })
		}
	}
	s.cfg.Note(fmt.Sprintf("the key %s is revoked", found[0].Short()))
	return s.keep()
}

// Shape slows links down, or lets them go: see event.Link.
func (s *Server) Shape(l event.Link) error {
	if err := shapeFor(l).Check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, end := range []int{l.From, l.To} {
		if end != event.Every && !s.enlisted(end) {
			return fmt.Errorf("there is no worker %d: those on the roster are %v", end, s.indices())
		}
	}
	s.shapes = reshaped(s.shapes, l)
	for _, t := range s.seats {
		if t.seated {
			t.shape(l)
		}
	}
	s.shapeHere()
	return nil
}

func shapeFor(l event.Link) quic.Shape {
	return quic.Shape{Rate: l.Rate, Delay: l.Delay, Jitter: l.Jitter, Loss: l.Loss}
}

// shapeHere slows down what the coordinator's own workers send. The caller holds mu.
func (s *Server) shapeHere() {
	for _, w := range s.roster {
		if w.Node.Equal(s.node.ID()) {
			applyShapes(s.mesh, int(w.Index), s.shapes, s.roster)
		}
	}
}

// applyShapes makes one worker's links as slow as the newest shape for each says. A link that does not exist has none.
func applyShapes(mesh *quic.Mesh, self int, shapes []event.Link, roster wire.Roster) {
	for _, w := range roster {
		if l := shapeOf(shapes, self, int(w.Index)); l != nil && int(w.Index) != self {
			_ = mesh.Shape(uint32(self), w.Index, shapeFor(*l)) // both may be of one process
		}
	}
}

// reshaped are the shapes with a newer one, which replaces what it covers.
func reshaped(shapes []event.Link, l event.Link) []event.Link {
	kept := slices.DeleteFunc(slices.Clone(shapes), func(o event.Link) bool {
		return (l.From == event.Every || l.From == o.From) && (l.To == event.Every || l.To == o.To)
	})
	return append(kept, l)
}

// shapeOf is the newest shape for a link, nil where there never was one.
func shapeOf(shapes []event.Link, from, to int) (found *event.Link) {
	for i, l := range shapes {
		if (l.From == event.Every || l.From == from) && (l.To == event.Every || l.To == to) {
			found = &shapes[i]
		}
	}
	return found
}

func (s *Server) enlisted(w int) bool {
	for _, x := range s.roster {
		if int(x.Index) == w {
			return true
		}
	}
	return false
}

func (s *Server) indices() (out []int) {
	for _, x := range s.roster {
		out = append(out, int(x.Index))
	}
	return out
}

// Key is the identity with which a person looks at runs of others: known to their gates once it came in.
func Key() (*identity.Key, error) {
	path, err := session.State("client.key")
	if err != nil {
		return nil, err
	}
	return identity.Load(path)
}
