package control

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"brood/models/engine"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/testutil"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
)

// serve records rs in a session, opens a control socket to it and dials it.
func serve(t *testing.T, rs []event.Record,
	execute func(context.Context, event.Command) (event.Receipt, error)) (*Server, *Client, *session.Session) {
	t.Helper()
	dir := t.TempDir()
	s, err := session.Create(filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	srv := NewServer(s.Dir(), view.New(), execute)
	for _, r := range rs {
		record(t, s, srv, r)
	}
	socket, err := session.SocketPath(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Skip("no Unix sockets here: " + err.Error())
	}
	srv.Serve(l)
	t.Cleanup(srv.Close)
	c, err := Dial(s.Dir(), "ada", false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return srv, c, s
}

func record(t *testing.T, s *session.Session, srv *Server, r event.Record) {
	t.Helper()
	if err := s.Append(r); err != nil {
		t.Fatal(err)
	}
	srv.Watch(r)
}

func TestContractLive(t *testing.T) {
	rs := sourcetest.Gossip(4, 30)
	_, c, s := serve(t, rs, nil)
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	sourcetest.Contract(t, c, rs, false)
}

func TestContractOver(t *testing.T) {
	rs := sourcetest.Gossip(4, 30)
	srv, c, s := serve(t, rs, nil)
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	srv.Over()
	sourcetest.Contract(t, c, rs, true)
}

// TestOlderThanTheRing: a late viewer gets the records that are no longer in the ring from the log.
func TestOlderThanTheRing(t *testing.T) {
	rs := sourcetest.Run(2, 40)
	srv, c, s := serve(t, rs, nil)
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	srv.mu.Lock()
	srv.base, srv.ring = srv.base+20, srv.ring[20:]
	srv.mu.Unlock()
	sourcetest.Contract(t, c, rs, false)
}

// TestRingOfManyMembers: the ring respects its bound on points even if each record has many members. The server reads
// older records from the log.
func TestRingOfManyMembers(t *testing.T) {
	const members = 4096
	rs := make([]event.Record, 2*ringPoints/members+20)
	for i := range rs {
		rs[i].Points = &event.Points{
			Round:   uint64(i + 1),
			Series:  "fitness",
			Members: make([]engine.Member, members),
			Values:  make([]float64, members),
		}
		for m := range members {
			rs[i].Points.Members[m] = engine.Member(m)
		}
	}
	srv, c, s := serve(t, rs, nil)
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	if held := members * len(srv.ring); held > 2*ringPoints || held != srv.points ||
		srv.base+uint64(len(srv.ring)) != uint64(len(rs)) {
		t.Errorf("the ring has %d records from %d on and counts %d points", len(srv.ring), srv.base, srv.points)
	}
	if b, err := c.Next(testutil.Context(t), 0, 1); err != nil || len(b.Records) != 1 || b.Records[0].Points.Round != 1 ||
		len(b.Records[0].Points.Members) != members {
		t.Errorf("the first record: %d records, %v", len(b.Records), err)
	}
}

// TestCommandWhileWaiting: a waiting viewer does not delay a command, and gets the records of the command.
func TestCommandWhileWaiting(t *testing.T) {
	var srv *Server
	var s *session.Session
	execute := func(_ context.Context, c event.Command) (event.Receipt, error) {
		record(t, s, srv, event.Record{Alert: &event.Alert{Text: "done"}})
		return event.Receipt{ID: c.ID, Accepted: true, Round: 7}, nil
	}
	rs := sourcetest.Run(2, 5)
	srv, c, s := serve(t, rs, execute)
	_ = srv
	got := make(chan view.Batch, 1)
	go func() {
		b, err := c.Next(testutil.Context(t), uint64(len(rs)), 10)
		if err == nil {
			got <- b
		}
		close(got)
	}()
	r, err := c.Command(testutil.Context(t), event.Command{ID: 3, Action: event.Pause})
	if err != nil || !r.Accepted || r.Round != 7 || r.ID != 3 {
		t.Fatalf("receipt %+v, %v", r, err)
	}
	if b := testutil.Receive(t, got, "batch for the waiting viewer"); len(b.Records) != 1 || b.Records[0].Alert == nil {
		t.Fatalf("the viewer got %+v", b)
	}
}

// TestLease: one viewer writes at a time. The rejection of another names the holder; another can take the lease.
func TestLease(t *testing.T) {
	execute := func(_ context.Context, c event.Command) (event.Receipt, error) {
		return event.Receipt{Accepted: true}, nil
	}
	srv, ada, s := serve(t, sourcetest.Run(2, 5), execute)
	dial := func(take bool) *Client {
		c, err := Dial(s.Dir(), "bob", take)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	try := func(c *Client) event.Receipt {
		r, err := c.Command(testutil.Context(t), event.Command{Action: event.Save})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := try(ada); !r.Accepted {
		t.Fatalf("ada: %+v", r)
	}
	extendLease(srv)
	if r := try(dial(false)); r.Accepted || !strings.Contains(r.Reason, "ada") {
		t.Errorf("bob wrote while ada held the lease: %+v", r)
	}
	if r := try(dial(true)); !r.Accepted {
		t.Errorf("bob could not take the lease: %+v", r)
	}
	if r := try(ada); r.Accepted {
		t.Error("ada wrote after bob took the lease")
	}
}

// dials returns a function that dials the session as a viewer of the given user.
func dials(t *testing.T, s *session.Session) func(name string) *Client {
	return func(name string) *Client {
		t.Helper()
		c, err := Dial(s.Dir(), name, false)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
}

// TestLeaseIsAViewers: of two viewers of a user one holds the lease. A single command of the user is accepted and does
// not change the lease. The lease ends when its viewer closes.
func TestLeaseIsAViewers(t *testing.T) {
	execute := func(_ context.Context, c event.Command) (event.Receipt, error) {
		return event.Receipt{Accepted: true}, nil
	}
	srv, first, s := serve(t, sourcetest.Run(2, 5), execute)
	dial := dials(t, s)
	refused := func(c *Client) string {
		t.Helper()
		r, err := c.Command(testutil.Context(t), event.Command{Action: event.Save})
		if err != nil || r.Accepted != (r.Reason == "") {
			t.Fatalf("%+v, %v", r, err)
		}
		return r.Reason
	}
	look := func(c *Client) view.Lease {
		t.Helper()
		l, err := c.Lease(testutil.Context(t), view.LeaseLook)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	second, bob := dial(first.id), dial("bob")
	if why := refused(first); why != "" {
		t.Fatal(why)
	}
	extendLease(srv)
	busy := func(when string) {
		t.Helper()
		if why := refused(second); !strings.HasPrefix(why, first.id+" elsewhere writes for ") {
			t.Errorf("%s: the reason for the second viewer is %q", when, why)
		}
		if l := look(second); l.Mine || l.Holder != first.id+" elsewhere" {
			t.Errorf("%s: the lease of the second viewer is %+v", when, l)
		}
		if l := look(bob); l.Mine || l.Holder != first.id {
			t.Errorf("%s: the lease of bob is %+v", when, l)
		}
	}
	busy("at first")
	for name, ok := range map[string]bool{first.id: true, "bob": false} {
		c := dial(name)
		if c.ActAsUser(); (refused(c) == "") != ok {
			t.Errorf("a single command of %s is accepted: %v", name, !ok)
		}
		if _, err := c.Lease(testutil.Context(t), view.LeaseGive); err == nil {
			t.Errorf("a single command of %s gives the lease", name)
		}
		c.Close()
	}
	busy("after single commands")
	if l := look(first); !l.Mine || l.Holder != first.id {
		t.Errorf("the lease of the first viewer is %+v", l)
	}

	first.Close()
	testutil.Eventually(t, "the second viewer writes after the first has closed",
		func() bool { return refused(second) == "" })
	extendLease(srv)
	second.Close()
	testutil.Eventually(t, "the lease is free after its viewer has closed", func() bool { return look(bob).Holder == "" })
	if why := refused(bob); why != "" {
		t.Error(why)
	}
}

// TestLeaseIsAskedFor: the lease is free until the first command. A viewer can request it: the holder sees the request,
// and the lease passes when the holder gives it, lets it expire or closes.
func TestLeaseIsAskedFor(t *testing.T) {
	execute := func(_ context.Context, c event.Command) (event.Receipt, error) {
		return event.Receipt{Accepted: true}, nil
	}
	srv, ada, s := serve(t, sourcetest.Run(2, 5), execute)
	dial := dials(t, s)
	bob, carol := dial("bob"), dial("carol")
	must := func(c *Client, act view.LeaseAct) view.Lease {
		t.Helper()
		l, err := c.Lease(testutil.Context(t), act)
		if err != nil {
			t.Fatal(err)
		}
		if n, cached := c.Watchers(); n != 0 || cached.Holder != l.Holder || cached.Mine != l.Mine {
			t.Errorf("the client caches %+v, the answer is %+v", cached, l)
		}
		return l
	}
	write := func(c *Client) event.Receipt {
		t.Helper()
		r, err := c.Command(testutil.Context(t), event.Command{Action: event.Save})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, c := range []*Client{ada, bob, carol} {
		if l := must(c, view.LeaseLook); l.Holder != "" || l.Mine {
			t.Errorf("before the first command the lease of %s is %+v", c.id, l)
		}
	}
	if r := write(ada); !r.Accepted {
		t.Fatal(r.Reason)
	}
	extendLease(srv)
	if r := write(bob); r.Accepted || !strings.HasPrefix(r.Reason, "ada writes for ") ||
		!strings.Contains(r.Reason, ":take") {
		t.Errorf("the receipt of bob is %+v", r)
	}
	if l := must(bob, view.LeaseAsk); l.Holder != "ada" || l.Mine || l.Asks != "bob" {
		t.Errorf("bob asks: %+v", l)
	}
	if _, err := carol.Lease(t.Context(), view.LeaseAsk); err == nil ||
		!strings.Contains(err.Error(), "bob asked before you") {
		t.Errorf("carol asks too: %v", err)
	}
	if _, err := carol.Lease(t.Context(), view.LeaseGive); err == nil {
		t.Error("carol gives the lease that ada holds")
	}
	if l := must(ada, view.LeaseLook); !l.Mine || l.Asks != "bob" {
		t.Errorf("the lease of ada is %+v", l)
	}
	if l := must(ada, view.LeaseGive); l.Holder != "bob" || l.Mine || l.Asks != "" {
		t.Errorf("ada gives: %+v", l)
	}
	if r := write(ada); r.Accepted {
		t.Error("ada writes after she gave the lease")
	}
	if r := write(bob); !r.Accepted {
		t.Error(r.Reason)
	}
	must(carol, view.LeaseAsk)
	srv.mu.Lock()
	srv.lease.until = time.Now() // the lease expires
	srv.mu.Unlock()
	if l := must(carol, view.LeaseLook); !l.Mine || l.Left <= 0 {
		t.Errorf("after the lease of bob that of carol is %+v", l)
	}
	must(bob, view.LeaseAsk)
	extendLease(srv)
	carol.Close()
	testutil.Eventually(t, "bob holds the lease after carol has closed",
		func() bool { return must(bob, view.LeaseLook).Mine })
}

func TestHostileLengths(t *testing.T) {
	_, c, s := serve(t, sourcetest.Run(2, 5), nil)
	socket, err := session.SocketPath(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for _, bytes := range []string{"\xff\xff\xff\xff", "\x02\x00\x00\x00{", "\x05\x00\x00\x00\xff\xff\xff\xff\xff", ""} {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, bytes); err != nil {
			t.Fatal(err)
		}
		if uc, ok := conn.(*net.UnixConn); ok {
			_ = uc.CloseWrite()
		}
		_ = conn.SetReadDeadline(time.Now().Add(testutil.Timeout))
		if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("%q: answered %d bytes, %v", bytes, n, err)
		}
		conn.Close()
	}
	if _, err := c.Snapshot(testutil.Context(t), math.MaxUint64); err != nil {
		t.Errorf("another client: %v", err)
	}
}

// TestBound: a client rejects an answer of more bytes than its bound.
func TestBound(t *testing.T) {
	_, c, _ := serve(t, sourcetest.Gossip(4, 30), nil)
	c.Bound(1 << 10)
	if v, err := c.Snapshot(testutil.Context(t), math.MaxUint64); v != nil || err == nil ||
		!strings.Contains(err.Error(), "is larger than 1024") {
		t.Errorf("%v, %v", v, err)
	}
}

// TestWaits: a wait that times out keeps the connection. A canceled wait returns at once.
func TestWaits(t *testing.T) {
	dials := 0
	srv, c, s := serve(t, sourcetest.Run(2, 5), nil)
	dial := c.dial
	c.dial = func(ctx context.Context) (net.Conn, error) { dials++; return dial(ctx) }
	v, err := c.Snapshot(testutil.Context(t), math.MaxUint64)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		if _, err := c.Next(ctx, v.Position, 10); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait that times out returns %v", err)
		}
		cancel()
	}
	record(t, s, srv, event.Record{Alert: &event.Alert{Text: "done"}})
	ctx, cancel := context.WithTimeout(context.Background(), testutil.Timeout)
	if b, err := c.Next(ctx, v.Position, 10); err != nil || len(b.Records) != 1 || dials != 0 {
		t.Errorf("%+v, %v, after %d further connections", b, err, dials)
	}
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := c.Next(ctx, v.Position+1, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled wait returns %v", err)
	}
	if n, _ := c.Watchers(); n != 1 {
		t.Errorf("%d viewers", n)
	}
}

// TestReadOnlyClient: a read-only client sees the lease, but cannot request it, nor the process log.
func TestReadOnlyClient(t *testing.T) {
	_, ada, s := serve(t, sourcetest.Run(2, 5), func(_ context.Context, c event.Command) (event.Receipt, error) {
		return event.Receipt{Accepted: true}, nil
	})
	if _, err := ada.Command(t.Context(), event.Command{Action: event.Save}); err != nil {
		t.Fatal(err)
	}
	socket, err := session.SocketPath(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if err := session.AppendProcessLog(s.Dir(), "worker 1 joined", time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, may := range []bool{false, true} {
		c := NewClient("bob", false, func(context.Context) (net.Conn, error) {
			here, there := net.Pipe()
			to, err := net.Dial("unix", socket)
			if err != nil {
				return nil, err
			}
			go func() { _ = Relay(t.Context(), there, to, RelayedClient{Name: "bob@key", Command: may}, nil) }()
			return here, nil
		})
		if l, err := c.Lease(testutil.Context(t), view.LeaseLook); err != nil || l.Holder != "ada" || l.Mine {
			t.Errorf("the lease is %+v, %v", l, err)
		}
		if l, err := c.Lease(testutil.Context(t), view.LeaseAsk); may != (err == nil) || may && l.Asks != "bob@key" ||
			!may && !strings.Contains(err.Error(), "a viewer may look only") {
			t.Errorf("may command %v: a request for the lease returns %+v, %v", may, l, err)
		}
		if lines, err := c.ProcessLog(testutil.Context(t)); may != (err == nil) ||
			may != (len(lines) == 1 && lines[0].Text == "worker 1 joined") {
			t.Errorf("may command %v: the process log is %v, %v", may, lines, err)
		}
		c.Close()
	}

	// A local read-only client, such as one by SSH, does not read the process log from the disk.
	c, err := Dial(s.Dir(), "viewer@key", false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetReadOnly()
	_, processLog := c.ProcessLog(testutil.Context(t))
	_, command := c.Command(testutil.Context(t), event.Command{Action: event.Save})
	_, gate := c.Gate(testutil.Context(t), Gate{Role: "operator"})
	_, lease := c.Lease(testutil.Context(t), view.LeaseAsk)
	for what, err := range map[string]error{"process log": processLog, "command": command, "gate": gate, "lease": lease} {
		if err == nil || !strings.Contains(err.Error(), "a viewer may look only") {
			t.Errorf("%s of a read-only client: %v", what, err)
		}
	}
	if l, err := c.Lease(testutil.Context(t), view.LeaseLook); err != nil || l.Holder != "ada" {
		t.Errorf("the lease is %+v, %v", l, err)
	}
}

// counted counts the bytes read from a connection.
type counted struct {
	net.Conn
	bytes *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// TestProcessLogSendsNewLines: a client gets only lines that it does not have, also after the file was truncated. An
// older server sends all lines each time.
func TestProcessLogSendsNewLines(t *testing.T) {
	_, _, s := serve(t, nil, nil)
	appendLine := func(text string) {
		if err := session.AppendProcessLog(s.Dir(), text, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	socket, err := session.SocketPath(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	var bytes atomic.Int64
	c := NewClient("bob", false, func(context.Context) (net.Conn, error) {
		conn, err := net.Dial("unix", socket)
		return counted{conn, &bytes}, err
	})
	defer c.Close()
	expect := func(lines int, last string, most int64) {
		t.Helper()
		before := bytes.Load()
		got, err := c.ProcessLog(testutil.Context(t))
		if err != nil || len(got) != lines || got[lines-1].Text != last || bytes.Load()-before > most {
			t.Fatalf("%d lines in %d bytes, %v: want %d in at most %d", len(got), bytes.Load()-before, err, lines, most)
		}
	}
	appendLine(strings.Repeat("a line of a process\n", 500))
	expect(500, "a line of a process", 50000)
	expect(500, "a line of a process", 200)
	appendLine("new")
	expect(501, "new", 300)
	if err := os.WriteFile(filepath.Join(s.Dir(), session.HostLog), []byte("panic: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(502, "panic: x", 300)
	appendLine("newer") // before those without times
	expect(503, "panic: x", 400)
	if err := os.Remove(filepath.Join(s.Dir(), session.ProcessLogFile)); err != nil {
		t.Fatal(err)
	}
	appendLine("after")
	expect(2, "panic: x", 300)

	for _, after := range []int{0, 7} {
		old := NewClient("bob", false, func(context.Context) (net.Conn, error) {
			here, there := net.Pipe()
			go func() {
				var q request
				for receive(there, maxMessage, &q) == nil {
					_ = answerTo(there, answer{Lines: []session.Line{{At: 1, Text: "all"}}, After: after})
				}
			}()
			return here, nil
		})
		for range 2 {
			if lines, err := old.ProcessLog(testutil.Context(t)); (err == nil) != (after == 0) || err == nil && len(lines) != 1 {
				t.Errorf("after %d: %v, %v", after, lines, err)
			}
		}
		old.Close()
	}
}

// TestReceiptOfStop: the client that stops a run gets a receipt before the control socket closes.
func TestReceiptOfStop(t *testing.T) {
	var srv *Server
	execute := func(_ context.Context, c event.Command) (event.Receipt, error) {
		go srv.Close()
		testutil.Eventually(t, "the control socket begins to close", func() bool {
			srv.mu.Lock()
			defer srv.mu.Unlock()
			return srv.over
		})
		time.Sleep(20 * time.Millisecond) // time in which the socket must not close
		return event.Receipt{ID: c.ID, Accepted: true}, nil
	}
	srv, c, _ := serve(t, sourcetest.Run(2, 5), execute)
	if r, err := c.Command(testutil.Context(t), event.Command{ID: 3, Action: event.Stop}); err != nil || !r.Accepted {
		t.Errorf("receipt %+v, %v", r, err)
	}
}

// TestClosedAtOnce: Close may be called at once after Serve, as by a run of a few milliseconds.
func TestClosedAtOnce(t *testing.T) {
	for i := range 100 {
		srv := NewServer("", view.New(), nil)
		l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
		if err != nil {
			t.Skip("no Unix sockets here: " + err.Error())
		}
		srv.Serve(l)
		srv.Close()
		if c, err := l.Accept(); err == nil {
			c.Close()
			t.Fatalf("%d: the socket still listens", i)
		}
	}
}
