// Package linktest tests the contract of links between workers; every transport runs it on its own links. It imports no
// other package of brood; Link has the methods of collective.Link.
//
//	func TestLink(t *testing.T) {
//		linktest.Run(t, func(n int) ([]linktest.Link, func()) { ... })
//	}
package linktest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Link is one worker's end: it sends frames to other workers and receives from them, by index.
type Link interface {
	Send(to int, epoch uint32, seq uint64, op string, p []byte) error
	Recv(ctx context.Context, from int, epoch uint32) (seq uint64, op string, p []byte, err error)
}

// Open returns connected links of workers 0 to n-1, and a function that closes them all.
type Open func(n int) (links []Link, closeAll func())

// Run tests links against the contract.
func Run(t *testing.T, open Open) {
	for _, c := range []struct {
		name string
		n    int
		test func(*testing.T, []Link)
	}{
		{"order", 3, order},
		{"payloads", 2, payloads},
		{"ownership", 2, ownership},
		{"send never waits", 2, sendNeverWaits},
		{"older epochs are dropped", 2, olderDropped},
		{"newer epochs are parked", 2, newerParked},
		{"cancel", 2, cancelled},
		{"a waiting receiver wakes", 2, wakesReceiver},
		{"pairs at once", 4, pairsAtOnce},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			links, closeAll := open(c.n)
			defer closeAll()
			c.test(t, links)
		})
	}
}

// patience is the time after which a call counts as hung.
const patience = 3 * time.Minute

func bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

// within fails the test if f hangs.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s hangs", what)
	}
}

func payload(from, to int, seq uint64) []byte {
	p := binary.LittleEndian.AppendUint64(nil, seq)
	return append(p, byte(from), byte(to))
}

func expect(t *testing.T, l Link, from int, epoch uint32, seq uint64, op string, p []byte) {
	t.Helper()
	ctx, cancel := bounded()
	defer cancel()
	s, o, got, err := l.Recv(ctx, from, epoch)
	if err != nil {
		t.Fatalf("receive %s #%d of epoch %d from %d: %v", op, seq, epoch, from, err)
	}
	if s != seq || o != op || !bytes.Equal(got, p) {
		t.Fatalf("from %d in epoch %d: got %s #%d %x, want %s #%d %x", from, epoch, o, s, got, op, seq, p)
	}
}

func send(t *testing.T, l Link, to int, epoch uint32, seq uint64, op string, p []byte) {
	t.Helper()
	if err := l.Send(to, epoch, seq, op, p); err != nil {
		t.Fatalf("send %s #%d of epoch %d to %d: %v", op, seq, epoch, to, err)
	}
}

// order: frames of a pair arrive in the order sent, independently of other pairs.
func order(t *testing.T, links []Link) {
	const frames = 200
	for seq := uint64(1); seq <= frames; seq++ {
		for a, l := range links {
			for b := range links {
				if a != b {
					send(t, l, b, 1, seq, fmt.Sprintf("op%d", seq%3), payload(a, b, seq))
				}
			}
		}
	}
	for b, l := range links {
		for a := range links {
			for seq := uint64(1); a != b && seq <= frames; seq++ {
				expect(t, l, a, 1, seq, fmt.Sprintf("op%d", seq%3), payload(a, b, seq))
			}
		}
	}
}

// payloads of zero bytes to a few megabytes, and extreme header values.
func payloads(t *testing.T, links []Link) {
	big := bytes.Repeat([]byte{1, 2, 3, 5, 7, 11, 13}, 600_000)
	for i, p := range [][]byte{nil, {}, {0}, big, {255}} {
		send(t, links[0], 1, 1<<31, 1<<63+uint64(i), "", bytes.Clone(p))
		expect(t, links[1], 0, 1<<31, 1<<63+uint64(i), "", p)
	}
}

// ownership: a received payload does not change while more frames arrive.
func ownership(t *testing.T, links []Link) {
	const frames = 100
	ctx, cancel := bounded()
	defer cancel()
	var kept [][]byte
	for seq := range uint64(frames) {
		send(t, links[0], 1, 1, seq, "op", payload(0, 1, seq))
		_, _, p, err := links[1].Recv(ctx, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, p)
	}
	for seq, p := range kept {
		if !bytes.Equal(p, payload(0, 1, uint64(seq))) {
			t.Fatalf("frame %d was overwritten after it was received: %x", seq, p)
		}
	}
	// The receiver owns the payload: writing to it affects no other frame.
	for _, p := range kept {
		clear(p)
	}
	send(t, links[0], 1, 1, frames, "op", payload(0, 1, frames))
	expect(t, links[1], 0, 1, frames, "op", payload(0, 1, frames))
}

