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

// TestHeavyInsider: frames as heavy as they may be, one after the other, take less than 80 MiB with what the sender
// holds (112 under the race detector), and cut their sender. What the sender itself queues in this process, two frames,
// is not counted.
func TestHeavyInsider(t *testing.T) {
	s := serve(t, prepare(t, small(1<<40)), nil, filepath.Join(t.TempDir(), "run"), nil)
	values := append([]byte{0xa2, 0, 0, 7, 0x82}, bytes.Repeat(append([]byte{0xa1, 3, 0x9a, 0, 0x1c, 0, 0}, make([]byte, 0x1c0000)...), 2)...)
	kind, _, err := message.Encode(message.Done{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := message.Decode(kind, values); err != nil {
		t.Fatalf("the frame is not one that is admitted: %v", err)
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
	x, err := knock(s, newKey(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	x.say(message.Ready{Worker: x.id})
	for i := 0; i < 60 && x.peer.Err() == nil; i++ {
		for x.peer.Err() == nil && x.peer.Send(wire.Message{Kind: kind, Body: values}) != nil {
			time.Sleep(time.Millisecond)
		}
		for range 20 {
			n := heap() - before
			if n > bound { // with what waits to be collected, of which there is the more the less time the collector gets
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
