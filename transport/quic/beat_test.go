package quic

import (
	"testing"
	"time"

	"brood/transport/wire"
)

// TestHeartbeatsWithSilentStream: the peer answers heartbeats although its stream of data was opened first and carries
// nothing. The test sends several: the peer does not answer before it has opened its own stream.
func TestHeartbeatsWithSilentStream(t *testing.T) {
	s := newScenery(t)
	a, p := s.asWorker(t)
	defer p.Close("")
	if _, err := a.conn.OpenUniStream(); err != nil {
		t.Fatal(err)
	}
	beats, err := a.conn.OpenUniStream()
	if err != nil {
		t.Fatal(err)
	}
	f, err := wire.Marshal(wire.Header{Sender: wire.NoWorker}, wire.Heartbeat{Nanos: 17})
	if err != nil {
		t.Fatal(err)
	}
	ask := func() {
		if _, err := beats.Write(f); err != nil {
			t.Fatal(err)
		}
	}
	ask()
	theirs, err := a.conn.AcceptUniStream(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	for r, asked := wire.NewReader(theirs), 0; asked < 5; asked++ { // five times a second
		h, payload, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		m, err := wire.Unmarshal(h, payload)
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := m.(wire.Heartbeat); ok && b.Answer && b.Nanos == 17 {
			return
		}
		ask()
	}
	t.Error("the peer asked five times and gave no answer")
}

// TestSuspendedProcess: after a long suspension of this process, only the time between two counts is silence.
func TestSuspendedProcess(t *testing.T) {
	at := time.Unix(100, 0)
	s := silence{woke: at}
	s.update(7)
	beat := func(pass time.Duration, packets uint64) time.Duration {
		at = at.Add(pass)
		q := s.tick(at, packets)
		s.update(packets)
		return q
	}
	for i := 1; i <= 3; i++ {
		if q := beat(countEvery, 7); q != time.Duration(i)*countEvery {
			t.Fatalf("after %d beats %v", i, q)
		}
	}
	if q := beat(10*time.Second, 7); q >= silentAt {
		t.Errorf("asleep for 10 s: %v of silence", q)
	}
	if q := beat(countEvery, 8); q != 0 {
		t.Errorf("something came: %v", q)
	}
	for range 15 {
		beat(countEvery, 8)
	}
	if q := beat(countEvery, 8); q < silentAt {
		t.Errorf("sixteen counts of silence: %v", q)
	}
	answered, missed := beat(countEvery*5/4, 9), beat(countEvery*5/4, 9)
	if at := probedAfter(beatEvery, silentAt); answered > 0 || missed >= at || beat(countEvery*3/4, 9) < at {
		t.Errorf("one unanswered beat: silent for %v, probed after %v", s.quiet, at)
	}
}

// TestKilledProcess: a peer whose process was killed is gone as soon as its machine answers that its port is closed,
// and not only after the silence that ends a live one.
func TestKilledProcess(t *testing.T) {
	killed, left := newNode(t, nil), admitAll(t)
	_, p := pairUp(t, killed, left)
	until(t, "its port may be probed", p.c.probes.Load)
	if err := killed.Shaper().Set("", Shape{Loss: 1}); err != nil { // it sends no goodbye
		t.Fatal(err)
	}
	if err := killed.Close(); err != nil {
		t.Fatal(err)
	}
	if g := endOf(t, p); g.Cause != Silent || g.Error() != "its process has ended" {
		t.Errorf("%+v", g)
	}
}

// TestSilenceGrows: a small fleet notices a silent peer within two seconds; a large one waits longer, and never longer
// than QUIC itself.
func TestSilenceGrows(t *testing.T) {
	for n, want := range map[int]time.Duration{0: silentAt, 8: silentAt, 20: silentAt, 40: 2 * silentAt,
		64: coordinatorSilentAt, 1000: coordinatorSilentAt} {
		if got := silenceFor(n); got != want {
			t.Errorf("%d connections: %s, want %s", n, got, want)
		}
	}
	if coordinatorSilentAt >= idleTimeout {
		t.Errorf("QUIC ends a connection after %s", idleTimeout)
	}
}
