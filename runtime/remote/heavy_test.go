package remote

import (
	"bytes"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"testing"
	"time"

	"brood/runtime/message"
	"brood/transport/wire"
)

// TestHeavyInsider: a sequence of the largest allowed frames takes less than 80 MiB (112 under the race detector) and
// ends the connection of the sender. That includes the memory of the sender, but not the two frames that it queues in
// this process.
func TestHeavyInsider(t *testing.T) {
	s := serve(t, prepare(t, small(1<<40)), nil, filepath.Join(t.TempDir(), "run"), nil)
	values := append([]byte{0xa2, 0, 0, 7, 0x82},
		bytes.Repeat(append([]byte{0xa1, 3, 0x9a, 0, 0x1c, 0, 0}, make([]byte, 0x1c0000)...), 2)...)
	kind, _, err := message.Encode(message.Done{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := message.Decode(kind, values); err != nil {
		t.Fatalf("the frame is not valid: %v", err)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	heap := func() int {
		var m goruntime.MemStats
		goruntime.ReadMemStats(&m)
		return int(m.HeapAlloc >> 20)
	}
	goruntime.GC()
	before, most, bound := heap(), 0, 64+16
	if raced {
		bound += 32
	}
	x, err := joinRaw(s, newKey(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	x.send(message.Ready{Worker: x.id})
	for i := 0; i < 60 && x.peer.Err() == nil; i++ {
		for x.peer.Err() == nil && x.peer.Send(wire.Message{Kind: kind, Body: values}) != nil {
			time.Sleep(time.Millisecond)
		}
		for range 20 {
			n := heap() - before
			if n > bound { // including garbage, of which there is more if the collector gets less time
				goruntime.GC()
				n = heap() - before
			}
			most = max(most, n)
			time.Sleep(2 * time.Millisecond)
		}
	}
	<-x.peer.Done()
	t.Logf("at most %d MiB, %v", most, x.peer.Err())
	if most > bound {
		t.Errorf("%d MiB", most)
	}
	if err := s.srv.Close(); err != nil {
		t.Error(err)
	}
	if err := s.run.Close(); err != nil {
		t.Error(err)
	}
}
