package native

import (
	"sync/atomic"
	"time"
)

// A Vector has a helper for each thread beside that of who calls it. What threads do together is cut into portions: the
// caller does one and offers the others. Tasks of a step, and jobs of a pass, follow each other within microseconds,
// while a processor that went to sleep takes a hundred and more to wake; so a helper looks for the next one for some
// time before its goroutine ends, across tasks too. Nobody ends it or waits for that: it holds nothing meanwhile, and
// is through after patience. (Where time stands still, as in a bubble of synctest, it would look for ever.)

// body is what is done in portions, which do not touch each other. Who does which shows in no bit. A panic is one of
// who calls on the caller's thread alone; on a helper's it is the end of the process, but for that of loops of
// engine.EachBy.
type body interface{ do(s portion, l *lane) }

// portion is units [lo, hi) of it.
type portion struct {
	of     body
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

// within says whether f came true before a time had gone by.
func within(limit time.Duration, f func() bool) bool {
	var began time.Time
	for looks := 1; !f(); looks++ {
		if looks%1000 > 0 {
			continue // a look takes less than reading the clock
		}
		if now := time.Now(); began.IsZero() {
			began = now
		} else if now.Sub(began) > limit {
			return false
		}
	}
	return true
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
		if !within(patience, stirred) && h.state.CompareAndSwap(idle, gone) {
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

// settle takes the portion back where the helper has not begun, else returns true once it is done.
func (h *helper) settle() bool {
	if h.state.CompareAndSwap(offered, idle) {
		return false
	}
	through := func() bool { return h.state.Load() != taken }
	if !within(trust, through) && h.state.CompareAndSwap(taken, awaited) {
		<-h.done
	}
	return true
}

// jointly does n units of a body on lane l and by the helpers, each the same number but for one. No helper is at it any
// more when it returns or panics.
func jointly(w body, n int, l *lane, helpers []*helper) {
	threads := min(n, 1+len(helpers))
	helpers = helpers[:max(0, threads-1)]
	defer func() {
		for _, h := range helpers {
			h.settle()
			h.given = portion{}
		}
	}()
	for i, h := range helpers {
		h.offer(portion{w, (i + 1) * n / threads, (i + 2) * n / threads})
	}
	if n > 0 {
		w.do(portion{w, 0, n / threads}, l)
	}
	for _, h := range helpers {
		if !h.settle() {
			w.do(h.given, l)
		}
	}
}
