package quic

import (
	"context"
	"fmt"
	"math"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"brood/transport/wire"
)

// arrivals records the packets that a shaper lets through.
type arrivals struct {
	mu    sync.Mutex
	at    []time.Duration
	index []int
}

// shape sends n packets of 1000 bytes through a shaper, one every gap, and returns when each arrived.
func shape(t *testing.T, s Shape, n int, gap time.Duration) *arrivals {
	out := &arrivals{}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		sh := newShaper(ctx, &wg)
		began := time.Now()
		sh.write = func(b, _ []byte, _ net.Addr) error {
			out.mu.Lock()
			defer out.mu.Unlock()
			out.at, out.index = append(out.at, time.Since(began)), append(out.index, int(b[0])|int(b[1])<<8)
			return nil
		}
		if err := sh.Set("10.0.0.2:4433", s); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			b := make([]byte, 1000)
			b[0], b[1] = byte(i), byte(i>>8)
			if !sh.send(b, nil, nil, 0, address(1), time.Now()) {
				t.Error("a packet goes directly")
			}
			clear(b) // the caller reuses it
			if sh.send(b, nil, nil, 0, address(2), time.Now()) {
				t.Error("another's packet is shaped")
			}
			time.Sleep(gap)
		}
		time.Sleep(10 * time.Second)
		cancel()
		wg.Wait()
	})
	return out
}

func TestShapes(t *testing.T) {
	ms := time.Millisecond
	a := shape(t, Shape{Delay: 40 * ms}, 100, ms)
	for i, at := range a.at {
		if want := time.Duration(i)*ms + 40*ms; at != want || a.index[i] != i {
			t.Fatalf("packet %d arrives as %d at %s, want %s", i, a.index[i], at, want)
		}
	}
	a = shape(t, Shape{Rate: 1_000_000}, 40, 0) // 40 kB at 1 MB/s
	if len(a.at) != 40 || a.at[0] != ms || a.at[39] != 40*ms {
		t.Errorf("rate: %d arrive, %v", len(a.at), a.at)
	}
	a = shape(t, Shape{Rate: 1_000_000}, 1000, 0) // more than the queue holds
	if n := len(a.at); n < 64 || n > 70 {
		t.Errorf("%d of 1000 packets fit into a queue of 64 KiB", n)
	}
	a = shape(t, Shape{Loss: 0.1}, 5000, ms)
	if n := len(a.at); math.Abs(float64(n)-4500) > 100 {
		t.Errorf("%d of 5000 arrive with a loss of 0.1", n)
	}
	b := shape(t, Shape{Loss: 0.1}, 5000, ms)
	if !slices.Equal(a.index, b.index) {
		t.Error("chance differs between two runs")
	}
	a = shape(t, Shape{Delay: 10 * ms, Jitter: 30 * ms}, 2000, 5*ms)
	least, most := time.Hour, time.Duration(0)
	for i, at := range a.at {
		d := at - time.Duration(i)*5*ms
		least, most = min(least, d), max(most, d)
	}
	if !slices.IsSorted(a.index) || least < 10*ms || least > 12*ms || most > 40*ms || most < 38*ms {
		t.Errorf("jitter: %s to %s, in order %v", least, most, slices.IsSorted(a.index))
	}
	if n := len(shape(t, Shape{Loss: 1}, 10, 0).at); n != 0 {
		t.Errorf("%d packets through a cut", n)
	}
}

// TestUnshapedWithoutLock: sending on a link without a shape waits for no lock, whatever shapes other links have. A
// link counts as unshaped again once its shape is removed and no packet is late on it.
func TestUnshapedWithoutLock(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	sh := newShaper(ctx, &wg)
	sh.write = func(_, _ []byte, _ net.Addr) error { return nil }
	free := func(to int) bool {
		sh.mu.Lock()
		done := make(chan bool, 1)
		wg.Go(func() { done <- sh.unshaped(address(to)) })
		defer sh.mu.Unlock()
		select {
		case unshaped := <-done:
			return unshaped
		case <-time.After(100 * time.Millisecond): // it waits for the lock
			return false
		}
	}
	is := func(when string, first, second bool) {
		t.Helper()
		if a, b := free(1), free(2); a != first || b != second {
			t.Errorf("%s: free are %v and %v, want %v and %v", when, a, b, first, second)
		}
	}
	set := func(to string, s Shape) {
		t.Helper()
		if err := sh.Set(to, s); err != nil {
			t.Fatal(err)
		}
	}
	is("before any shape", true, true)
	set("10.0.0.2:4433", Shape{Delay: time.Minute})
	is("with a shape of one", false, true)
	sh.unset(address(1))
	is("once it is unset", true, true)
	set("", Shape{Delay: time.Second})
	is("with a shape for all that have none of their own", false, false)
	set("", Shape{})
	is("with none any more", true, true)
	set("10.0.0.2:4433", Shape{Delay: time.Minute})
	sh.send([]byte("late"), nil, nil, 0, address(1), time.Now())
	set("10.0.0.2:4433", Shape{})
	is("while a packet is late", false, true)
}

