package quic

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"brood/transport/identity"
	"brood/transport/wire"
)

// inBubble runs f on a simulated network in virtual time, so that it can assert times.
func inBubble(t *testing.T, seed uint64, f func(t *testing.T, net *network)) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(seed)
		net.delay = time.Millisecond
		f(t, net)
		net.close(t)
	})
}

func closeAll(t *testing.T, nodes ...*Node) {
	for _, n := range nodes {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDeathIsNoticed: a dead worker is suspected within 1 s and gone within 2 s, wherever in the beat it dies; a live
// one is neither. A worker waits for a silent coordinator for more than 4 s, and no longer than 6 s.
func TestDeathIsNoticed(t *testing.T) {
	for offset := time.Duration(0); offset < beatEvery; offset += 37 * time.Millisecond {
		inBubble(t, 1, func(t *testing.T, net *network) {
			open := net.open(t)
			server, worker := open(0), open(1)
			p, q := pairUp(t, worker, server)
			time.Sleep(5*time.Second + offset)
			if p.Suspected() || q.Suspected() || p.Err() != nil || q.Err() != nil {
				t.Error("a peer that lives is suspected")
			}
			began := time.Now()
			net.set(func() { net.dead[address(1).String()] = true })
			for !q.Suspected() {
				time.Sleep(10 * time.Millisecond)
			}
			suspected := time.Since(began)
			g := endOf(t, q)
			gone := time.Since(began)
			if suspected > time.Second || gone > 2*time.Second || suspected < 400*time.Millisecond || gone < time.Second ||
				g.Cause != Silent {
				t.Errorf("offset %s: suspected after %s, gone after %s: %v", offset, suspected, gone, g)
			}
			if q.Suspected() {
				t.Error("the dead are suspected")
			}
			endOf(t, p)
			if gone := time.Since(began); gone < 4*time.Second || gone > 6*time.Second {
				t.Errorf("offset %s: the worker closed the connection after %s", offset, gone)
			}
			closeAll(t, server, worker)
		})
	}
}

// TestShortNetworkCuts: a network cut shorter than a second ends no connection and loses nothing.
func TestShortNetworkCuts(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, net *network) {
		open := net.open(t)
		server, worker := open(0), open(1)
		p, q := pairUp(t, worker, server)
		for range 5 {
			net.set(func() { net.dead[address(1).String()] = true })
			say(t, p, 16, "hello")
			time.Sleep(900 * time.Millisecond)
			net.set(func() { clear(net.dead) })
			expectMessage(t, q, 16, "hello")
			time.Sleep(time.Second)
		}
		closeAll(t, server, worker)
	})
}

// TestRestartIsNoticedSoon: a restart without a goodbye is detected by the next beat, within 300 ms.
func TestRestartIsNoticedSoon(t *testing.T) {
	keys := []*identity.Key{newKey(t), newKey(t)}
	inBubble(t, 3, func(t *testing.T, net *network) {
		open := net.open(t, keys...)
		server, worker := open(0), open(1)
		p, _ := pairUp(t, worker, server)
		time.Sleep(time.Second)
		net.set(func() { net.dead[address(0).String()] = true })
		closeAll(t, server)
		time.Sleep(10 * time.Millisecond) // its last packets are lost, not in flight
		net.set(func() { clear(net.dead) })
		again := open(0)
		began := time.Now()
		g := endOf(t, p)
		if d := time.Since(began); d > 300*time.Millisecond || g.Cause != Restarted {
			t.Errorf("after %s: %v", d, g)
		}
		dial(t, worker, again, wire.Hello{Role: wire.Worker})
		if d := time.Since(began); d > 400*time.Millisecond {
			t.Errorf("back after %s", d)
		}
		closeAll(t, again, worker)
	})
}

// TestUnreachable: a pair that does not connect fails its Send and Recv calls with the reason; once it connects, the
// next epoch works.
func TestUnreachable(t *testing.T) {
	inBubble(t, 4, func(t *testing.T, net *network) {
		f := newFleet(t, net.open(t), 1, 1)
		net.set(func() { net.dead[address(1).String()] = true })
		for _, n := range []int{10, 100, 100_000} { // queued messages are lost
			send(t, f.links[0], 1, 1, 1, "op", make([]byte, n))
		}
		for self, link := range f.links {
			began := time.Now()
			_, _, _, err := link.Recv(t.Context(), 1-self, 1)
			c, ok := errors.AsType[*CutError](err)
			if d := time.Since(began); !ok || d > 11*time.Second || self == 0 && d < 9*time.Second {
				t.Errorf("worker %d fails after %s: %v", self, d, err)
				continue
			}
			if text := c.Error(); !strings.Contains(text, "--advertise") {
				t.Error(text)
			}
		}
		net.set(func() { clear(net.dead) })
		send(t, f.links[0], 1, 3, 1, "op", []byte{1})
		send(t, f.links[1], 0, 3, 1, "op", []byte{2})
		recv(t, f.links[0], 1, 3, 1, []byte{2})
		recv(t, f.links[1], 0, 3, 1, []byte{1})
		f.close(t)
	})
}

