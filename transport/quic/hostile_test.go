package quic

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/big"
	"strings"
	"testing"
	"time"

	quicgo "github.com/quic-go/quic-go"

	"brood/transport/identity"
	"brood/transport/wire"
)

// scenery is the system under attack: a coordinator with a gate, a worker of its run, and two other workers that must
// not be affected.
type scenery struct {
	gate    *identity.Gate
	token   string
	server  *Node
	fleet   *fleet // two honest workers and the attacker, which is admitted
	honest  int    // index of the first
	key     *identity.Key
	bystand [2]*Peer // both ends of the connection between node 0 and the server
}

const (
	fromWorkers = wire.FirstKind // a kind that workers may send
	commands    = wire.FirstKind + 1
)

func newScenery(t *testing.T) *scenery {
	t.Helper()
	s := &scenery{gate: identity.NewGate(time.Now), key: newKey(t)}
	token, err := s.gate.Issue(wire.Worker, 100, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.token = token
	s.server = newNode(t, func(c *Config) {
		c.Admit = func(_ context.Context, r Request) (wire.Welcome, error) {
			return wire.Welcome{Run: run}, s.gate.Admit(r.Node, r.Hello.Role, r.Hello.Token)
		}
		c.Allow = func(r wire.Role, kind uint16) bool { return r != wire.Worker || kind == fromWorkers }
	})
	s.fleet = newFleet(t, func(int) *Node { return newNode(t, nil) }, 1, 1)
	s.fleet.roster = append(s.fleet.roster,
		wire.PeerAddress{Index: 2, Node: s.key.Node(), Addresses: []string{"127.0.0.1:9"}})
	for _, m := range s.fleet.meshes {
		if err := m.SetRoster(s.fleet.roster); err != nil {
			t.Fatal(err)
		}
	}
	p, _, err := s.fleet.nodes[0].Dial(bounded(t), s.server.Address().String(), s.server.ID(),
		wire.Hello{Role: wire.Worker, Token: s.token})
	if err != nil {
		t.Fatal(err)
	}
	s.bystand = [2]*Peer{p, accept(t, s.server)}
	return s
}

// expectUndisturbed fails unless the other workers still communicate.
func (s *scenery) expectUndisturbed(t *testing.T, round int) {
	t.Helper()
	say(t, s.bystand[0], fromWorkers, "still here")
	expectMessage(t, s.bystand[1], fromWorkers, "still here")
	say(t, s.bystand[1], commands, "go on")
	expectMessage(t, s.bystand[0], commands, "go on")
	send(t, s.fleet.links[0], 1, 1, uint64(round), "op", payloadOf(round, 50_000))
	recv(t, s.fleet.links[1], s.honest, 1, uint64(round), payloadOf(round, 50_000))
}

// attacker is a connection that can send any bytes.
type attacker struct {
	t      *testing.T
	conn   *quicgo.Conn
	stream *quicgo.Stream
	frames *wire.Reader
}

func (s *scenery) attack(t *testing.T, to *Node, change func(*tls.Config)) (*attacker, error) {
	t.Helper()
	config := s.key.Client(to.ID())
	config.VerifyConnection = nil
	if change != nil {
		change(config)
	}
	conn, err := quicgo.DialAddr(bounded(t), to.Address().String(), config, quicConfig())
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = conn.CloseWithError(0, "") })
	stream, err := conn.OpenStreamSync(bounded(t))
	if err != nil {
		return nil, err
	}
	return &attacker{t, conn, stream, wire.NewReader(stream)}, nil
}

func (a *attacker) write(b []byte) *attacker {
	_, _ = a.stream.Write(b) // the connection may be closed already
	return a
}

func (a *attacker) say(m wire.Body) *attacker {
	a.t.Helper()
	f, err := wire.Marshal(wire.Header{Sender: wire.NoWorker}, m)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.write(f)
}

// answer returns the next frame on the stream.
func (a *attacker) answer() (wire.Body, error) {
	_ = a.stream.SetReadDeadline(time.Now().Add(patience))
	h, p, err := a.frames.Next()
	if err != nil {
		return nil, err
	}
	return wire.Unmarshal(h, p)
}

