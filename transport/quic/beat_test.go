package quic

import (
	"testing"

	"brood/transport/wire"
)

// TestBeatsPassASilentStream: a heartbeat is answered although the peer's stream of data was opened first, and nothing was said on it.
func TestBeatsPassASilentStream(t *testing.T) {
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
	f, err := wire.Marshal(wire.Header{Sender: wire.Nobody}, wire.Heartbeat{Nanos: 17})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := beats.Write(f); err != nil {
		t.Fatal(err)
	}
	theirs, err := a.conn.AcceptUniStream(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	for r, asked := wire.NewReader(theirs), 0; asked < 5; asked++ { // it asks five times a second
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
	}
	t.Error("the peer asked five times and gave no answer")
}
