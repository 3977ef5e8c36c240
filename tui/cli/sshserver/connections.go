package sshserver

import (
	"net"
	"slices"
	"sync"

	"charm.land/ssh"
	gossh "golang.org/x/crypto/ssh"
)

// connections limits the open connections. Those that have not authenticated have their own limit, so that they cannot
// keep out clients with a key: at the limit the next one replaces another one instead of waiting for its timeout.
type connections struct {
	note func(text string)

	mu      sync.Mutex
	waiting []*connection // not authenticated, oldest first
	clients int           // authenticated
	closed  bool
}

const (
	maxWaiting = 64
	maxClients = 64
)

// connection is an accepted connection. It leaves its list when it is closed.
type connection struct {
	net.Conn
	host   string // address of the client, without the port
	client bool   // authenticated; guarded by connections.mu
	leave  func()
}

func (c *connection) Close() error {
	c.leave()
	return c.Conn.Close()
}

// connectionKey is the context key of the connection.
type connectionKey struct{}

// accept is an [ssh.ConnCallback]. At the limit it closes the oldest waiting connection of the host that has most of
// them: many connections of one host replace each other.
func (s *connections) accept(ctx ssh.Context, conn net.Conn) net.Conn {
	c := &connection{Conn: conn, host: conn.RemoteAddr().String()}
	if host, _, err := net.SplitHostPort(c.host); err == nil {
		c.host = host
	}
	c.leave = sync.OnceFunc(func() { s.remove(c) })
	ctx.SetValue(connectionKey{}, c)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil // the server closes it
	}
	s.waiting = append(s.waiting, c)
	var excess *connection
	if len(s.waiting) > maxWaiting {
		excess = s.crowded()
		s.waiting = slices.DeleteFunc(s.waiting, func(c *connection) bool { return c == excess })
	}
	s.mu.Unlock()
	if excess != nil {
		_ = excess.Close() // its client may be gone
	}
	return c
}

// crowded returns the oldest waiting connection of the host that has most of them.
func (s *connections) crowded() (oldest *connection) {
	of := map[string]int{}
	for _, c := range s.waiting {
		of[c.host]++
	}
	for _, c := range s.waiting {
		if oldest == nil || of[c.host] > of[oldest.host] {
			oldest = c
		}
	}
	return oldest
}

// config is an [ssh.ServerConfigCallback].
func (s *connections) config(ctx ssh.Context) *gossh.ServerConfig {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return &gossh.ServerConfig{AuthLogCallback: func(_ gossh.ConnMetadata, _ string, err error) {
		if err == nil && c != nil {
			s.authenticated(c)
		}
	}}
}

// authenticated moves a connection to the clients, or closes it if there are too many.
func (s *connections) authenticated(c *connection) {
	s.mu.Lock()
	full := s.clients >= maxClients
	if i := slices.Index(s.waiting, c); i >= 0 && !full {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		s.clients++
		c.client = true
	}
	s.mu.Unlock()
	if full {
		s.note("a client from " + c.host + " was rejected: the maximum number of clients is connected by SSH")
		_ = c.Close()
	}
}

func (s *connections) remove(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.client {
		s.clients--
		return
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(x *connection) bool { return x == c })
}

// close closes the waiting connections and all later ones. The server closes those of clients.
func (s *connections) close() {
	s.mu.Lock()
	s.closed = true
	waiting := slices.Clone(s.waiting)
	s.mu.Unlock()
	for _, c := range waiting {
		_ = c.Close()
	}
}
