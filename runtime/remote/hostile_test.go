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

// stranger joins as a worker that does as it likes.
type stranger struct {
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

func knock(s *served, key *identity.Key, change func(*wire.Hello)) (*stranger, error) {
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
	return &stranger{s.t, node, peer, int(w.Worker)}, nil
}

func (x *stranger) say(msg any) {
	m, err := encode(msg)
	if err != nil {
		x.t.Fatal(err)
	}
	_ = x.peer.Send(m) // it may be cut already
}

// next is the next message that is no roster.
func (x *stranger) next() (any, error) {
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

// TestHostileWorkers: who breaks a rule is cut, with the reason; nothing appears among the session's files, and the run
// goes on.
func TestHostileWorkers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	s := serve(t, prepare(t, small(3)), nil, dir, nil)
	key := newKey(t)
	ready := func(x *stranger) { x.say(message.Ready{Worker: x.id}) }
	for name, c := range map[string]struct {
		do   func(x *stranger)
		says string
	}{
		"speaks as another":     {func(x *stranger) { ready(x); x.say(message.Done{Worker: x.id + 1, Epoch: 1}) }, "it speaks as worker"},
		"speaks before it sits": {func(x *stranger) { x.say(message.Done{Worker: x.id, Epoch: 1}) }, "it speaks as worker"},
		"sits as another":       {func(x *stranger) { x.say(message.Ready{Worker: x.id + 7}) }, "it speaks as worker"},
		"sits twice":            {func(x *stranger) { ready(x); ready(x) }, "twice"},
		"commands":              {func(x *stranger) { x.say(message.Grant{Epoch: 1}) }, "may not send messages"},
		"sends nonsense":        {func(x *stranger) { _ = x.peer.Send(wire.Message{Kind: 32, Body: []byte("hello")}) }, "message"},
		"saves unasked": {func(x *stranger) {
			x.say(message.Piece{Path: session.CheckpointFile(3, 1, x.id), Total: 1, Data: []byte{1}})
		}, "it was not asked for the file"},
		"answers unasked": {func(x *stranger) {
			ready(x)
			for range 50 {
				x.say(message.Done{Worker: x.id})
			}
		}, "without an order"},
		"leaves twice": {func(x *stranger) {
			ready(x)
			x.say(message.Leaving{Worker: x.id})
			x.say(message.Leaving{Worker: x.id})
		}, "twice that it leaves"},
		"tells too much": {func(x *stranger) {
			for range 1000 {
				x.say(message.Telemetry{Worker: x.id})
			}
		}, "more often than once a second"},
		"tells of links that are not": {func(x *stranger) {
			x.say(message.Telemetry{Worker: x.id, Links: make([]message.LinkCount, 3000)})
		}, "worker 0"},
		"measures what is no number": {func(x *stranger) {
			x.say(message.Telemetry{Worker: x.id, Links: []message.LinkCount{{To: x.id + 1, Lost: math.NaN()}}})
		}, "measures"},
		"has no cores that can be counted": {func(x *stranger) {
			x.say(message.Telemetry{Worker: x.id, Machine: map[event.Measure]float64{event.Busy: math.NaN()}})
		}, "implausible cpu of NaN"},
		"has all memory there is": {func(x *stranger) {
			x.say(message.Telemetry{Worker: x.id, Machine: map[event.Measure]float64{event.Memory: math.MaxFloat64}})
		}, "implausible memory"},
		"measures what is not its own": {func(x *stranger) {
			ready(x)
			x.say(message.Telemetry{Worker: x.id, Machine: map[event.Measure]float64{event.RoundTrip: 1}})
		}, "which the coordinator measures"},
		"measures what has no name": {func(x *stranger) {
			x.say(message.Telemetry{Worker: x.id, Machine: map[event.Measure]float64{"\x1b[2J": 1}})
		}, "invalid name"},
		"works since before it began": {func(x *stranger) {
			x.say(message.Telemetry{Worker: x.id, Doing: &message.Doing{Stage: "members", For: -1}})
		}, "reports its activity as"},
		"prepares fewer than no members": {func(x *stranger) {
			x.say(message.Telemetry{Worker: x.id, Doing: &message.Doing{Stage: "members", Done: math.MinInt64}})
		}, "reports its activity as"},
		"prepares more members than there can be": {func(x *stranger) {
			x.say(message.Telemetry{Worker: x.id, Doing: &message.Doing{Stage: "members", Of: math.MaxInt64}})
		}, "reports its activity as"},
		"hosts more members than there can be": {func(x *stranger) {
			x.say(message.Telemetry{Worker: x.id, Doing: &message.Doing{Stage: "members", Members: math.MaxInt64}})
		}, "reports its activity as"},
		"executes a round that nobody reaches": {func(x *stranger) {
			x.say(message.Telemetry{Worker: x.id, Doing: &message.Doing{Stage: "round", Round: math.MaxUint64}})
		}, "reports its activity as"},
		"measures without end": {func(x *stranger) {
			all := map[event.Measure]float64{}
			for i := range 5000 {
				all[event.Measure(fmt.Sprint(i))] = 1
			}
			x.say(message.Telemetry{Worker: x.id, Machine: all})
		}, ""},
		"tells a machine in text that is none": {func(x *stranger) {
			_ = x.peer.Send(wire.Message{Kind: 39, Body: []byte{0xa2, 0, byte(x.id), 2, 0xa1, 0x62, 0xff, 0xfe, 1}})
		}, ""},
		"sends a frame of nulls": {func(x *stranger) {
			nulls := append([]byte{0xa1, 7, 0x9a, 0, 0x1f, 0xff, 0xff}, bytes.Repeat([]byte{0xf6}, 0x1fffff)...)
			_ = x.peer.Send(wire.Message{Kind: 33, Body: nulls})
		}, "MiB"},
		"climbs":             {func(x *stranger) { x.say(message.Piece{Path: "../../evil", Total: 1, Data: []byte{1}}) }, "it was not asked for the file"},
		"overwrites the log": {func(x *stranger) { x.say(message.Piece{Path: "log-000001.brood", Total: 1, Data: []byte{1}}) }, "it was not asked for the file"},
	} {
		x, err := knock(s, key, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m, err := x.next(); err != nil {
			t.Fatalf("%s: %v", name, err)
		} else if _, ok := m.(message.Setup); !ok {
			t.Fatalf("%s: first comes %T", name, m)
		}
		c.do(x)
		for err == nil {
			_, err = x.next()
		}
		if gone, ok := errors.AsType[*quic.GoneError](err); !ok || gone.Cause != quic.Ended || !strings.Contains(gone.Reason, c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	x, err := knock(s, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"log-000001.brood", "../run/log-000001.brood", "/etc/passwd", "checkpoints/1/../../lock", "checkpoints/01/epoch-1-worker-0.safetensors", "checkpoints/1/epoch-1-worker-0.safetensors"} {
		x.say(message.Get{Path: path})
		for {
			m, err := x.next()
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			p, ok := m.(message.Piece)
			if !ok {
				continue
			}
			if p.Path != path || p.Err == "" || len(p.Data) > 0 || strings.Contains(p.Err, dir) {
				t.Errorf("%s is answered with %+v", path, p)
			}
			break
		}
	}
	x.peer.Close("")
	if _, err := os.Stat(filepath.Join(dir, session.CheckpointDir)); !os.IsNotExist(err) {
		t.Errorf("a stranger wrote: %v", err)
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

// TestInsider: a worker in the middle of a run that reports what cannot be is put out with one clean line that says
// whose words they are, the run goes on with the others, and verifies.
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
	for _, lie := range []func(x *stranger, g message.Grant) any{
		func(x *stranger, g message.Grant) any {
			return message.Failed{Worker: x.id, Epoch: g.Epoch, Err: "\x1b[2J\x1b]0;hello\x07\nbrood: the run is over"}
		},
		func(x *stranger, g message.Grant) any {
			return message.Done{Worker: x.id, Epoch: g.Epoch, From: g.From, To: g.To, Points: []event.Points{{Round: g.To, Series: "loss", Members: []engine.Member{2, 1, 0}, Values: []float64{1}}}}
		},
		func(x *stranger, g message.Grant) any {
			return message.Done{Worker: x.id, Epoch: g.Epoch, From: g.From, To: 1 << 62, Progress: event.Progress{Rounds: 1 << 62, Epochs: math.Inf(1)}}
		},
	} {
		x, err := knock(s, newKey(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		x.say(message.Ready{Worker: x.id})
		var away message.Evict
		for err == nil {
			var m any
			m, err = x.next()
			switch m := m.(type) {
			case message.Plan:
				x.say(message.Ready{Worker: x.id, Epoch: m.Epoch})
			case message.Grant:
				x.say(lie(x, m))
			case message.Evict:
				away = m
			}
		}
		if gone, ok := errors.AsType[*quic.GoneError](err); !ok || gone.Cause != quic.Left || away.Why == "" || away.After != 0 || gone.Reason != away.Why {
			t.Errorf("the stranger is gone: %v, after %+v", err, away)
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
	if said := "worker 0 is lost: it reports: [2J]0;hello brood: the run is over"; !slices.Contains(alerts, said) {
		t.Errorf("alerts %q, want %q", alerts, said)
	}
	if all := strings.Join(append(alerts, s.notes.all...), ""); strings.ContainsFunc(all, unicode.IsControl) {
		t.Errorf("the operator sees %q", all)
	}
	verifies(t, dir, s.hash)
}

// TestRefusals: each names what differs, and only what may change says to try again.
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
		says   []string
	}{
		{func(h *wire.Hello) { h.Kernels = "native/m68k" }, wire.CodeRefused, []string{"native/m68k", c.Kernels}},
		{func(h *wire.Hello) { h.Kernels = "bf16/1/cuda9.0" }, wire.CodeRefused, []string{c.Kernels, "leave ,bf16 out of --device"}},
		{func(h *wire.Hello) { h.Data = map[string]string{c.Data: "blake3:00"} }, wire.CodeData, []string{c.Data, "blake3:00", c.Digest}},
		{func(h *wire.Hello) { h.Run = wire.RunID{1} }, wire.CodeRun, []string{"join URL"}},
		{func(h *wire.Hello) { h.Listen = []string{"nowhere"} }, wire.CodeRefused, []string{"nowhere", "--advertise"}},
		{func(h *wire.Hello) { h.Token = "x" }, wire.CodeTokenUnknown, []string{"token"}},
		{func(h *wire.Hello) { h.Role = wire.Viewer }, wire.CodeRole, []string{"viewer"}},
	} {
		_, err := knock(s, newKey(t), r.change)
		got, ok := errors.AsType[wire.Refused](err)
		if !ok || got.Code != r.code || got.Retry {
			t.Errorf("want %s: %v", r.code, err)
		}
		for _, word := range r.says {
			if !strings.Contains(got.Reason, word) {
				t.Errorf("%q does not name %q", got.Reason, word)
			}
		}
	}
	s.srv.mu.Lock()
	s.srv.runs, s.srv.session = nil, "" // as before Serve
	s.srv.mu.Unlock()
	if _, err := knock(s, newKey(t), nil); err == nil {
		t.Error("let in before the run is prepared")
	} else if got, _ := errors.AsType[wire.Refused](err); !got.Retry {
		t.Errorf("%v", err)
	}
}

// TestComesAgain: the same key takes the place of its earlier self, without a second token.
func TestComesAgain(t *testing.T) {
	s := serve(t, prepare(t, small(3)), nil, filepath.Join(t.TempDir(), "run"), nil)
	key := newKey(t)
	first, err := knock(s, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	var again *stranger
	for late := time.Now().Add(testutil.Timeout); again == nil; {
		if time.Now().After(late) {
			t.Fatalf("after %s it is still not let in again: %v", testutil.Timeout, err)
		}
		if again, err = knock(s, key, func(h *wire.Hello) { h.Token = "" }); err != nil {
			if got, _ := errors.AsType[wire.Refused](err); !got.Retry {
				t.Fatal(err)
			}
		}
	}
	testutil.Receive(t, first.peer.Done(), "end of the first: both are let in")
	if again.id == first.id || again.peer.Err() != nil {
		t.Errorf("numbers %d and %d, %v", first.id, again.id, again.peer.Err())
	}
	if err := errors.Join(s.srv.Close(), s.run.Close()); err != nil {
		t.Error(err)
	}
}

// TestShelf: pieces in order make the file, at once and whole; anything else leaves nothing behind.
func TestShelf(t *testing.T) {
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
	for _, bad := range []message.Piece{piece(7, 14), {Path: rel, Total: 3}, {Path: rel, Total: 1, Data: []byte{1, 2}}, {Path: rel, From: -1, Total: 9, Data: []byte{1}},
		{Path: rel, Total: 1 << 40, Data: []byte{1}}, {Path: rel, From: 1 << 62, Total: 9, Data: []byte{1}}} {
		if _, _, err := s.append(bad); err == nil {
			t.Errorf("kept %+v", bad)
		}
	}
	for i := 0; i < len(want); i += 7 {
		whole, k, err := s.append(piece(i, i+7))
		if err != nil || k.Err != "" || whole != (i == 14) || k.From != int64(i) || k.Path != rel {
			t.Fatalf("%v %+v %v", whole, k, err)
		}
		if i == 7 {
			if _, _, err := s.append(piece(0, 7)); err != nil { // again from the start
				t.Fatal(err)
			}
			if _, _, err := s.append(piece(7, 14)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := s.serve(message.Get{Path: rel, From: 3}); got.Err != "" || got.Total != int64(len(want)) || !bytes.Equal(got.Data, want[3:]) {
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
	// A disk that does not take it is told to the worker, and breaks no rule.
	if err := os.WriteFile(filepath.Join(dir, "checkpoints", "6"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, k, err := s.append(message.Piece{Path: session.CheckpointFile(6, 3, 1), Total: 9, Data: want[:4]}); err != nil || k.Err == "" {
		t.Errorf("%+v, %v", k, err)
	}
}

// TestLargeFile: a worker brings no more of a checkpoint than its rows take.
func TestLargeFile(t *testing.T) {
	rel := session.CheckpointFile(5, 2, 1)
	x := &workerHandle{maxBytes: map[string]int64{rel: 1 << 20}, files: checkpointStore{dir: t.TempDir()}}
	if err := x.storePiece(message.Piece{Path: rel, Total: 1<<20 + 1, Data: []byte{1}}); err == nil || !strings.Contains(err.Error(), "take at most 1048576") {
		t.Errorf("%v", err)
	}
}

// TestWrongData: a worker that reads other data than the run's leaves, and both sides are told both digests.
func TestWrongData(t *testing.T) {
	s := serve(t, prepare(t, small(3)), nil, filepath.Join(t.TempDir(), "run"), nil)
	digest := s.run.Job.Config.Digest
	s.srv.mu.Lock()
	s.srv.runs[0].config.Digest = "blake3:77"
	s.srv.mu.Unlock()
	err := testutil.Receive(t, s.work(t.Context(), s.config()), "end of the worker")
	var out *RefusedError
	if !errors.As(err, &out) || !strings.Contains(err.Error(), digest) || !strings.Contains(err.Error(), "blake3:77") || !strings.Contains(err.Error(), "glyphs") {
		t.Errorf("%v", err)
	}
	testutil.Eventually(t, "that it left", func() bool { return s.notes.text() != "" }) // who closes is told no more
	if err := errors.Join(s.srv.Close(), s.run.Close()); err != nil {
		t.Error(err)
	}
	testutil.Wait(s.t, &s.workers, "end of all workers")
	if text := s.notes.text(); !strings.Contains(text, "it left: this machine cannot take part: ") || !strings.Contains(text, digest) {
		t.Errorf("the operator is told %q", text)
	}
}