// TestPacketsLeaveTogether: packets of a batch that are due within a grain are written in one call, in order, none lost
// or mixed up; others are written one by one. None is written before it is due.
func TestPacketsLeaveTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		sh := newShaper(ctx, &wg)
		type call struct {
			at      time.Duration
			b, with string
		}
		var calls []call
		began := time.Now()
		sh.write = func(b, oob []byte, _ net.Addr) error {
			calls = append(calls, call{time.Since(began), string(b), string(oob)})
			return nil
		}
		if err := sh.Set("", Shape{Rate: 10_000, Delay: 20 * time.Millisecond}); err != nil { // 10 bytes a millisecond
			t.Fatal(err)
		}
		for _, p := range []struct {
			text, batch string
			size, to    int
		}{
			{"abcd", "of four", 4, 1}, {"efgh", "of four", 4, 1}, {"ijkl", "of four", 4, 1}, {"mn", "of four", 4, 1},
			{"opqr", "of four", 4, 1}, {"st", "of two", 2, 1}, {"uv", "of two", 2, 1}, {"wx", "", 0, 1}, {"yz", "", 0, 1},
			{"ABCD", "of four", 4, 2}, {"EFGH", "of four", 4, 3},
		} {
			b := []byte(p.text)
			sh.send(b, []byte("alone"), []byte(p.batch), p.size, address(p.to), time.Now())
			clear(b) // the caller reuses it
		}
		time.Sleep(time.Second)
		cancel()
		wg.Wait()
		const ms = time.Millisecond
		want := []call{{21 * ms, "abcdefgh", "of four"}, {21 * ms, "ABCD", "alone"}, {21 * ms, "EFGH", "alone"},
			{22 * ms, "ijklmn", "of four"}, {22 * ms, "opqr", "alone"}, {22 * ms, "st", "alone"}, {23 * ms, "uv", "alone"},
			{23 * ms, "wx", "alone"}, {23 * ms, "yz", "alone"}}
		if !slices.Equal(calls, want) {
			t.Errorf("%+v\nwant\n%+v", calls, want)
		}
	})
}

// TestBatchesAreRefused: if the system refuses a batch, its packets are written one by one, in order, each with its own
// control messages; no other batch is tried.
func TestBatchesAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		sh := newShaper(ctx, &wg)
		var refused int
		var arrived []string
		sh.write = func(b, oob []byte, _ net.Addr) error {
			if string(oob) == "of four" {
				refused++
				return syscall.EIO
			}
			arrived = append(arrived, string(b)+" "+string(oob))
			return nil
		}
		if err := sh.Set("", Shape{Delay: 20 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			for _, text := range []string{"abcd", "efgh", "ij"} {
				sh.send([]byte(text), []byte("of "+text), []byte("of four"), 4, address(1), time.Now())
			}
			time.Sleep(time.Second)
		}
		cancel()
		wg.Wait()
		once := []string{"abcd of abcd", "efgh of efgh", "ij of ij"}
		if want := slices.Repeat(once, 2); !slices.Equal(arrived, want) || refused != 1 {
			t.Errorf("%q arrive, %d batches are refused, want %q and one", arrived, refused, want)
		}
	})
}

func TestShapesAreChecked(t *testing.T) {
	n := newNode(t, nil)
	for _, s := range []Shape{{Rate: -1}, {Delay: -1}, {Jitter: -1}, {Loss: -0.1}, {Loss: 1.1}, {Delay: time.Hour},
		{Loss: math.NaN()}} {
		if err := n.Shaper().Set("", s); err == nil {
			t.Errorf("%+v is taken", s)
		}
	}
	if err := n.Shaper().Set("nowhere", Shape{}); err == nil {
		t.Error("a shape for no address")
	}
}

