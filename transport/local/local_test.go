package local

import (
	"testing"

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
