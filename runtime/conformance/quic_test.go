package conformance

import (
	"errors"
	"sync"
	"testing"

	"brood/models/longtest"
	"brood/optim"
	"brood/optim/catalog"
	"brood/optim/collective"
	"brood/transport/identity"
	"brood/transport/local"
	"brood/transport/quic"
	"brood/transport/wire"
)

// sockets connects the workers of a run over QUIC, each with its own socket, as processes would be.
type sockets struct {
	t      *testing.T
	mu     sync.Mutex
	hub    *local.Hub // of the current run: each run has its own
	nodes  []*quic.Node
	meshes []*quic.Mesh
	roster wire.Roster
	run    byte
	sent   int64 // payload over connections, in all runs
}

// link implements Rig.Link.
func (s *sockets) link(hub *local.Hub, id int) collective.Link {
	s.mu.Lock()
	defer s.mu.Unlock()
	if hub != s.hub {
		s.closeAll()
		s.hub = hub
		s.run++
	}
	key, err := identity.New()
	if err != nil {
		s.t.Fatal(err)
	}
	n, err := quic.Listen(quic.Config{Key: key, Address: "127.0.0.1:0"})
	if err != nil {
		s.t.Fatal(err)
	}
	m, err := n.Mesh(wire.RunID{s.run})
	if err != nil {
		s.t.Fatal(err)
	}
	s.nodes, s.meshes = append(s.nodes, n), append(s.meshes, m)
	s.roster = append(s.roster, wire.PeerAddress{Index: uint32(id), Node: n.ID(),
		Addresses: []string{n.Address().String()}})
	for _, m := range s.meshes {
		if err := m.SetRoster(s.roster); err != nil {
			s.t.Fatal(err)
		}
	}
	return m.Link(uint32(id))
}

func (s *sockets) closeAll() {
	var errs []error
	for i, n := range s.nodes {
		s.sent += s.meshes[i].Totals().Payload
		errs = append(errs, n.Close())
	}
	if err := errors.Join(errs...); err != nil {
		s.t.Error(err)
	}
	s.nodes, s.meshes, s.roster, s.hub = nil, nil, nil, nil
}

// TestConformanceOverQUIC runs the suite with a socket for each worker: the hashes and bytes are the same. It covers
// rows in the memory of the process, and rows that must be read from an engine before they are sent.
func TestConformanceOverQUIC(t *testing.T) {
	longtest.Need(t, longtest.Conformance, "opens some hundred sockets for each algorithm")
	for _, a := range catalog.All() {
		overQUIC(t, a, quick(Rig{Algorithm: a.Name, Rounds: 12}))
		t.Run("elsewhere", func(t *testing.T) {
			var there separate
			overQUIC(t, a, quick(Rig{Algorithm: a.Name, Rounds: 12, Engine: there.engine}))
			there.clean(t)
		})
	}
}

func overQUIC(t *testing.T, a *optim.Algorithm, base Rig) {
	t.Run(a.Name, func(t *testing.T) {
		s := &sockets{t: t}
		base.Link = s.link
		Suite(t, a, base)
		s.closeAll()
		if s.sent == 0 {
			t.Error("no bytes were sent over a socket")
		}
	})
}
