package coordinator

import (
	"fmt"
	"maps"
	"time"

	"brood/models/engine"
	"brood/runtime/event"
	"brood/runtime/message"
)

// Two workers may lose each other while both reach the coordinator. Nobody has lost a row then: the rounds in progress
// are void, and all go on in a new membership epoch, in which the two connect anew. That is tried twice; whoever lost
// others a third time within linkForgiven is put out for a while. Of the two that is the one that lost more, and where
// they are equal the one that says so first: no worker can put another that hosts members out by what it alone says.
// One that hosts none yet goes first, for a while, whoever of the two speaks.

// linkPauses are how long the first and the second try wait.
var linkPauses = [...]time.Duration{0, 2 * time.Second}

// linkForgiven is how long a connection must hold until its earlier ends no longer count.
const linkForgiven = 10 * time.Minute

// Whoever is put out because of lost links may come back after linkAway. Each time that it was before, by its key, that
// is twice as long, up to linkForgiven: a network that stays bad costs less and less, and nobody pays for what another
// says. Where that has not happened to it for awayForgiven, it begins anew.
const (
	linkAway     = 10 * time.Second
	awayForgiven = time.Hour
)

// cuts are how often a connection broke, and when last.
type cuts struct {
	times int
	last  time.Time
}

// severed handles the failure of a worker whose connection to another broke.
func (c *Coordinator) severed(e message.Failed) []Effect {
	if !c.retry.IsZero() {
		return nil // both ends of a connection notice
	}
	if c.plan == nil && !c.keep {
		return c.fence(Lost{e.Worker, "it reports: " + e.Err}) // who is alone exchanges nothing
	}
	if w, bare := c.bare(e.Worker, *e.Cut); e.Never || bare && c.badNetwork() {
		return c.unreached(e, w)
	}
	one, other := min(e.Worker, *e.Cut), max(e.Worker, *e.Cut)
	n := c.cuts[[2]int{one, other}]
	if c.now.Sub(n.last) > linkForgiven {
		n.times = 0
	}
	c.cuts[[2]int{one, other}] = cuts{n.times + 1, c.now}
	worst, times := e.Worker, c.cutsOf(e.Worker)
	if n := c.cutsOf(*e.Cut); n > times {
		worst, times = *e.Cut, n
	}
	if times > len(linkPauses) {
		c.bad = c.now
		return c.sendAway(Lost{worst, fmt.Sprintf("it lost others %d times in %s, though it reaches the coordinator: see to the network between the workers; the last time, worker %d reported: %s",
			times, linkForgiven, e.Worker, e.Err)})
	}
	wait := linkPauses[times-1]
	when := "at once"
	if wait > 0 {
		when = fmt.Sprintf("after %s", wait)
	}
	note := fmt.Sprintf("workers %d and %d lost each other", one, other)
	fx := []Effect{c.alert(event.LevelWarning, event.AlertLostLink, fmt.Sprintf("%s: tried again %s, %d of %d; worker %d reports: %s", note, when, times, len(linkPauses), e.Worker, e.Err), engine.None)}
	if c.base == c.cfg.Epoch { // nothing was ever ready
		c.plan = nil
		return append(fx, c.first()...)
	}
	next := c.target()
	if next.cause == "" {
		next.cause = event.CauseRestore
	}
	next.note = note
	if c.plan != nil && c.plan.From != event.Workers {
		next.back = true // the way back was cut off: nobody holds that round but the checkpoint
	}
	c.voided = c.voided || c.granted > c.committed
	c.change, c.plan, c.retry = &next, nil, c.now.Add(wait)
	c.granted = c.committed
	clear(c.done)
	return fx
}

// bare is the one of two workers that hosts no member, the first where neither does: it has nothing to lose. Where both
// do, or nothing was ever ready, it is the first, and false.
func (c *Coordinator) bare(first, second int) (w int, ok bool) {
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

// unreached puts a worker out that never had a connection with another, or none that held until it had members. By its
// own word its addresses are wrong, unless the network is known to be bad: then it may come back, and the others do not
// wait for it meanwhile. By the other's word it may come back in any case.
func (c *Coordinator) unreached(e message.Failed, out int) []Effect {
	switch {
	case out != e.Worker:
		return c.sendAway(Lost{out, fmt.Sprintf("worker %d reports: %s", e.Worker, e.Err)})
	case c.badNetwork():
		return c.sendAway(Lost{out, "it reports: " + e.Err})
	}
	return c.fence(Lost{out, "it reports: " + e.Err})
}

// badNetwork says whether a worker was put out lately because it had lost others.
func (c *Coordinator) badNetwork() bool {
	return !c.bad.IsZero() && c.now.Sub(c.bad) <= awayForgiven
}

// sendAway puts a worker out that may come back, as another number. What it held is lost.
func (c *Coordinator) sendAway(e Lost) []Effect {
	maps.DeleteFunc(c.aways, func(_ string, k cuts) bool { return c.now.Sub(k.last) > awayForgiven })
	key := c.keys[e.Worker]
	times := c.aways[key].times
	after := min(linkAway<<min(times, 10), linkForgiven)
	c.aways[key] = cuts{times + 1, c.now}
	fx := []Effect{Send{e.Worker, message.Away{Why: e.Reason, After: after}}}
	e.Reason += fmt.Sprintf("; it may come back in %s", after)
	return append(fx, c.loses(e)...)
}

// cutsOf is how often connections of a worker broke lately.
func (c *Coordinator) cutsOf(w int) (n int) {
	for pair, k := range c.cuts {
		if (pair[0] == w || pair[1] == w) && c.now.Sub(k.last) <= linkForgiven {
			n += k.times
		}
	}
	return n
}