// TestBulkDoesNotKill: a link so slow that heartbeats wait behind bulk for a second does not count as dead.
func TestBulkDoesNotKill(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, net *network) {
		f := newFleet(t, net.open(t), 1, 1)
		for _, n := range f.nodes {
			if err := n.Shaper().Set("", Shape{Rate: 60_000, Delay: 20 * time.Millisecond}); err != nil {
				t.Fatal(err)
			}
		}
		p, q := pairUp(t, f.nodes[0], f.nodes[1])
		began := time.Now()
		send(t, f.links[0], 1, 1, 1, "op", payloadOf(1, 1<<20))
		_, _, got, err := f.links[1].Recv(t.Context(), 0, 1)
		if d := time.Since(began); err != nil || len(got) != 1<<20 || d < 15*time.Second || d > 40*time.Second {
			t.Errorf("%d bytes after %s: %v", len(got), d, err)
		}
		if p.Err() != nil || q.Err() != nil {
			t.Error(p.Err(), q.Err())
		}
		f.close(t)
	})
}

// TestDeathReleasesReceivers: Recv in an epoch with some frames received fails as soon as the peer is gone, long before
// the pair's timeout.
func TestDeathReleasesReceivers(t *testing.T) {
	inBubble(t, 6, func(t *testing.T, net *network) {
		f := newFleet(t, net.open(t), 1, 1)
		send(t, f.links[0], 1, 1, 1, "op", []byte{1})
		recv(t, f.links[1], 0, 1, 1, []byte{1})
		began := time.Now()
		net.set(func() { net.dead[address(0).String()] = true })
		_, _, _, err := f.links[1].Recv(t.Context(), 0, 1)
		if _, ok := errors.AsType[*CutError](err); !ok || time.Since(began) > 2*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		f.close(t)
	})
}

// TestCutReachesOtherSide: if frames of one side are lost, the other side's epoch is cut too, though it neither sent
// nor received anything.
func TestCutReachesOtherSide(t *testing.T) {
	inBubble(t, 7, func(t *testing.T, net *network) {
		f := newFleet(t, net.open(t), 1, 1)
		for from, to := range []int{1, 0} {
			connected(t, pairOf(f, from, uint32(from), uint32(to)))
			epoch := uint32(10 * (from + 1))
			net.set(func() { net.dead[address(from).String()] = true })
			send(t, f.links[from], to, epoch, 1, "op", []byte{1})
			time.Sleep(5 * time.Second) // both sides notice
			net.set(func() { clear(net.dead) })
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			_, _, _, err := f.links[to].Recv(ctx, from, epoch)
			cancel()
			if _, ok := errors.AsType[*CutError](err); !ok || time.Since(began) > 5*time.Second {
				t.Errorf("from %d, after %s: %v", from, time.Since(began), err)
			}
			send(t, f.links[from], to, epoch+1, 1, "op", []byte{1})
			recv(t, f.links[to], from, epoch+1, 1, []byte{1})
		}
		f.close(t)
	})
}

// TestLaneEnds: Recv does not wait for frames lost with a lane.
func TestLaneEnds(t *testing.T) {
	inBubble(t, 8, func(t *testing.T, net *network) {
		f := newFleet(t, net.open(t), 1, 1)
		send(t, f.links[0], 1, 1, 1, "op", payloadOf(1, 20_000))
		recv(t, f.links[1], 0, 1, 1, payloadOf(1, 20_000))
		net.set(func() { net.delay = 400 * time.Millisecond })
		send(t, f.links[0], 1, 1, 2, "op", payloadOf(2, 20_000))
		time.Sleep(100 * time.Millisecond)
		s := connected(t, pairOf(f, 1, 1, 0))
		if len(s.lanes) != 1 {
			t.Fatalf("%d lanes", len(s.lanes))
		}
		_ = s.lanes[0].CloseWithError(codeBroken, "planted")
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if _, _, _, err := f.links[1].Recv(ctx, 0, 1); !isCutError(err) {
			t.Errorf("%v", err)
		}
		f.close(t)
	})
}

// TestCutErrorTexts: without an earlier connection the error does not report a cut, and does not predict how the run
// continues: the coordinator decides that.
func TestCutErrorTexts(t *testing.T) {
	why := errors.New("it is silent")
	for never, want := range map[bool]string{
		false: "the connection with worker 2 was cut in membership epoch 5 or before (it is silent): the run continues in the next",
		true:  "there was no connection with worker 2 up to membership epoch 5: it is silent",
	} {
		if got := (&CutError{2, 5, why, never}).Error(); got != want {
			t.Errorf("never %v: %q", never, got)
		}
	}
}

func isCutError(err error) bool {
	_, ok := errors.AsType[*CutError](err)
	return ok
}
