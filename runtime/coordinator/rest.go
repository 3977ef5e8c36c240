package coordinator

import (
	"fmt"
	"maps"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/message"
)

// rest is why a worker that is there gets no members.
type rest uint8

const (
	cordoned rest = iota + 1
	leaving
)

// hosts are the workers that may be given members. Where only cordoned ones are left, those, and then those that leave:
// training goes before.
func (c *Coordinator) hosts() []int {
	for _, out := range []rest{cordoned, leaving} {
		free := slices.DeleteFunc(slices.Clone(c.alive), func(w int) bool { return c.rests[w] >= out })
		if len(free) > 0 {
			return free
		}
	}
	return c.alive
}

// deserted says that all workers want to leave.
func (c *Coordinator) deserted() bool {
	return len(c.alive) > 0 && !slices.ContainsFunc(c.alive, func(w int) bool { return c.rests[w] != leaving })
}

// Worker is a worker as the core knows it.
type Worker struct {
	ID      int
	State   event.WorkerState
	Members []optim.Member // that it hosts, ascending
}

// here says whether a worker is there.
func (c *crew) here(w int) bool {
	return optim.Find(c.alive, w) >= 0
}

// Workers are those that are there.
func (c *Coordinator) Workers() (out []Worker) {
	for _, w := range c.alive {
		x := Worker{ID: w, State: event.Idle}
		if c.base > c.cfg.Epoch {
			x.Members = c.hosting.Of(w)
		}
		switch {
		case c.rests[w] == leaving:
			x.State = event.Leaving
		case c.rests[w] == cordoned:
			x.State = event.Cordoned
		case len(x.Members) > 0:
			x.State = event.Hosting
		}
		out = append(out, x)
	}
	return out
}

// leaves makes the members of a worker move on; with the plan that moves them it is dismissed.
func (c *Coordinator) leaves(e message.Leaving) []Effect {
	if !c.here(e.Worker) || c.rests[e.Worker] == leaving {
		return nil
	}
	c.rests[e.Worker] = leaving
	if c.base == c.cfg.Epoch && c.plan == nil { // nothing has begun
		return c.dismiss()
	}
	c.move(event.CauseLeave, fmt.Sprintf("worker %d leaves", e.Worker))
	fx := []Effect{c.alert(event.LevelInfo, event.AlertLeave, fmt.Sprintf("worker %d leaves: its members move to the others", e.Worker), engine.None)}
	// the next plan moves them, after a grant that has no way back
	if c.plan != nil || !c.keep && c.granted > c.committed {
		return fx
	}
	c.voided = c.voided || c.granted > c.committed // whoever leaves has little time, and a round may be long
	c.granted = c.committed
	clear(c.done)
	return append(fx, c.reshape()...)
}

// move asks for a plan that places the members anew.
func (c *Coordinator) move(cause event.Cause, note string) {
	next := c.target()
	if next.cause == "" {
		next.cause = cause
	}
	next.note = note
	c.change = &next
}

// forget takes a worker out that is gone, with what was remembered of it.
func (c *crew) forget(w int) {
	c.alive = slices.DeleteFunc(c.alive, func(a int) bool { return a == w })
	delete(c.rests, w)
	delete(c.keys, w)
	maps.DeleteFunc(c.cuts, func(pair [2]int, _ cuts) bool { return slices.Contains(pair[:], w) })
}

// dismiss lets those go who want to and hold no member.
func (c *Coordinator) dismiss() (fx []Effect) {
	for _, w := range slices.Clone(c.alive) {
		if c.rests[w] == leaving && (c.base == c.cfg.Epoch || len(c.hosting.Of(w)) == 0) {
			c.forget(w)
			fx = append(fx, Dismiss{w})
		}
	}
	return fx
}

// abandon lets all workers go when everybody wants to: what they hold is saved first, if it can be, and the next to
// join goes on from there.
func (c *Coordinator) abandon(save bool) (fx []Effect) {
	if save && len(c.lost) == 0 && !c.isSaved() {
		return c.save()
	}
	for _, w := range slices.Clone(c.alive) {
		c.forget(w)
		fx = append(fx, Dismiss{w})
	}
	for _, m := range c.roster.Members {
		c.lost[m] = true
	}
	if c.ending != nil {
		return append(fx, c.exit()...)
	}
	return append(fx, c.alert(event.LevelWarning, event.AlertLeave, "the last worker has left: the run waits for one to join", engine.None))
}

// rest obeys Cordon, Drain and Uncordon.
func (c *Coordinator) rest(cmd event.Command) []Effect {
	var text string
	var kind event.AlertKind
	switch cmd.Action {
	case event.Cordon:
		c.rests[cmd.Worker] = cordoned
		kind, text = event.AlertCordon, fmt.Sprintf("worker %d gets no members from the next plan on", cmd.Worker)
	case event.Drain:
		c.rests[cmd.Worker] = cordoned
		kind, text = event.AlertDrain, fmt.Sprintf("the members of worker %d move to the others", cmd.Worker)
		c.move(event.CauseDrain, text)
	case event.Uncordon:
		delete(c.rests, cmd.Worker)
		kind, text = event.AlertUncordon, fmt.Sprintf("worker %d takes part again", cmd.Worker)
		c.move(event.CauseJoin, text)
	}
	return []Effect{c.alert(event.LevelInfo, kind, text+", says "+By(cmd), engine.None)}
}

// mayRest says whether a worker may be cordoned, drained, or let in again.
func (c *Coordinator) mayRest(cmd event.Command) error {
	w := cmd.Worker
	switch {
	case !c.here(w):
		return fmt.Errorf("there is no worker %d: those that are here are %v", w, c.alive)
	case c.rests[w] == leaving:
		return fmt.Errorf("worker %d is leaving", w)
	case cmd.Action == event.Uncordon && c.rests[w] != cordoned:
		return fmt.Errorf("worker %d takes part already", w)
	case cmd.Action == event.Cordon && c.rests[w] == cordoned:
		return fmt.Errorf("worker %d is cordoned already", w)
	case cmd.Action == event.Drain && c.rests[w] == cordoned && len(c.hosting.Of(w)) == 0:
		return fmt.Errorf("worker %d is drained already", w)
	}
	others := maps.Clone(c.rests)
	others[w] = cordoned
	if cmd.Action != event.Uncordon && len(others) == len(c.alive) {
		return fmt.Errorf("no other worker could take the members of worker %d: let one join first, or stop the run", w)
	}
	return nil
}
