package native

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"brood/models/engine"
	"brood/models/native/kernel"
)

// counted is a job that counts executions of its units, with random delays.
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

// heldUp returns a function that sleeps with probability 1/odds.
func heldUp(odds int, d time.Duration) func() {
	return func() {
		if rand.IntN(odds) == 0 {
			time.Sleep(d)
		}
	}
}

// newPassWithHelpers returns a pass with this many helpers.
func newPassWithHelpers(helpers int) *pass {
	p := &pass{thread: &thread{}}
	for range helpers {
		p.helpers = append(p.helpers, newHelper(&thread{}))
	}
	return p
}

// TestPortions: every unit of every job runs once and before spread returns, whatever is late: helpers that have
// exited, that begin too late or that are delayed in a portion for longer than the caller polls, and a caller that
// keeps them waiting.
func TestPortions(t *testing.T) {
	for _, helpers := range []int{1, 2, 5} {
		p := newPassWithHelpers(helpers)
		between, long := heldUp(20, 2*helperSpin), heldUp(60, 2*callerSpin)
		for n := range 600 {
			between()
			short := heldUp(30, time.Duration(rand.IntN(4))*20*time.Microsecond)
			c := &counted{done: make([]atomic.Int32, n%9), delay: func() { short(); long() }}
			p.spread(c, len(c.done))
			for i := range c.done {
				if got := c.done[i].Load(); got != 1 {
					t.Fatalf("%d helpers, job %d of %d units: unit %d was done %d times", helpers, n, len(c.done), i, got)
				}
			}
		}
	}
}

// TestPortionsPanic: no helper runs a job whose caller has panicked, and the next job runs completely.
func TestPortionsPanic(t *testing.T) {
	for _, helpers := range []int{1, 2, 5} {
		p := newPassWithHelpers(helpers)
		for range 100 {
			units, busy := 2*(1+helpers), atomic.Int32{}
			func() {
				defer func() { _ = recover() }()
				p.spread(failing{&busy}, units)
			}()
			if n := busy.Load(); n != 0 {
				t.Fatalf("%d helpers: %d are at a job whose caller has panicked", helpers, n)
			}
			c := &counted{done: make([]atomic.Int32, units), delay: heldUp(8, 20*time.Microsecond)}
			p.spread(c, units)
			for i := range c.done {
				if got := c.done[i].Load(); got != 1 {
					t.Fatalf("%d helpers: unit %d of the job after one that failed was done %d times", helpers, i, got)
				}
			}
		}
	}
}

// failing is a job that panics in its first unit, on the caller's thread, and is slow in the others.
type failing struct{ busy *atomic.Int32 }

func (f failing) run(_ *pass, _ *kernel.Kernels, lo, _ int) {
	if lo == 0 {
		time.Sleep(time.Duration(rand.IntN(60)) * time.Microsecond)
		panic("a job fails")
	}
	f.busy.Add(1)
	time.Sleep(time.Duration(rand.IntN(100)) * time.Microsecond)
	f.busy.Add(-1)
}

// TestStretches: split covers every element once.
func TestStretches(t *testing.T) {
	v, err := NewVariant(engine.Layout{Params: 1, Tensors: []engine.Tensor{{Len: 1, Cols: 1}}}, 5, kernel.Portable)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n < 40*grain; n = n*3 + 7 {
		delay, total := heldUp(3, 50*time.Microsecond), atomic.Int64{}
		v.split(n, tile, 1, func(_ *thread, lo, hi int) {
			delay()
			if lo%tile != 0 || lo >= hi {
				t.Errorf("of %d elements a stretch from %d to %d", n, lo, hi)
			}
			total.Add(int64(hi - lo))
		})
		if total.Load() != int64(n) {
			t.Fatalf("of %d elements %d were done", n, total.Load())
		}
	}
}
