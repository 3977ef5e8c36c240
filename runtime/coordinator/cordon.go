package coordinator

import (
	"fmt"
	"maps"
	"slices"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
)

// exclusion is the reason why a worker that is present gets no members. A higher value excludes more strictly.
type exclusion uint8

const (
	cordoned  exclusion = iota + 1
	suspected           // set aside, see [suspicion]
	leaving
)

// hosts returns the workers that may host members; if all are cordoned, those; if none remain, the leaving ones too,
// since training takes precedence.
func (c *Coordinator) hosts() []int {
	for _, out := range []exclusion{cordoned, leaving} {
		free := slices.DeleteFunc(slices.Clone(c.alive), func(w int) bool { return c.excluded[w] >= out })
		// no other worker could compare its frames
		alone := len(free) == 1 && len(c.pairs) > 0 && c.pairs[0].accused == free[0]
		if len(free) > 0 && !alone {
			return free
		}
	}
	return c.alive
}

// place assigns members to the hosts.
func (c *Coordinator) place(members []engine.Member) collective.Roster {
	first := map[string]int{} // worker by machine
	return collective.Place(members, c.hosts()).On(func(worker int) int {
		machine, ok := c.machines[worker]
		if !ok {
			return worker
		}
		if _, ok := first[machine]; !ok {
			first[machine] = worker
		}
		return first[machine]
	})
}

// short reports whether the run waits for more workers. A run that ends does not wait.
func (c *Coordinator) short() bool { return c.ending == nil && len(c.hosts()) < c.cfg.MinWorkers }

// awaitWorkers reports that the run lacks workers. A run that trains waits from now on: until a plan has placed its
// members on enough of them.
func (c *Coordinator) awaitWorkers(level event.Level, kind event.AlertKind, text string) []Effect {
	fx := []Effect{c.alert(level, kind, text, engine.None)}
	if c.phase == event.Training {
		fx = append(fx, c.enter(event.Waiting, ""))
	}
	return fx
}

// awaitMore is awaitWorkers for a run that is [Coordinator.short].
func (c *Coordinator) awaitMore() []Effect {
	text := fmt.Sprintf("the run waits: it needs %d workers, and has %d", c.cfg.MinWorkers, len(c.hosts()))
	return c.awaitWorkers(event.LevelError, event.AlertLostWorker, text)
}

// allLeaving reports whether there are workers and all of them leave.
func (c *Coordinator) allLeaving() bool {
	return len(c.alive) > 0 && !slices.ContainsFunc(c.alive, func(w int) bool { return c.excluded[w] != leaving })
}

// Worker is the core's view of a worker that is present.
type Worker struct {
	ID      int
	State   event.WorkerState
	Members []engine.Member // hosted by it, ascending; nil before the first plan has completed
}

// here reports whether a worker is present.
func (c *membership) here(w int) bool {
	return collective.Find(c.alive, w) >= 0
}

// Workers returns the workers that are present, by ascending number.
func (c *Coordinator) Workers() (out []Worker) {
	for _, w := range c.alive {
		x := Worker{ID: w, State: event.Idle}
		if c.base > c.cfg.Epoch {
			x.Members = c.hosting.Of(w)
		}
		switch {
		case c.excluded[w] == leaving:
			x.State = event.Leaving
		case c.excluded[w] == cordoned, c.excluded[w] == suspected:
			x.State = event.Cordoned
		case len(x.Members) > 0:
			x.State = event.Hosting
		}
		out = append(out, x)
	}
	return out
}

// handleLeaving moves the members of a leaving worker to the others. The worker is released when the plan is ready.
func (c *Coordinator) handleLeaving(e message.Leaving) []Effect {
	if !c.here(e.Worker) || c.excluded[e.Worker] == leaving {
		return nil
	}
	c.excluded[e.Worker] = leaving
	if c.base == c.cfg.Epoch && c.plan == nil { // no plan has completed yet
		return c.releaseLeaving()
	}
	c.requestPlacement(event.CauseLeave, fmt.Sprintf("worker %d leaves", e.Worker))
	text := fmt.Sprintf("worker %d leaves: its members move to the others", e.Worker)
	fx := []Effect{c.alert(event.LevelInfo, event.AlertLeave, text, engine.None)}
	// the next plan moves its members, once the outstanding grant, which cannot be restarted, is committed
	if c.plan != nil || !c.snapshots && c.granted > c.committed {
		return fx
	}
	// void the outstanding rounds: a leaving worker has little time, and a round may be long
	c.voided = c.voided || c.granted > c.committed
	c.granted = c.committed
	clear(c.done)
	return append(fx, c.reshape()...)
}

