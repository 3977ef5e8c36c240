package native

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"brood/models/native/kernel"
)

// counted is a job that counts what is done, and is held up now and then.
type counted struct {
	done  []atomic.Int32
	delay func()
}

func (c *counted) run(_ *pass, _ *kernel.Kernels, lo, hi int) {
	for i := lo; i < hi; i++ {
		c.delay()
		c.done[i].Add(1)
	}
}

// TestShares: every unit of every job is done once and before spread returns, whoever is late: helpers that sleep, that
// begin too late or that are held up in a share, and a leader that keeps them waiting.
func TestShares(t *testing.T) {
	held := func(odds int, d time.Duration) func() {
		return func() {
			if rand.IntN(odds) == 0 {
				time.Sleep(d)
			}
		}
	}
	for _, helpers := range []int{1, 2, 5} {
		p := &pass{lane: &lane{}}
		for range helpers {
			p.helpers = append(p.helpers, newHelper(&lane{}))
		}
		between := held(20, 600*time.Microsecond)
		for n := range 600 {
			between()
			c := &counted{done: make([]atomic.Int32, n%9), delay: held(30, time.Duration(rand.IntN(4))*20*time.Microsecond)}
			p.spread(c, len(c.done))
			for i := range c.done {
				if got := c.done[i].Load(); got != 1 {
					t.Fatalf("%d helpers, job %d of %d units: unit %d was done %d times", helpers, n, len(c.done), i, got)
				}
			}
		}
	}
}