// sendNeverWaits: both ends send 10,000 frames before either receives one.
func sendNeverWaits(t *testing.T, links []Link) {
	const frames = 10_000
	within(t, "sending without a receiver", func() {
		for seq := uint64(1); seq <= frames; seq++ {
			for a := range 2 {
				if err := links[a].Send(1-a, 1, seq, "op", payload(a, 1-a, seq)); err != nil {
					t.Errorf("send %d: %v", seq, err)
					return
				}
			}
		}
	})
	for a := range 2 {
		for seq := uint64(1); seq <= frames; seq++ {
			expect(t, links[a], 1-a, 1, seq, "op", payload(1-a, a, seq))
		}
	}
}

// olderDropped: frames of aborted epochs are never received.
func olderDropped(t *testing.T, links []Link) {
	for epoch := uint32(1); epoch <= 4; epoch++ {
		for seq := uint64(1); seq <= 3; seq++ {
			send(t, links[0], 1, epoch, seq, "op", []byte{byte(epoch), byte(seq)})
		}
	}
	expect(t, links[1], 0, 2, 1, "op", []byte{2, 1}) // epoch 1 is skipped
	for seq := uint64(1); seq <= 3; seq++ {          // the rest of epoch 2 and all of 3
		expect(t, links[1], 0, 4, seq, "op", []byte{4, byte(seq)})
	}
	expectNoFrame(t, links[1], 0, 4)
}

// expectNoFrame checks that no frame of an epoch is queued. Call it last: a Recv in a later epoch drops the frames
// before it.
func expectNoFrame(t *testing.T, l Link, from int, epoch uint32) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if seq, op, p, err := l.Recv(ctx, from, epoch); err == nil {
		t.Fatalf("got %s #%d %x of epoch %d, which is not there", op, seq, p, epoch)
	}
}

// newerParked: frames of a later epoch wait for a call with that epoch, even while Recv is called with an earlier one.
func newerParked(t *testing.T, links []Link) {
	send(t, links[0], 1, 1, 1, "a", []byte{1})
	send(t, links[0], 1, 3, 1, "b", []byte{2})
	send(t, links[0], 1, 3, 2, "c", []byte{3})
	expect(t, links[1], 0, 1, 1, "a", []byte{1})
	expectNoFrame(t, links[1], 0, 1)
	expectNoFrame(t, links[1], 0, 2)
	expect(t, links[1], 0, 3, 1, "b", []byte{2})
	expect(t, links[1], 0, 3, 2, "c", []byte{3})
}

// cancelled: Recv returns when its context ends, and takes no frame.
func cancelled(t *testing.T, links []Link) {
	within(t, "a cancelled receiver", func() {
		ctx, cancel := context.WithCancel(context.Background())
		go cancel()
		if _, _, _, err := links[1].Recv(ctx, 0, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled receiver returns %v", err)
		}
		if _, _, _, err := links[1].Recv(ctx, 0, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("a receiver that begins cancelled returns %v", err)
		}
	})
	send(t, links[0], 1, 1, 1, "op", []byte{7})
	expect(t, links[1], 0, 1, 1, "op", []byte{7})
}

// wakesReceiver: a frame reaches a receiver that was already waiting, in any epoch.
func wakesReceiver(t *testing.T, links []Link) {
	for i := range uint32(50) {
		var wg sync.WaitGroup
		wg.Go(func() { expectWithoutError(t, links[1], 0, 2*i+2) })
		wg.Go(func() {
			for _, epoch := range []uint32{2*i + 1, 2*i + 2} { // the first epoch is aborted
				if err := links[0].Send(1, epoch, 1, "op", []byte{byte(i)}); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Wait()
	}
}

func expectWithoutError(t *testing.T, l Link, from int, epoch uint32) {
	ctx, cancel := bounded()
	defer cancel()
	if _, _, _, err := l.Recv(ctx, from, epoch); err != nil {
		t.Errorf("epoch %d: %v", epoch, err)
	}
}

// pairsAtOnce: all workers send to all others and then receive, repeatedly, each worker in its own goroutine.
func pairsAtOnce(t *testing.T, links []Link) {
	const rounds = 50
	var wg sync.WaitGroup
	for me, l := range links {
		wg.Go(func() {
			ctx, cancel := bounded()
			defer cancel()
			for seq := uint64(1); seq <= rounds; seq++ {
				for to := range links {
					if to != me {
						if err := l.Send(to, 1, seq, "all", payload(me, to, seq)); err != nil {
							t.Errorf("%d to %d: %v", me, to, err)
							return
						}
					}
				}
				for from := range links {
					if from == me {
						continue
					}
					got, _, p, err := l.Recv(ctx, from, 1)
					if err != nil || got != seq || !bytes.Equal(p, payload(from, me, seq)) {
						t.Errorf("%d from %d, round %d: #%d %x %v", me, from, seq, got, p, err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}