// requestPlacement requests a plan that distributes the members again. A cause already set is kept.
func (c *Coordinator) requestPlacement(cause event.Cause, note string) {
	next := c.target()
	if next.cause == "" {
		next.cause = cause
	}
	next.note = note
	c.change = &next
}

// forget removes a worker that is gone and the state that belongs to it.
func (c *Coordinator) forget(w int) {
	key := c.keys[w]
	c.membership.forget(w)
	c.forgetSuspect(w, key)
	delete(c.reattach.held, w)
}

func (c *membership) forget(w int) {
	c.alive = slices.DeleteFunc(c.alive, func(a int) bool { return a == w })
	delete(c.excluded, w)
	delete(c.keys, w)
	delete(c.machines, w)
	maps.DeleteFunc(c.breaks, func(pair [2]int, _ breaks) bool { return slices.Contains(pair[:], w) })
}

// releaseLeaving releases the leaving workers that host no members.
func (c *Coordinator) releaseLeaving() (fx []Effect) {
	for _, w := range slices.Clone(c.alive) {
		if c.excluded[w] == leaving && (c.base == c.cfg.Epoch || len(c.hosting.Of(w)) == 0) {
			c.forget(w)
			fx = append(fx, Release{w})
		}
	}
	return fx
}

// releaseAll releases all workers when all of them leave. With save set, it first saves their state if that is possible
// and not yet done. The run waits, and continues from the checkpoint when a worker joins.
func (c *Coordinator) releaseAll(save bool) (fx []Effect) {
	if save && len(c.lost) == 0 && !c.isSaved() {
		return c.save()
	}
	for _, w := range slices.Clone(c.alive) {
		c.forget(w)
		fx = append(fx, Release{w})
	}
	for _, m := range c.roster.Members {
		c.lost[m] = true
	}
	if c.ending != nil {
		return append(fx, c.exit()...)
	}
	text := "the last worker has left: the run waits for one to join"
	return append(fx, c.awaitWorkers(event.LevelWarning, event.AlertLeave, text)...)
}

// applyCordon executes Cordon, Drain and Uncordon.
func (c *Coordinator) applyCordon(cmd event.Command) []Effect {
	var text string
	var kind event.AlertKind
	switch cmd.Action {
	case event.Cordon:
		c.excluded[cmd.Worker] = cordoned
		kind, text = event.AlertCordon, fmt.Sprintf("worker %d gets no members from the next plan on", cmd.Worker)
	case event.Drain:
		c.excluded[cmd.Worker] = cordoned
		kind, text = event.AlertDrain, fmt.Sprintf("the members of worker %d move to the others", cmd.Worker)
		c.requestPlacement(event.CauseDrain, text)
	case event.Uncordon:
		delete(c.excluded, cmd.Worker)
		c.pairs = slices.DeleteFunc(c.pairs, func(p pair) bool { return p.aside == cmd.Worker })
		kind, text = event.AlertUncordon, fmt.Sprintf("worker %d takes part again", cmd.Worker)
		c.requestPlacement(event.CauseJoin, text)
	}
	return []Effect{c.alert(event.LevelInfo, kind, text+", requested by "+By(cmd), engine.None)}
}

// validateCordon rejects a Cordon, Drain or Uncordon that has no effect or leaves no worker for the members.
func (c *Coordinator) validateCordon(cmd event.Command) error {
	w := cmd.Worker
	switch {
	case !c.here(w):
		return fmt.Errorf("there is no worker %d: the workers present are %v", w, c.alive)
	case c.excluded[w] == leaving:
		return fmt.Errorf("worker %d is leaving", w)
	case cmd.Action == event.Uncordon && c.excluded[w] == 0:
		return fmt.Errorf("worker %d already takes part", w)
	case cmd.Action == event.Cordon && c.excluded[w] == cordoned:
		return fmt.Errorf("worker %d is already cordoned", w)
	case cmd.Action == event.Drain && c.excluded[w] == cordoned && len(c.hosting.Of(w)) == 0:
		return fmt.Errorf("worker %d is already drained", w)
	}
	others := maps.Clone(c.excluded)
	others[w] = cordoned
	if cmd.Action != event.Uncordon && len(others) == len(c.alive) {
		return fmt.Errorf("no other worker could take the members of worker %d: let one join first, or stop the run", w)
	}
	return nil
}
