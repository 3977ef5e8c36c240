package quic

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"brood/transport/identity"
	"brood/transport/wire"
)

func TestPeersExchange(t *testing.T) {
	server := newNode(t, func(c *Config) {
		c.Admit = func(_ context.Context, r Request) (wire.Welcome, error) {
			return wire.Welcome{Run: wire.RunID{1}, Worker: 7, Name: "serve", Software: r.Hello.Software}, nil
		}
	})
	worker := newNode(t, nil)
	p, w, err := worker.Dial(bounded(t), server.Address().String(), server.ID(), wire.Hello{
		Role:     wire.Worker,
		Name:     "w",
		Software: "brood",
		Listen:   []string{"a:1"},
		Data:     map[string]string{"d": "x"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if w.Worker != 7 || w.Run != (wire.RunID{1}) || w.Software != "brood" || p.Hello().Name != "serve" || p.Role() != 0 {
		t.Errorf("welcome %+v, peer %+v", w, p.Hello())
	}
	q := accept(t, server)
	if h := q.Hello(); q.Node() != worker.ID() || q.Role() != wire.Worker || h.Name != "w" || h.Listen[0] != "a:1" ||
		h.Data["d"] != "x" || q.Address().String() != worker.Address().String() {
		t.Errorf("%s at %v says %+v", q.Node(), q.Address(), h)
	}
	large := strings.Repeat("x", wire.MaxBody)
	for i := range 100 {
		say(t, p, 16, fmt.Sprint(i))
		say(t, q, 17, fmt.Sprint(-i))
	}
	say(t, p, 18, large)
	say(t, q, 18, large)
	for i := range 100 {
		expectMessage(t, q, 16, fmt.Sprint(i))
		expectMessage(t, p, 17, fmt.Sprint(-i))
	}
	expectMessage(t, q, 18, large)
	expectMessage(t, p, 18, large)
	until(t, "a round trip", func() bool { return p.Stats().RTT > 0 && q.Stats().RTT > 0 })
	if s := p.Stats(); s.Payload != wire.MaxBody+190 || s.Sent <= s.Payload || s.Received <= wire.MaxBody {
		t.Errorf("%+v", s)
	}
	if p.Suspected() || p.Err() != nil {
		t.Error(p.Err())
	}
	if err := p.Send(wire.Message{Body: make([]byte, wire.MaxBody+100)}); err == nil {
		t.Error("a message of any size goes")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.Receive(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A peer that leaves has all its messages delivered, and the other side gets its reason.
func TestLeave(t *testing.T) {
	server, worker := admitAll(t), newNode(t, nil)
	p, q := pairUp(t, worker, server)
	for i := range 50 {
		say(t, p, 16, fmt.Sprint(i))
	}
	if err := p.Leave(bounded(t), "preempted\x1b[2J"); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		expectMessage(t, q, 16, fmt.Sprint(i))
	}
	_, err := q.Receive(bounded(t))
	if g, ok := errors.AsType[*GoneError](err); !ok || g.Cause != Left || g.Reason != "preempted[2J" {
		t.Errorf("%v", err)
	}
	if g := endOf(t, p); g.Cause != Closed && g.Cause != Left {
		t.Error(g)
	}
	if err := p.Send(wire.Message{Kind: 16}); err == nil {
		t.Error("a peer that left still sends")
	}
}

func TestEnds(t *testing.T) {
	server, worker := admitAll(t), newNode(t, nil)
	for _, c := range []struct {
		name    string
		end     func(*Peer)
		cause   Cause
		wantErr string
	}{
		{"closed", func(p *Peer) { p.Close("no more work") }, Left, "no more work"},
		{"cut", func(p *Peer) { p.Cut("it sent NaN") }, Ended, "it sent NaN"},
	} {
		p, q := pairUp(t, worker, server)
		c.end(q)
		if g := endOf(t, p); g.Cause != c.cause || g.Reason != c.wantErr {
			t.Errorf("%s: %v", c.name, g)
		}
		if _, err := p.Receive(bounded(t)); err == nil || !strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("%s: receive: %v", c.name, err)
		}
	}
	p, _ := pairUp(t, worker, server)
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if g := endOf(t, p); g.Cause != Left || g.Reason != "the program ends" {
		t.Error(g)
	}
	if _, err := server.Accept(bounded(t)); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func TestRefusals(t *testing.T) {
	gate := identity.NewGate(time.Now)
	server := newNode(t, func(c *Config) {
		c.Admit = func(_ context.Context, r Request) (wire.Welcome, error) {
			if r.Hello.Name == "broken" {
				return wire.Welcome{}, errors.New("the disk is full")
			}
			return wire.Welcome{}, gate.Admit(r.Node, r.Hello.Role, r.Hello.Token)
		}
	})
	token, err := gate.Issue(wire.Worker, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	worker, other, lone := newNode(t, nil), newNode(t, nil), newNode(t, nil)
	try := func(from, to *Node, pin wire.NodeID, h wire.Hello) error {
		p, _, err := from.Dial(bounded(t), to.Address().String(), pin, h)
		if err == nil {
			p.Close("")
		}
		return err
	}
	hello := wire.Hello{Role: wire.Worker, Token: token}
	for _, c := range []struct {
		name    string
		err     error
		code    string
		wantErr string
	}{
		{"no token", try(worker, server, server.ID(), wire.Hello{Role: wire.Worker}), wire.CodeTokenMissing, "needs the join URL"},
		{"wrong token", try(worker, server, server.ID(), wire.Hello{Role: wire.Worker, Token: "x"}), wire.CodeTokenUnknown, "unknown"},
		{"wrong role", try(worker, server, server.ID(), wire.Hello{Role: wire.Operator, Token: token}), wire.CodeRole, "for the role worker"},
		{"admitted", try(worker, server, server.ID(), hello), "", ""},
		{"by its key", try(worker, server, server.ID(), wire.Hello{Role: wire.Worker}), "", ""},
		{"replayed", try(other, server, server.ID(), hello), wire.CodeTokenUsed, "another key has used it"},
		{"an error of ours", try(other, server, server.ID(), wire.Hello{Role: wire.Worker, Name: "broken"}), wire.CodeRefused, "the disk is full"},
		{"a worker admits no peer", try(worker, lone, lone.ID(), hello), wire.CodeRole, "this is a worker"},
		{"another key answers", try(worker, server, other.ID(), hello), "-", "ask for a new join URL"},
		{"nothing is there", try(worker, server, server.ID(), wire.Hello{}), wire.CodeFormat, "unknown role"},
	} {
		r, refused := errors.AsType[wire.Refused](c.err)
		switch {
		case c.code == "" && c.err == nil:
		case c.code == "-" && !refused && strings.Contains(c.err.Error(), c.wantErr):
		case refused && r.Code == c.code && strings.Contains(c.err.Error(), c.wantErr):
		default:
			t.Errorf("%s: %v", c.name, c.err)
		}
	}
	gate.Revoke(worker.ID())
	if r, _ := errors.AsType[wire.Refused](try(worker, server, server.ID(), hello)); r.Code != wire.CodeRevoked {
		t.Errorf("revoked: %+v", r)
	}
}

func TestDialErrorHints(t *testing.T) {
	worker := newNode(t, nil)
	gone := newNode(t, nil)
	address := gone.Address().String()
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	for address, wantErr := range map[string]string{
		address: "nothing answers", "127.0.0.1": "missing port", "127.0.0.1:x": "unknown port", "no-such-host.invalid:1": "",
	} {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		if _, _, err := worker.Dial(ctx, address, gone.ID(), wire.Hello{Role: wire.Worker}); err == nil ||
			!strings.Contains(err.Error(), wantErr) || !strings.Contains(err.Error(), "dial "+address) {
			t.Errorf("%s: %v", address, err)
		}
		cancel()
	}
	cancelled, stop := context.WithCancel(context.Background())
	stop()
	if _, _, err := worker.Dial(cancelled, address, gone.ID(), wire.Hello{Role: wire.Worker}); !errors.Is(err,
		context.Canceled) {
		t.Error(err)
	}
	if _, err := Listen(Config{Key: newKey(t), Address: worker.Address().String()}); err == nil ||
		!strings.Contains(err.Error(), "a port that no other program uses") {
		t.Error(err)
	}
	if _, err := Listen(Config{Key: newKey(t), Address: "nowhere"}); err == nil ||
		!strings.Contains(err.Error(), "HOST:PORT") {
		t.Error(err)
	}
}

// A process that restarts with its key and port is detected from its first packet.
func TestRestartIsNoticed(t *testing.T) {
	server := admitAll(t)
	key := newKey(t)
	first := newNode(t, func(c *Config) { c.Key = key; c.Admit = welcome })
	at := first.Address().String()
	p, _ := pairUp(t, server, first)
	// As after kill -9: the socket disappears without a message.
	if err := first.conn.Close(); err != nil {
		t.Fatal(err)
	}
	newNode(t, func(c *Config) { c.Key = key; c.Address = at; c.Admit = welcome })
	if g := endOf(t, p); g.Cause != Restarted {
		t.Error(g)
	}
}