// end returns why the connection ended, from the answer or from its close.
func (a *attacker) end() error {
	if m, err := a.answer(); err == nil {
		if r, ok := m.(wire.Refused); ok {
			return r
		}
	}
	select {
	case <-a.conn.Context().Done():
		return context.Cause(a.conn.Context())
	case <-bounded(a.t).Done():
		return errors.New("it is not ended")
	}
}

// uni opens a stream and writes to it.
func (a *attacker) uni(b ...[]byte) *quicgo.SendStream {
	s, err := a.conn.OpenUniStreamSync(bounded(a.t))
	if err != nil {
		return nil
	}
	for _, x := range b {
		_, _ = s.Write(x)
	}
	return s
}

func frameOf(h wire.Header, p []byte) []byte {
	f, err := h.Append(nil, p)
	if err != nil {
		panic(err)
	}
	return append(f, p...)
}

// fixCRC recomputes the CRC of a changed frame.
func fixCRC(f []byte, change func([]byte)) []byte {
	change(f)
	t := crc32.MakeTable(crc32.Castagnoli)
	binary.LittleEndian.PutUint32(f[12:], crc32.Update(crc32.Checksum(f[:12], t), t, f[16:]))
	return f
}

// asWorker is admitted by the coordinator as a worker.
func (s *scenery) asWorker(t *testing.T) (*attacker, *Peer) {
	t.Helper()
	a, err := s.attack(t, s.server, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := a.say(wire.Hello{Role: wire.Worker, Token: s.token, Node: s.key.Node()}).answer()
	if _, ok := m.(wire.Welcome); !ok {
		t.Fatal(m, err)
	}
	return a, accept(t, s.server)
}

// asPair opens a pair with the second worker, as worker 0: only the lower index may open one.
func (s *scenery) asPair(t *testing.T) *attacker {
	t.Helper()
	s.fleet.roster = wire.Roster{{Index: 0, Node: s.key.Node(), Addresses: []string{"127.0.0.1:9"}},
		{Index: 1, Node: s.fleet.nodes[1].ID(), Addresses: s.fleet.roster[1].Addresses},
		{Index: 3, Node: s.fleet.nodes[0].ID(), Addresses: s.fleet.roster[0].Addresses}}
	s.fleet.links[0], s.honest = s.fleet.meshes[0].Link(3), 3
	for _, m := range s.fleet.meshes {
		if err := m.SetRoster(s.fleet.roster); err != nil {
			t.Fatal(err)
		}
	}
	a, err := s.attack(t, s.fleet.nodes[1], nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := a.say(wire.Open{Run: run, From: 0, To: 1, Association: wire.AssociationID{9}}).answer()
	if _, ok := m.(wire.Opened); !ok {
		t.Fatal(m, err)
	}
	return a
}

func data(change func(*wire.Header)) wire.Header {
	h := wire.Header{Kind: wire.KindData, Run: run, Sender: 0, Op: "op", Epoch: 1, Seq: 1, Total: 4}
	if change != nil {
		change(&h)
	}
	return h
}

// TestHostileStrangers: attacks without admission.
func TestHostileStrangers(t *testing.T) {
	if n := growth(func() { hostileStrangers(t, newScenery(t)) }); n > maxGrowth {
		t.Errorf("memory grows by %d MiB", n>>20)
	}
}

func hostileStrangers(t *testing.T, s *scenery) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)},
		&x509.Certificate{SerialNumber: big.NewInt(1)}, &rsaKey.PublicKey, rsaKey)
	if err != nil {
		t.Fatal(err)
	}
	hello := wire.Hello{Role: wire.Worker, Node: s.key.Node()}
	leave := func() []byte {
		f, err := wire.Marshal(wire.Header{Sender: wire.NoWorker}, hello)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	le := binary.LittleEndian
	deep := append([]byte{0xa1, 0x0b}, append([]byte(strings.Repeat("\x81", 5000)), 1)...)
	cache := tls.NewLRUClientSessionCache(10)
	for i, c := range []struct {
		name    string
		tls     func(*tls.Config)
		do      func(*attacker)
		wantErr string
	}{
		{"no certificate", func(c *tls.Config) { c.Certificates = nil }, nil, "certificate required"},
		{"RSA", func(c *tls.Config) {
			c.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: rsaKey}}
		}, nil, "bad certificate"},
		{"a chain", func(c *tls.Config) {
			x := c.Certificates[0]
			x.Certificate = [][]byte{x.Certificate[0], x.Certificate[0]}
			c.Certificates = []tls.Certificate{x}
		}, nil, "bad certificate"},
		{"wrong ALPN", func(c *tls.Config) { c.NextProtos = []string{"h3"} }, nil, "no application protocol"},
		{"unknown key", nil, func(a *attacker) { a.say(hello) }, "needs the join URL"},
		{"another's node", nil, func(a *attacker) { a.say(wire.Hello{Role: wire.Worker, Node: s.fleet.nodes[0].ID()}) }, "the certificate is of node"},
		{"another's key, to resume it", func(c *tls.Config) { c.ClientSessionCache = cache; c.ServerName = "x" }, func(a *attacker) { a.say(hello) }, "needs the join URL"},
		{"no Hello", nil, func(a *attacker) { a.say(wire.Lanes{Want: 1}) }, "begins with Hello"},
		{"a pair with the coordinator", nil, func(a *attacker) { a.say(wire.Open{Run: run, From: 0, To: 1}) }, "has not joined the run"},
		{"rubbish", nil, func(a *attacker) { a.write([]byte(strings.Repeat("GET / HTTP/1.1\r\n", 20))) }, "malformed frame: it begins with"},
		{"version 9", nil, func(a *attacker) { a.write(fixCRC(leave(), func(b []byte) { b[4] = 9 })) }, "speaks wire version 9, this program speaks 3"},
		{"4 GiB", nil, func(a *attacker) { a.write(fixCRC(leave(), func(b []byte) { le.PutUint32(b[8:], 1<<32-1) })) }, "a payload of 4294967295 bytes"},
		{"CRC", nil, func(a *attacker) { f := leave(); f[80] ^= 1; a.write(f) }, "CRC is wrong"},
		{"compressed", nil, func(a *attacker) { a.write(fixCRC(leave(), func(b []byte) { b[6] = 1 })) }, "flags"},
		{"truncated", nil, func(a *attacker) { a.write(leave()[:90]); _ = a.stream.Close() }, "ended a stream"},
		{"nested", nil, func(a *attacker) { a.write(frameOf(wire.Header{Kind: wire.KindHello}, deep)) }, "malformed"},
		{"data at once", nil, func(a *attacker) { a.write(frameOf(data(nil), []byte{1, 2, 3, 4})) }, "no message"},
		{"a long name and a long token", nil, func(a *attacker) {
			h := hello
			h.Name, h.Token = strings.Repeat("../\x1b[2J", 1000), strings.Repeat("x", 5000)
			a.say(h)
		}, "token is unknown"},
	} {
		a, err := s.attack(t, s.server, c.tls)
		if err == nil {
			if c.do != nil {
				c.do(a)
			}
			err = a.end()
		}
		if err == nil || !strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("%s: %v, want %q", c.name, err, c.wantErr)
		}
		if a != nil && a.conn.ConnectionState().TLS.DidResume {
			t.Errorf("%s was resumed", c.name)
		}
		s.expectUndisturbed(t, i+1)
	}
	// A revoked key, with a session cache that would resume.
	for range 2 {
		a, err := s.attack(t, s.server, func(c *tls.Config) { c.ClientSessionCache, c.ServerName = cache, "x" })
		if err != nil {
			t.Fatal(err)
		}
		s.gate.Revoke(s.key.Node())
		h := hello
		h.Token = s.token
		if err := a.say(h).end(); err == nil || !strings.Contains(err.Error(), "was revoked") ||
			a.conn.ConnectionState().TLS.DidResume {
			t.Errorf("a revoked key: %v", err)
		}
	}
}