// On real sockets: batches are split, settings apply at once, and other links stay fast.
func TestShaperUnderQUIC(t *testing.T) {
	f := newFleet(t, onLoopback(t), 1, 1, 1)
	defer f.close(t)
	for _, p := range f.meshes[0].Pairs() {
		connected(t, pairOf(f, 0, p.Self, p.Other))
	}
	seq := map[int]uint64{}
	exchange := func(to, n int) time.Duration {
		began := time.Now()
		seq[to]++
		send(t, f.links[0], to, 1, seq[to], "op", payloadOf(to, n))
		recv(t, f.links[to], 0, 1, seq[to], payloadOf(to, n))
		return time.Since(began)
	}
	exchange(1, 4<<20)
	if err := f.meshes[0].Shape(0, 1, Shape{Rate: 4 << 20, Delay: 10 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if d := exchange(1, 2<<20); d < 400*time.Millisecond { // 2 MiB at 4 MiB/s minus the queue; never faster
		t.Errorf("2 MiB through 4 MiB/s in %s", d)
	}
	exchange(2, 4<<20)
	if p := pairOf(f, 0, 0, 2); p.shape != nil {
		t.Error("another link is shaped")
	}
	connected(t, pairOf(f, 0, 0, 1)).fail(broken("a test breaks it"))
	isCut(t, pairOf(f, 0, 0, 1), 2)
	connected(t, pairOf(f, 0, 0, 1))
	isCut(t, pairOf(f, 1, 1, 0), 2)
	began := time.Now()
	send(t, f.links[0], 1, 2, 1, "op", payloadOf(1, 2<<20))
	recv(t, f.links[1], 0, 2, 1, payloadOf(1, 2<<20))
	if d := time.Since(began); d < 400*time.Millisecond {
		t.Errorf("the shape is forgotten with the connection: %s", d)
	}
	if err := f.meshes[0].Shape(0, 1, Shape{}); err != nil {
		t.Fatal(err)
	}
	send(t, f.links[0], 1, 2, 2, "op", payloadOf(1, 8<<20))
	recv(t, f.links[1], 0, 2, 2, payloadOf(1, 8<<20))
	for _, bad := range [][2]uint32{{0, 0}, {1, 0}, {0, 9}} {
		if err := f.meshes[0].Shape(bad[0], bad[1], Shape{}); err == nil {
			t.Errorf("%v is shaped", bad)
		}
	}
}

// quic-go still sends batches through the shaper's socket, which an unset shaper must not prevent.
func TestBatchesThroughShaper(t *testing.T) {
	server, worker := admitAll(t), newNode(t, nil)
	p := dial(t, worker, server, wire.Hello{Role: wire.Worker})
	here, _ := rawPair(t)
	want := here.conn.ConnectionState().GSO
	if got := p.c.conn.ConnectionState().GSO; got != want {
		t.Errorf("batches: %v, with a plain socket %v", got, want)
	}
}

func BenchmarkShapedLine(b *testing.B) {
	for _, s := range []Shape{{Rate: 125_000_000, Delay: time.Millisecond},
		{Rate: 12_500_000, Delay: 20 * time.Millisecond, Loss: 0.001}} {
		b.Run(fmt.Sprintf("%dMbit-%s-%g", s.Rate*8/1_000_000, 2*s.Delay, s.Loss), func(b *testing.B) {
			f := newFleet(b, onLoopback(b), 1, 1)
			defer f.close(b)
			for _, n := range f.nodes {
				if err := n.Shaper().Set("", s); err != nil {
					b.Fatal(err)
				}
			}
			const size = 16 << 20
			payload, seq := make([]byte, size), uint64(0)
			once := func() {
				seq++
				if err := f.links[0].Send(1, 1, seq, "bulk", payload); err != nil {
					b.Fatal(err)
				}
				if _, _, _, err := f.links[1].Recv(context.Background(), 0, 1); err != nil {
					b.Fatal(err)
				}
			}
			for range 3 {
				once()
			}
			b.SetBytes(size)
			b.ResetTimer()
			for b.Loop() {
				once()
			}
			b.ReportMetric(float64(f.meshes[0].Pairs()[0].Lanes), "lanes")
		})
	}
}
