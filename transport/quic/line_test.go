package quic

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// exchangeAll makes every worker send a frame of this many bytes to every other worker and receive theirs, and returns
// the time taken.
func exchangeAll(t testing.TB, f *fleet, seq uint64, bytes int) time.Duration {
	t.Helper()
	began := time.Now()
	var all sync.WaitGroup
	for i, l := range f.links {
		all.Go(func() {
			for j := range f.links {
				if j != i {
					send(t, l, j, 1, seq, "op", make([]byte, bytes))
				}
			}
			for j := range f.links {
				if j == i {
					continue
				}
				if _, _, p, err := l.Recv(t.Context(), j, 1); err != nil || len(p) != bytes {
					t.Errorf("%d bytes, %v", len(p), err)
				}
			}
		})
	}
	all.Wait()
	return time.Since(began)
}

// TestFramesFillALine: once a connection has measured the rate, a frame takes little longer than its bytes and delay
// require. Additional lanes do not slow down frames sent one by one: all of them use the first lane.
func TestFramesFillALine(t *testing.T) {
	const size = 940_000 // less than a shard
	for i, c := range []struct {
		name    string
		workers int
		shape   Shape
		most    float64 // allowed time as a multiple of bytes and delay
	}{
		{"100 Mbit/s and 5 ms", 2, Shape{Rate: 12_500_000, Delay: 5 * time.Millisecond}, 1.1},
		{"10 Mbit/s and 40 ms", 3, Shape{Rate: 1_250_000, Delay: 40 * time.Millisecond}, 1.3},
	} {
		inBubble(t, uint64(20+i), func(t *testing.T, net *network) {
			net.delay = 0 // the shaper adds it
			f := newFleet(t, net.open(t), ones(c.workers)...)
			for i, n := range f.nodes {
				if err := n.Shaper().Set("", c.shape); err != nil {
					t.Fatal(err)
				}
				for _, p := range f.meshes[i].Pairs() {
					connected(t, pairOf(f, i, p.Self, p.Other))
				}
			}
			var took []time.Duration
			for seq := range uint64(15) {
				d := exchangeAll(t, f, seq, size)
				if seq >= 4 {
					took = append(took, d)
				}
				time.Sleep(200 * time.Millisecond) // they compute
			}
			slices.Sort(took)
			least := duration(size, c.shape.Rate) + c.shape.Delay
			got := took[len(took)/2]
			t.Logf("%s: %s, %.2f times as long as bytes and delay", c.name, got, got.Seconds()/least.Seconds())
			if got.Seconds() > c.most*least.Seconds() || took[0] < least {
				t.Errorf("%s: frames take %s to %s, bytes and delay alone %s", c.name, took[0], got, least)
			}
			s := connected(t, pairOf(f, 0, 0, 1))
			var sent []uint64
			for _, l := range s.lanes {
				sent = append(sent, l.ConnectionStats().BytesSent)
			}
			if rest := sum(sent[1:]); 10*rest > sent[0] {
				t.Errorf("%s: lanes carry %v bytes: the first is to carry frames that come one by one", c.name, sent)
			}
			f.close(t)
		})
	}
}

func sum(all []uint64) (n uint64) {
	for _, x := range all {
		n += x
	}
	return n
}
