package coordinator

import (
	"fmt"
	"maps"
	"time"

	"brood/models/engine"
	"brood/runtime/event"
	"brood/runtime/message"
)

// Two workers can lose the connection between them while both still reach the coordinator. No row is lost then. The
// rounds in progress are voided, and all workers continue in a new membership epoch, in which the two reconnect. This
// is retried twice. At the third break within linkForgiven a worker is evicted for a while: of the two, the one with
// more breaks; if they have equally many, the one that reported first. So no worker can evict another that hosts
// members by its own reports alone. If the network is known to be bad, a worker that hosts no members yet is evicted
// first, whichever of the two reports.

// linkPauses are the delays before the first and the second retry.
var linkPauses = [...]time.Duration{0, 2 * time.Second}

// linkForgiven is how long a connection must hold until its earlier breaks no longer count.
const linkForgiven = 10 * time.Minute

// A worker that is evicted because of broken links may return after linkAway. The time doubles with each such eviction
// of the same key, up to linkForgiven, so that a network that stays bad costs less and less and each worker's time
// depends on its own evictions. The count restarts after awayForgiven without an eviction.
const (
	linkAway     = 10 * time.Second
	awayForgiven = time.Hour
)

// breaks counts the breaks of a connection, or the evictions of a key, and records the time of the last.
type breaks struct {
	times int
	last  time.Time
}

// handleBrokenLink handles the report of a worker whose connection to another worker broke.
func (c *Coordinator) handleBrokenLink(e message.Failed) []Effect {
	if !c.retry.IsZero() {
		return nil // both ends report the same break
	}
	if c.plan == nil && !c.snapshots {
		return c.evict(Lost{e.Worker, "it reports: " + e.Err}) // a single worker has no peers
	}
	if w, bare := c.withoutMembers(e.Worker, *e.Cut); e.Never || bare && c.badNetwork() {
		return c.evictUnreached(e, w)
	}
	one, other := min(e.Worker, *e.Cut), max(e.Worker, *e.Cut)
	n := c.breaks[[2]int{one, other}]
	if c.now.Sub(n.last) > linkForgiven {
		n.times = 0
	}
	c.breaks[[2]int{one, other}] = breaks{n.times + 1, c.now}
	worst, times := e.Worker, c.recentBreaks(e.Worker)
	if n := c.recentBreaks(*e.Cut); n > times {
		worst, times = *e.Cut, n
	}
	if times > len(linkPauses) {
		c.evictedAt = c.now
		return c.evictForNow(Lost{worst, fmt.Sprintf("it lost connections to other workers %d times in %s, but reaches "+
			"the coordinator: check the network between the workers; the last time, worker %d reported: %s",
			times, linkForgiven, e.Worker, e.Err)})
	}
	wait := linkPauses[times-1]
	when := "at once"
	if wait > 0 {
		when = fmt.Sprintf("after %s", wait)
	}
	note := fmt.Sprintf("workers %d and %d lost their connection", one, other)
	text := fmt.Sprintf("%s: tried again %s, %d of %d; worker %d reports: %s",
		note, when, times, len(linkPauses), e.Worker, e.Err)
	fx := []Effect{c.alert(event.LevelWarning, event.AlertLostLink, text, engine.None)}
	if c.base == c.cfg.Epoch { // no plan has completed yet
		c.plan = nil
		return append(fx, c.firstWhenReady()...)
	}
	next := c.target()
	if next.cause == "" {
		next.cause = event.CauseRestore
	}
	next.note = note
	if c.plan != nil && c.plan.From != event.Workers {
		next.back = true // the rollback was interrupted: only the checkpoint holds that round
	}
	c.voided = c.voided || c.granted > c.committed
	c.change, c.plan, c.retry = &next, nil, c.now.Add(wait)
	c.granted = c.committed
	clear(c.done)
	return fx
}

// withoutMembers returns the one of two workers that hosts no members, the first if neither does. ok is false, and w is
// the first, if both host members or no plan has completed yet.
func (c *Coordinator) withoutMembers(first, second int) (w int, ok bool) {
	if c.base == c.cfg.Epoch {
		return first, false
	}
	for _, w := range []int{first, second} {
		if len(c.hosting.Of(w)) == 0 {
			return w, true
		}
	}
	return first, false
}

// evictUnreached evicts a worker that never connected to another one, or whose connection broke before it hosted
// members. If the worker itself reports this, its addresses are wrong and it is evicted for good, unless the network is
// known to be bad: then it may return, and the others do not wait for it meanwhile. If the other worker reports it, it
// may return in any case.
func (c *Coordinator) evictUnreached(e message.Failed, out int) []Effect {
	switch {
	case out != e.Worker:
		return c.evictForNow(Lost{out, fmt.Sprintf("worker %d reports: %s", e.Worker, e.Err)})
	case c.badNetwork():
		return c.evictForNow(Lost{out, "it reports: " + e.Err})
	}
	return c.evict(Lost{out, "it reports: " + e.Err})
}

// badNetwork reports whether a worker was evicted for broken links within awayForgiven.
func (c *Coordinator) badNetwork() bool {
	return !c.evictedAt.IsZero() && c.now.Sub(c.evictedAt) <= awayForgiven
}

// evictForNow evicts a worker that may return later under another number. The state of its members is lost.
func (c *Coordinator) evictForNow(e Lost) []Effect {
	maps.DeleteFunc(c.evictions, func(_ string, k breaks) bool { return c.now.Sub(k.last) > awayForgiven })
	key := c.keys[e.Worker]
	times := c.evictions[key].times
	after := min(linkAway<<min(times, 10), linkForgiven)
	c.evictions[key] = breaks{times + 1, c.now}
	fx := []Effect{Send{e.Worker, message.Evict{Why: e.Reason, After: after}}}
	e.Reason += fmt.Sprintf("; it may return in %s", after)
	return append(fx, c.removeLost(e)...)
}

// recentBreaks returns how often connections of a worker broke. A connection counts if its last break is within
// linkForgiven.
func (c *Coordinator) recentBreaks(w int) (n int) {
	for pair, k := range c.breaks {
		if (pair[0] == w || pair[1] == w) && c.now.Sub(k.last) <= linkForgiven {
			n += k.times
		}
	}
	return n
}
