package native

import (
	"sync/atomic"
	"time"
)

// A Vector has a helper for each thread except the caller's. Parallel work is divided into portions: the caller runs
// one and offers the others to helpers. The tasks of a step and the jobs of a pass follow each other within
// microseconds, while waking a sleeping CPU takes 100 microseconds or more. A helper therefore polls for its next
// portion for helperSpin, across tasks too, before its goroutine exits. Nothing stops a helper explicitly: it holds no
// resources and exits after helperSpin. (With a fake clock that does not advance, as in synctest, it would poll
// forever.)

// parallelBody is work that is done in portions with disjoint outputs. The result must not depend on which thread runs
// which portion. A panic on the caller's thread propagates to the caller; on a helper it terminates the process, except
// in loops of engine.EachBy, which recover it.
type parallelBody interface{ do(s portion, l *thread) }

// portion is the units [lo, hi) of a body.
type portion struct {
	of     parallelBody
	lo, hi int
}

// helper is an additional thread. When the caller has finished its own portion, it runs the portions that helpers have
// not begun, so that a helper that is not scheduled causes no delay.
type helper struct {
	thread  *thread
	state   atomic.Int32
	_       [64]byte // puts state and portion on different cache lines
	portion portion
	done    chan struct{} // wakes a sleeping caller
}

// The states of a helper.
const (
	stopped int32 = iota // no goroutine is running
	idle                 // polls for a portion
	offered              // a portion is set and not begun
	taken                // is running the portion
	awaited              // is running the portion, and the caller sleeps until it is done
)

// Polling times: of a helper before its goroutine exits, and of a caller before it sleeps. The caller polls longer,
// since it waits for running work.
const (
	helperSpin = 150 * time.Microsecond
	callerSpin = 2 * helperSpin
)

func newHelper(l *thread) *helper { return &helper{thread: l, done: make(chan struct{}, 1)} }

// spinUntil polls f until it returns true, and reports whether it did within limit.
func spinUntil(limit time.Duration, f func() bool) bool {
	var began time.Time
	for looks := 1; !f(); looks++ {
		if looks%1000 > 0 {
			continue // polling is cheaper than reading the clock
		}
		if now := time.Now(); began.IsZero() {
			began = now
		} else if now.Sub(began) > limit {
			return false
		}
	}
	return true
}

// serve is the goroutine of a helper: it runs the offered portions.
func (h *helper) serve() {
	stirred := func() bool { return h.state.Load() != idle }
	for {
		if h.state.CompareAndSwap(offered, taken) {
			h.portion.of.do(h.portion, h.thread)
			if h.state.Swap(idle) == awaited {
				h.done <- struct{}{}
			}
		}
		if !spinUntil(helperSpin, stirred) && h.state.CompareAndSwap(idle, stopped) {
			return
		}
	}
}

// offer sets the portion of a helper that has none, and starts its goroutine if necessary.
func (h *helper) offer(s portion) {
	h.portion = s
	if h.state.Swap(offered) == stopped {
		go h.serve()
	}
}

// reclaim returns false if the helper has not begun the portion, and withdraws it. Otherwise it waits until the portion
// is done and returns true.
func (h *helper) reclaim() bool {
	if h.state.CompareAndSwap(offered, idle) {
		return false
	}
	through := func() bool { return h.state.Load() != taken }
	if !spinUntil(callerSpin, through) && h.state.CompareAndSwap(taken, awaited) {
		<-h.done
	}
	return true
}

// runParallel runs n units of a body on thread l and the helpers, in portions whose sizes differ by at most 1. No
// helper is running a portion when it returns or panics.
func runParallel(w parallelBody, n int, l *thread, helpers []*helper) {
	threads := min(n, 1+len(helpers))
	helpers = helpers[:max(0, threads-1)]
	defer func() {
		for _, h := range helpers {
			h.reclaim()
			h.portion = portion{}
		}
	}()
	for i, h := range helpers {
		h.offer(portion{w, (i + 1) * n / threads, (i + 2) * n / threads})
	}
	if n > 0 {
		w.do(portion{w, 0, n / threads}, l)
	}
	for _, h := range helpers {
		if !h.reclaim() {
			w.do(h.portion, l)
		}
	}
}
