package local

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"brood/transport/linktest"
)

func TestLink(t *testing.T) {
	linktest.Run(t, func(n int) ([]linktest.Link, func()) {
		hub, links := &Hub{}, make([]linktest.Link, n)
		for i := range links {
			links[i] = hub.Link(i)
		}
		return links, func() {}
	})
}

// TestReleasesFrames: a box does not retain frames that were taken or dropped.
func TestReleasesFrames(t *testing.T) {
	hub := &Hub{}
	a, b := hub.Link(0), hub.Link(1)
	for epoch := uint32(1); epoch <= 100; epoch++ {
		for seq := range uint64(10) {
			if err := a.Send(1, epoch, seq, "op", make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, _, err := b.Recv(t.Context(), 0, epoch); err != nil {
			t.Fatal(err)
		}
	}
	if q := hub.boxes[[2]int{0, 1}].q; len(q) != 9 || cap(q) > 100 {
		t.Errorf("%d frames are kept in room for %d", len(q), cap(q))
	}
}

// TestDeadlock: two workers that wait for each other are deadlocked, unless a frame arrived or one of them is at work.
func TestDeadlock(t *testing.T) {
	hub := &Hub{}
	links := []*Link{hub.Link(0), hub.Link(1)}
	received := make(chan struct{})
	recv := func(self int) {
		if _, _, _, err := links[self].Recv(t.Context(), 1-self, 7); err == nil {
			received <- struct{}{}
		}
	}
	waits := func(worker int) {
		t.Helper()
		for {
			if err := hub.Deadlock(worker); err != nil {
				want := fmt.Sprintf("worker %d waits for a frame that worker %d", worker, 1-worker)
				if !strings.Contains(err.Error(), want) {
					t.Fatalf("%v, want %s", err, want)
				}
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	go recv(0)
	waits(0)
	if hub.Deadlock(0, 1) != nil {
		t.Error("worker 1 is at work, and may send")
	}
	go recv(1)
	waits(1)
	if hub.Deadlock(0, 1) == nil {
		t.Error("both wait, and are not deadlocked")
	}
	if err := links[0].Send(1, 7, 1, "op", nil); err != nil {
		t.Fatal(err)
	}
	<-received
	if hub.Deadlock(0, 1) != nil {
		t.Error("worker 1 has received a frame")
	}
}