// TestHostilePeers: attacks on a coordinator by an admitted peer.
func TestHostilePeers(t *testing.T) {
	if n := growth(func() { hostilePeers(t, newScenery(t)) }); n > maxGrowth {
		t.Errorf("memory grows by %d MiB", n>>20)
	}
}

func hostilePeers(t *testing.T, s *scenery) {
	for i, c := range []struct {
		name    string
		do      func(*attacker)
		wantErr string
	}{
		{"a coordinator's command", func(a *attacker) { a.say(wire.Message{Kind: commands, Body: []byte("stop")}) }, "a worker may not send messages of kind 17"},
		{"a roster", func(a *attacker) { a.say(wire.Message{Kind: wire.KindRoster}) }, "a worker may not send messages of kind 1"},
		{"Hello again", func(a *attacker) { a.say(wire.Hello{Role: wire.Operator, Node: s.key.Node()}) }, "kind 1 among its messages"},
		{"Welcome", func(a *attacker) { a.say(wire.Welcome{}) }, "kind 2 among"},
		{"Lanes", func(a *attacker) { a.say(wire.Lanes{Want: 8}) }, "kind 9 among"},
		{"a stream of data", func(a *attacker) { a.uni(frameOf(data(nil), []byte{1, 2, 3, 4})) }, "unexpected stream, its first frame is of kind 10"},
		{"rubbish in a stream", func(a *attacker) { a.uni([]byte("hello there, this is no frame")) }, "unexpected stream"},
		{"two streams of heartbeats", func(a *attacker) {
			f, _ := wire.Marshal(wire.Header{}, wire.Heartbeat{})
			a.uni(f)
			a.uni(f)
		}, "unexpected stream"},
		{"a message among heartbeats", func(a *attacker) {
			f, _ := wire.Marshal(wire.Header{}, wire.Heartbeat{})
			g, _ := wire.Marshal(wire.Header{}, wire.Message{})
			a.uni(f, g)
		}, "kind 6 on the stream of heartbeats"},
		{"the end of its stream", func(a *attacker) { _ = a.stream.Close() }, "it ended a stream"},
		{"a reset of its stream", func(a *attacker) { a.stream.CancelWrite(7) }, "it ended a stream"},
		{"no more reading", func(a *attacker) { a.stream.CancelRead(7) }, ""}, // it harms only itself
	} {
		a, p := s.asWorker(t)
		c.do(a)
		if c.wantErr != "" {
			if g := endOf(t, p); g.Cause != Broken || !strings.Contains(g.Reason, c.wantErr) {
				t.Errorf("%s: %v, want %q", c.name, g, c.wantErr)
			}
			if err := a.end(); err == nil || !strings.Contains(err.Error(), c.wantErr) {
				t.Errorf("%s: its error is %v", c.name, err)
			}
		}
		s.expectUndisturbed(t, i+1)
	}
}

