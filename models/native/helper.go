package native

import (
	"sync/atomic"
	"time"
)

// A Vector has a helper for each thread beside that of who calls it. What threads do together is cut into portions: the
// caller does one and offers the others. Tasks of a step, and jobs of a pass, follow each other within microseconds,
// while a processor that went to sleep takes a hundred and more to wake; so a helper looks for the next one for some
// time before its goroutine ends, across tasks too, and nobody has to close it.

// work is something that is done in portions, which do not touch each other. Who does which shows in no bit.
type work interface{ do(s portion, l *lane) }

// portion is units [lo, hi) of a work.
type portion struct {
	of     work
	lo, hi int
}

// helper is one such thread. The caller does itself what the helper has not begun when it is through with its own, so
// that a helper without a processor delays nothing.
type helper struct {
	lane  *lane
	state atomic.Int32
	_     [64]byte // whoever looks at the state does not hold up the writing of the portion
	given portion
	done  chan struct{} // to a caller that sleeps
}

// The states of a helper.
const (
	gone    int32 = iota // has no goroutine
	idle                 // looks for a portion
	offered              // a portion waits
	taken                // does it
	awaited              // does it, and the caller sleeps
)

// A thread looks for what the other does: a helper for so long before its goroutine ends, and a caller for longer
// before it sleeps, since it waits for what runs.
const (
	patience = 150 * time.Microsecond
	trust    = 2 * patience
)

func newHelper(l *lane) *helper { return &helper{lane: l, done: make(chan struct{}, 1)} }

// soon says whether f came true within a time.
func soon(limit time.Duration, f func() bool) bool {
	for began := time.Now(); ; {
		for range 1000 { // looks for each one at the clock
			if f() {
				return true
			}
		}
		if time.Since(began) > limit {
			return false
		}
	}
}

// serve does the portions that are offered.
func (h *helper) serve() {
	stirred := func() bool { return h.state.Load() != idle }
	for {
		if h.state.CompareAndSwap(offered, taken) {
			h.given.of.do(h.given, h.lane)
			if h.state.Swap(idle) == awaited {
				h.done <- struct{}{}
			}
		}
		if !soon(patience, stirred) && h.state.CompareAndSwap(idle, gone) {
			return
		}
	}
}

// offer gives the helper, who has none, a portion.
func (h *helper) offer(s portion) {
	h.given = s
	if h.state.Swap(offered) == gone {
		go h.serve()
	}
}

// finish returns once the portion is done, on lane l where the helper has not begun.
func (h *helper) finish(l *lane) {
	if h.state.CompareAndSwap(offered, idle) {
		h.given.of.do(h.given, l)
	} else {
		through := func() bool { return h.state.Load() != taken }
		if !soon(trust, through) && h.state.CompareAndSwap(taken, awaited) {
			<-h.done
		}
	}
	h.given = portion{}
}

// jointly does n units of a work on lane l and by the helpers, each the same number but for one.
func jointly(w work, n int, l *lane, helpers []*helper) {
	threads := min(n, 1+len(helpers))
	helpers = helpers[:max(0, threads-1)]
	for i, h := range helpers {
		h.offer(portion{w, (i + 1) * n / threads, (i + 2) * n / threads})
	}
	if n > 0 {
		w.do(portion{w, 0, n / threads}, l)
	}
	for _, h := range helpers {
		h.finish(l)
	}
}
