package remote

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"brood/models/engine"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/message"
	"brood/runtime/session"
	"brood/runtime/testutil"
	"brood/transport/identity"
	"brood/transport/quic"
	"brood/transport/wire"
)

// rawWorker joins as a worker and lets the test send arbitrary messages.
type rawWorker struct {
	t    *testing.T
	node *quic.Node
	peer *quic.Peer
	id   int
}

func hello(s *served, change func(*wire.Hello)) (wire.Hello, identity.Join) {
	join, err := identity.ParseJoin(s.srv.Join(wire.Worker))
	if err != nil {
		s.t.Fatal(err)
	}
	h := wire.Hello{Role: wire.Worker, Name: "m", Token: join.Token, Kernels: strings.Join(host.AllKernels(), ",")}
	if change != nil {
		change(&h)
	}
	return h, join
}

func joinRaw(s *served, key *identity.Key, change func(*wire.Hello)) (*rawWorker, error) {
	node, err := quic.Listen(quic.Config{Key: key, Address: "127.0.0.1:0"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { node.Close() })
	h, join := hello(s, change)
	peer, w, err := node.Dial(testutil.Context(s.t), join.Address, join.Server, h)
	if err != nil {
		return nil, err
	}
	return &rawWorker{s.t, node, peer, int(w.Worker)}, nil
}

func (x *rawWorker) send(msg any) {
	m, err := encode(msg)
	if err != nil {
		x.t.Fatal(err)
	}
	_ = x.peer.Send(m) // the connection may be closed already
}

// receive returns the next message except rosters.
func (x *rawWorker) receive() (any, error) {
	for {
		m, err := x.peer.Receive(testutil.Context(x.t))
		if err != nil {
			return nil, err
		}
		if m.Kind != wire.KindRoster {
			return message.Decode(m.Kind, m.Body)
		}
	}
}

// TestHostileWorkers: a worker that violates the protocol is disconnected with the reason. It writes no file into the
// session, and the run continues.
func TestHostileWorkers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	s := serve(t, prepare(t, small(3)), nil, dir, nil)
	key := newKey(t)
	ready := func(x *rawWorker) { x.send(message.Ready{Worker: x.id}) }
	for name, c := range map[string]struct {
		do   func(x *rawWorker)
		want string
	}{
		"sends as another":           {func(x *rawWorker) { ready(x); x.send(message.Done{Worker: x.id + 1, Epoch: 1}) }, "it sends as worker"},
		"sends before it has joined": {func(x *rawWorker) { x.send(message.Done{Worker: x.id, Epoch: 1}) }, "it sends as worker"},
		"joins as another":           {func(x *rawWorker) { x.send(message.Ready{Worker: x.id + 7}) }, "it sends as worker"},
		"joins twice":                {func(x *rawWorker) { ready(x); ready(x) }, "twice"},
		"sends an order":             {func(x *rawWorker) { x.send(message.Grant{Epoch: 1}) }, "may not send messages"},
		"sends nonsense":             {func(x *rawWorker) { _ = x.peer.Send(wire.Message{Kind: 32, Body: []byte("hello")}) }, "message"},
		"saves without an order": {func(x *rawWorker) {
			x.send(message.Piece{Path: session.CheckpointFile(3, 1, x.id), Total: 1, Data: []byte{1}})
		}, "it was not ordered to save the file"},
		"replies without an order": {func(x *rawWorker) {
			ready(x)
			for range 50 {
				x.send(message.Done{Worker: x.id})
			}
		}, "without an order"},
		"leaves twice": {func(x *rawWorker) {
			ready(x)
			x.send(message.Leaving{Worker: x.id})
			x.send(message.Leaving{Worker: x.id})
		}, "twice that it leaves"},
		"sends too much telemetry": {func(x *rawWorker) {
			for range 1000 {
				x.send(message.Telemetry{Worker: x.id})
			}
		}, "more often than once a second"},
		"reports links that do not exist": {func(x *rawWorker) {
			x.send(message.Telemetry{Worker: x.id, Links: make([]message.LinkCount, 3000)})
		}, "worker 0"},
		"measures NaN": {func(x *rawWorker) {
			x.send(message.Telemetry{Worker: x.id, Links: []message.LinkCount{{To: x.id + 1, Lost: math.NaN()}}})
		}, "measures"},
		"reports NaN as load": {func(x *rawWorker) {
			x.send(message.Telemetry{Worker: x.id, Machine: map[event.Measure]float64{event.Busy: math.NaN()}})
		}, "implausible cpu of NaN"},
		"reports infinite memory": {func(x *rawWorker) {
			x.send(message.Telemetry{Worker: x.id, Machine: map[event.Measure]float64{event.Memory: math.MaxFloat64}})
		}, "implausible memory"},
		"measures for the coordinator": {func(x *rawWorker) {
			ready(x)
			x.send(message.Telemetry{Worker: x.id, Machine: map[event.Measure]float64{event.RoundTrip: 1}})
		}, "which the coordinator measures"},
		"reports an unknown measure": {func(x *rawWorker) {
			x.send(message.Telemetry{Worker: x.id, Machine: map[event.Measure]float64{"\x1b[2J": 1}})
		}, "invalid name"},
		"works for a negative time": {func(x *rawWorker) {
			x.send(message.Telemetry{Worker: x.id, Doing: &message.Doing{Stage: "members", For: -1}})
		}, "reports its activity as"},
		"prepares a negative number of members": {func(x *rawWorker) {
			x.send(message.Telemetry{Worker: x.id, Doing: &message.Doing{Stage: "members", Done: math.MinInt64}})
		}, "reports its activity as"},
		"prepares too many members": {func(x *rawWorker) {
			x.send(message.Telemetry{Worker: x.id, Doing: &message.Doing{Stage: "members", Of: math.MaxInt64}})
		}, "reports its activity as"},
		"hosts too many members": {func(x *rawWorker) {
			x.send(message.Telemetry{Worker: x.id, Doing: &message.Doing{Stage: "members", Members: math.MaxInt64}})
		}, "reports its activity as"},
		"executes an impossible round": {func(x *rawWorker) {
			x.send(message.Telemetry{Worker: x.id, Doing: &message.Doing{Stage: "round", Round: math.MaxUint64}})
		}, "reports its activity as"},
		"reports 5000 measures": {func(x *rawWorker) {
			all := map[event.Measure]float64{}
			for i := range 5000 {
				all[event.Measure(fmt.Sprint(i))] = 1
			}
			x.send(message.Telemetry{Worker: x.id, Machine: all})
		}, ""},
		"sends invalid UTF-8": {func(x *rawWorker) {
			_ = x.peer.Send(wire.Message{Kind: 39, Body: []byte{0xa2, 0, byte(x.id), 2, 0xa1, 0x62, 0xff, 0xfe, 1}})
		}, ""},
		"sends a frame of nulls": {func(x *rawWorker) {
			nulls := append([]byte{0xa1, 7, 0x9a, 0, 0x1f, 0xff, 0xff}, bytes.Repeat([]byte{0xf6}, 0x1fffff)...)
			_ = x.peer.Send(wire.Message{Kind: 33, Body: nulls})
		}, "MiB"},
		"leaves the directory": {func(x *rawWorker) { x.send(message.Piece{Path: "../../evil", Total: 1, Data: []byte{1}}) }, "it was not ordered to save the file"},
		"overwrites the log":   {func(x *rawWorker) { x.send(message.Piece{Path: "log-000001.brood", Total: 1, Data: []byte{1}}) }, "it was not ordered to save the file"},
	} {
		x, err := joinRaw(s, key, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m, err := x.receive(); err != nil {
			t.Fatalf("%s: %v", name, err)
		} else if _, ok := m.(message.Setup); !ok {
			t.Fatalf("%s: the first message is %T", name, m)
		}
		c.do(x)
		for err == nil {
			_, err = x.receive()
		}
		if gone, ok := errors.AsType[*quic.GoneError](err); !ok || gone.Cause != quic.Ended ||
			!strings.Contains(gone.Reason, c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	x, err := joinRaw(s, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"log-000001.brood", "../run/log-000001.brood", "/etc/passwd", "checkpoints/1/../../lock",
		"checkpoints/01/epoch-1-worker-0.safetensors", "checkpoints/1/epoch-1-worker-0.safetensors"} {
		x.send(message.Get{Path: path})
		for {
			m, err := x.receive()
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			p, ok := m.(message.Piece)
			if !ok {
				continue
			}
			if p.Path != path || p.Err == "" || len(p.Data) > 0 || strings.Contains(p.Err, dir) {
				t.Errorf("the reply for %s is %+v", path, p)
			}
			break
		}
	}
	x.peer.Close("")
	if _, err := os.Stat(filepath.Join(dir, session.CheckpointDir)); !os.IsNotExist(err) {
		t.Errorf("a checkpoint folder exists: %v", err)
	}
	end := s.work(t.Context(), s.config())
	if exit := s.train(); exit.Phase != event.Finished {
		t.Errorf("%+v", exit)
	}
	if err := testutil.Receive(t, end, "end of a worker"); err != nil {
		t.Error(err)
	}
	verifies(t, dir, s.hash)
}

// TestInsider: a worker that sends impossible reports during a run is evicted. The alert is one printable line that
// names the worker as the source, the run continues with the others, and the session verifies.
func TestInsider(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	var alerts []string
	s := serve(t, prepare(t, small(3)), nil, dir, func(r event.Record) {
		if r.Alert != nil {
			alerts = append(alerts, r.Alert.Text)
		}
	})
	trained := make(chan coordinator.Exit)
	go func() { trained <- s.train() }()
	for _, bad := range []func(x *rawWorker, g message.Grant) any{
		func(x *rawWorker, g message.Grant) any {
			return message.Failed{Worker: x.id, Epoch: g.Epoch, Err: "\x1b[2J\x1b]0;hello\x07\nbrood: the run is over"}
		},
		func(x *rawWorker, g message.Grant) any {
			return message.Done{
				Worker: x.id,
				Epoch:  g.Epoch,
				From:   g.From,
				To:     g.To,
				Points: []event.Points{{Round: g.To, Series: "loss", Members: []engine.Member{2, 1, 0}, Values: []float64{1}}},
			}
		},
		func(x *rawWorker, g message.Grant) any {
			return message.Done{
				Worker:   x.id,
				Epoch:    g.Epoch,
				From:     g.From,
				To:       1 << 62,
				Progress: event.Progress{Rounds: 1 << 62, Epochs: math.Inf(1)},
			}
		},
	} {
		x, err := joinRaw(s, newKey(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		x.send(message.Ready{Worker: x.id})
		var away message.Evict
		for err == nil {
			var m any
			m, err = x.receive()
			switch m := m.(type) {
			case message.Plan:
				x.send(message.Ready{Worker: x.id, Epoch: m.Epoch})
			case message.Grant:
				x.send(bad(x, m))
			case message.Evict:
				away = m
			}
		}
		if gone, ok := errors.AsType[*quic.GoneError](err); !ok || gone.Cause != quic.Left || away.Why == "" ||
			away.After != 0 || gone.Reason != away.Why {
			t.Errorf("the bad worker ends with %v, after %+v", err, away)
		}
	}
	cfg := s.config()
	token, err := s.srv.gate.Issue(wire.Worker, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Join.Token = token
	end := s.work(t.Context(), cfg)
	if exit := testutil.Receive(t, trained, "end of the run"); exit.Phase != event.Finished {
		t.Errorf("%+v", exit)
	}
	if err := testutil.Receive(t, end, "end of a worker"); err != nil {
		t.Error(err)
	}
	if want := "worker 0 is lost: it reports: [2J]0;hello brood: the run is over"; !slices.Contains(alerts, want) {
		t.Errorf("alerts %q, want %q", alerts, want)
	}
	if all := strings.Join(append(alerts, s.notes.all...), ""); strings.ContainsFunc(all, unicode.IsControl) {
		t.Errorf("alerts and notes have control characters: %q", all)
	}
	verifies(t, dir, s.hash)
}

// TestRefusals: each refusal names the difference, and only a temporary one asks for a retry.
func TestRefusals(t *testing.T) {
	s := serve(t, prepare(t, small(3)), nil, filepath.Join(t.TempDir(), "run"), nil)
	defer func() {
		if err := errors.Join(s.srv.Close(), s.run.Close()); err != nil {
			t.Error(err)
		}
	}()
	c := s.run.Job.Config
	for _, r := range []struct {
		change func(*wire.Hello)
		code   string
		want   []string
	}{
		{func(h *wire.Hello) { h.Kernels = "native/m68k" }, wire.CodeRefused, []string{"native/m68k", c.Kernels}},
		{func(h *wire.Hello) { h.Kernels = "bf16/1/cuda9.0" }, wire.CodeRefused, []string{c.Kernels, "remove ,bf16 from --device"}},
		{func(h *wire.Hello) { h.Data = map[string]string{c.Data: "blake3:00"} }, wire.CodeData, []string{c.Data, "blake3:00", c.Digest}},
		{func(h *wire.Hello) { h.Run = wire.RunID{1} }, wire.CodeRun, []string{"join URL"}},
		{func(h *wire.Hello) { h.Listen = []string{"nowhere"} }, wire.CodeRefused, []string{"nowhere", "--advertise"}},
		{func(h *wire.Hello) { h.Token = "x" }, wire.CodeTokenUnknown, []string{"token"}},
		{func(h *wire.Hello) { h.Role = wire.Viewer }, wire.CodeRole, []string{"viewer"}},
	} {
		_, err := joinRaw(s, newKey(t), r.change)
		got, ok := errors.AsType[wire.Refused](err)
		if !ok || got.Code != r.code || got.Retry {
			t.Errorf("want %s: %v", r.code, err)
		}
		for _, word := range r.want {
			if !strings.Contains(got.Reason, word) {
				t.Errorf("%q does not name %q", got.Reason, word)
			}
		}
	}
	s.srv.mu.Lock()
	s.srv.runs, s.srv.session = nil, "" // the state before Serve
	s.srv.mu.Unlock()
	if _, err := joinRaw(s, newKey(t), nil); err == nil {
		t.Error("admitted before the run is prepared")
	} else if got, _ := errors.AsType[wire.Refused](err); !got.Retry {
		t.Errorf("%v", err)
	}
}

// TestComesAgain: a worker that connects again with the same key replaces its earlier session, without another token.
func TestComesAgain(t *testing.T) {
	s := serve(t, prepare(t, small(3)), nil, filepath.Join(t.TempDir(), "run"), nil)
	key := newKey(t)
	first, err := joinRaw(s, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	var again *rawWorker
	for late := time.Now().Add(testutil.Timeout); again == nil; {
		if time.Now().After(late) {
			t.Fatalf("not admitted again after %s: %v", testutil.Timeout, err)
		}
		if again, err = joinRaw(s, key, func(h *wire.Hello) { h.Token = "" }); err != nil {
			if got, _ := errors.AsType[wire.Refused](err); !got.Retry {
				t.Fatal(err)
			}
		}
	}
	testutil.Receive(t, first.peer.Done(), "end of the first session")
	if again.id == first.id || again.peer.Err() != nil {
		t.Errorf("numbers %d and %d, %v", first.id, again.id, again.peer.Err())
	}
	if err := errors.Join(s.srv.Close(), s.run.Close()); err != nil {
		t.Error(err)
	}
}

// TestCheckpointStore: pieces in order produce the file atomically; anything else leaves no file behind.
func TestCheckpointStore(t *testing.T) {
	dir := t.TempDir()
	rel := session.CheckpointFile(5, 2, 1)
	want := bytes.Repeat([]byte("abcdefg"), 3)
	piece := func(from, to int) message.Piece {
		return message.Piece{Path: rel, From: int64(from), Total: int64(len(want)), Data: want[from:to]}
	}
	s := &checkpointStore{dir: dir}
	left := func() int {
		all, _ := filepath.Glob(filepath.Join(dir, "checkpoints", "5", "*"))
		return len(all)
	}
	for _, bad := range []message.Piece{piece(7, 14), {Path: rel, Total: 3}, {Path: rel, Total: 1, Data: []byte{1, 2}},
		{Path: rel, From: -1, Total: 9, Data: []byte{1}},
		{Path: rel, Total: 1 << 40, Data: []byte{1}}, {Path: rel, From: 1 << 62, Total: 9, Data: []byte{1}}} {
		if _, _, err := s.append(bad); err == nil {
			t.Errorf("accepted %+v", bad)
		}
	}
	for i := 0; i < len(want); i += 7 {
		whole, k, err := s.append(piece(i, i+7))
		if err != nil || k.Err != "" || whole != (i == 14) || k.From != int64(i) || k.Path != rel {
			t.Fatalf("%v %+v %v", whole, k, err)
		}
		if i == 7 {
			if _, _, err := s.append(piece(0, 7)); err != nil { // starts again from the first piece
				t.Fatal(err)
			}
			if _, _, err := s.append(piece(7, 14)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := s.serve(message.Get{Path: rel, From: 3}); got.Err != "" || got.Total != int64(len(want)) ||
		!bytes.Equal(got.Data, want[3:]) {
		t.Errorf("%+v", got)
	}
	if left() != 1 {
		t.Errorf("%d files", left())
	}
	other := session.CheckpointFile(5, 3, 1)
	if _, _, err := s.append(message.Piece{Path: other, Total: 9, Data: want[:4]}); err != nil || left() != 2 {
		t.Fatalf("%v, %d files", err, left())
	}
	if s.discard(); left() != 1 {
		t.Errorf("%d files after half of one", left())
	}
	// A write error is returned to the worker and is no violation of the protocol.
	if err := os.WriteFile(filepath.Join(dir, "checkpoints", "6"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, k, err := s.append(message.Piece{Path: session.CheckpointFile(6, 3, 1), Total: 9, Data: want[:4]}); err != nil ||
		k.Err == "" {
		t.Errorf("%+v, %v", k, err)
	}
}

// TestLargeFile: a checkpoint file of a worker may not be larger than its rows.
func TestLargeFile(t *testing.T) {
	rel := session.CheckpointFile(5, 2, 1)
	x := &workerHandle{saves: map[string]message.Save{rel: {Most: 1 << 20}}, files: checkpointStore{dir: t.TempDir()}}
	if err := x.storePiece(message.Piece{Path: rel, Total: 1<<20 + 1, Data: []byte{1}}); err == nil ||
		!strings.Contains(err.Error(), "take at most 1048576") {
		t.Errorf("%v", err)
	}
}

// TestWrongData: a worker whose data have another digest leaves, and both sides get both digests.
func TestWrongData(t *testing.T) {
	s := serve(t, prepare(t, small(3)), nil, filepath.Join(t.TempDir(), "run"), nil)
	digest := s.run.Job.Config.Digest
	s.srv.mu.Lock()
	s.srv.runs[0].config.Digest = "blake3:77"
	s.srv.mu.Unlock()
	err := testutil.Receive(t, s.work(t.Context(), s.config()), "end of the worker")
	var out *RefusedError
	if !errors.As(err, &out) || !strings.Contains(err.Error(), digest) || !strings.Contains(err.Error(), "blake3:77") ||
		!strings.Contains(err.Error(), "glyphs") {
		t.Errorf("%v", err)
	}
	// the side that closes gets no reason from the peer
	testutil.Eventually(t, "the worker to leave", func() bool { return s.notes.text() != "" })
	if err := errors.Join(s.srv.Close(), s.run.Close()); err != nil {
		t.Error(err)
	}
	testutil.Wait(s.t, &s.workers, "end of all workers")
	if text := s.notes.text(); !strings.Contains(text, "it left: this machine cannot take part: ") ||
		!strings.Contains(text, digest) {
		t.Errorf("the notes are %q", text)
	}
}