// TestHostileWorkers: attacks of a worker of the roster on another.
func TestHostileWorkers(t *testing.T) {
	if n := growth(func() { hostileWorkers(t, newScenery(t)) }); n > maxGrowth {
		t.Errorf("memory grows by %d MiB", n>>20)
	}
}

func hostileWorkers(t *testing.T, s *scenery) {
	four := []byte{1, 2, 3, 4}
	mib := make([]byte, shard)
	whole := func(change func(*wire.Header)) []byte { return frameOf(data(change), four) }
	for i, c := range []struct {
		name    string
		do      func(*attacker)
		wantErr string
	}{
		{"another's sender", func(a *attacker) { a.uni(whole(func(h *wire.Header) { h.Sender = 3 })) }, "sender is worker 0 by its certificate, worker 3 by its frame"},
		{"another run", func(a *attacker) { a.uni(whole(func(h *wire.Header) { h.Run = wire.RunID{1} })) }, "a frame of run"},
		{"the same order twice", func(a *attacker) { a.uni(whole(nil), whole(nil)) }, "message 0 again"},
		{"the same order twice, early", func(a *attacker) {
			f := whole(func(h *wire.Header) { h.Order = 5 })
			a.uni(f, f)
		}, "again"},
		{"a total of 2^63", func(a *attacker) {
			a.uni(frameOf(data(func(h *wire.Header) { h.Total = 1 << 63 }), mib))
		}, "a message of 9223372036854775808 bytes"},
		{"a piece out of place", func(a *attacker) { a.uni(frameOf(data(func(h *wire.Header) { h.Total, h.Offset = 3<<20, 5 }), mib)) }, "1048576 bytes at 5"},
		{"a short piece", func(a *attacker) { a.uni(frameOf(data(func(h *wire.Header) { h.Total = 3 << 20 }), four)) }, "4 bytes at 0"},
		{"a piece twice", func(a *attacker) {
			f := frameOf(data(func(h *wire.Header) { h.Total = 3 << 20 }), mib)
			a.uni(f, f)
		}, "bytes at 0 of message 0 again"},
		{"two messages in one", func(a *attacker) {
			a.uni(frameOf(data(func(h *wire.Header) { h.Total = 3 << 20 }), mib),
				frameOf(data(func(h *wire.Header) { h.Total, h.Offset, h.Op = 3<<20, 1<<20, "other" }), mib))
		}, "message 0: its frames disagree"},
		{"a bad CRC", func(a *attacker) {
			f := whole(nil)
			f[len(f)-1] ^= 1
			a.uni(f)
		}, "CRC is wrong"},
		{"a truncated frame", func(a *attacker) { _ = a.uni(whole(nil)[:60]).Close() }, "it ended a stream"},
		{"a message of the run", func(a *attacker) { a.say(wire.Message{Kind: commands}) }, "kind 6 between workers"},
		{"Lanes from the dialling side", func(a *attacker) { a.say(wire.Lanes{Want: 8}) }, "kind 9 between workers"},
		{"two streams of data", func(a *attacker) { a.uni(whole(nil)); a.uni(whole(func(h *wire.Header) { h.Order = 1 })) }, "unexpected stream"},
		{"control among data", func(a *attacker) {
			f, _ := wire.Marshal(wire.Header{}, wire.Leave{})
			a.uni(whole(nil), f)
		}, "kind 5 on a stream of data"},
		{"200 lanes", func(a *attacker) { a.write(frameOf(wire.Header{Kind: wire.KindLanes}, []byte{0xa1, 1, 0x18, 200})) }, "between workers"},
	} {
		a := s.asPair(t)
		c.do(a)
		if err := a.end(); err == nil || !strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("%s: %v, want %q", c.name, err, c.wantErr)
		}
		until(t, "a reason", func() bool {
			for _, p := range s.fleet.meshes[1].Pairs() {
				if p.Other == 0 && strings.Contains(p.Reason, c.wantErr) {
					return true
				}
			}
			return false
		})
		send(t, s.fleet.links[0], 1, 1, uint64(i), "op", four)
		recv(t, s.fleet.links[1], 3, 1, uint64(i), four)
	}
	// Frames of a stale epoch are dropped; the frames after them arrive.
	a := s.asPair(t)
	a.uni(whole(func(h *wire.Header) { h.Epoch = 5 }), whole(func(h *wire.Header) { h.Order, h.Epoch = 1, 4 }),
		whole(func(h *wire.Header) { h.Order, h.Epoch, h.Seq = 2, 1<<32-1, 1<<64-1 }))
	if seq, _, _, err := s.fleet.links[1].Recv(bounded(t), 0, 1<<32-1); err != nil || seq != 1<<64-1 {
		t.Error(seq, err)
	}
	// Opening a pair or lane that belongs to another worker.
	for _, c := range []struct {
		open    wire.Open
		wantErr string
	}{
		{wire.Open{Run: run, From: 3, To: 1}, "worker 3 is not"}, {wire.Open{Run: run, From: 0, To: 3}, "worker 0 is not"},
		{wire.Open{Run: run, From: 9, To: 1}, "worker 9 is not"},
		{wire.Open{Run: wire.RunID{8}, From: 0, To: 1}, "not of 08"},
		{wire.Open{Run: run, From: 0, To: 1, Lane: 1, Association: wire.AssociationID{77}}, "association is over"},
		{wire.Open{Run: run, From: 1, To: 0}, "is not"},
	} {
		a, err := s.attack(t, s.fleet.nodes[1], nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.say(c.open).end(); err == nil || !strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("%+v: %v, want %q", c.open, err, c.wantErr)
		}
	}
	b, err := s.attack(t, s.fleet.nodes[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.say(wire.Open{Run: run, From: 1, To: 3}).end(); err == nil ||
		!strings.Contains(err.Error(), "worker 1 is not "+s.key.Node().Short()) {
		t.Errorf("in another worker's name: %v", err)
	}
}
