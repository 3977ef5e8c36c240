package coordinator

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"brood/models/engine"
	"brood/runtime/event"
	"brood/runtime/message"
)

// A coordinator's process can end while its workers live on. They keep the committed state and connect to the process
// that resumes the run, under their old numbers. Each reports the digests of its rows. Once all rows are there and
// their hash is the one in the log, the first plan continues from the workers, and no round is repeated. If rows are
// still missing after a while, or the hash differs, the shell recomputes the state from the log instead.

// Reattach lets the first plan of a resumed run continue from the state that workers of the earlier process hold.
// Config.Resume then describes the state after the last commit, without files.
type Reattach struct {
	Plan     event.Plan        // newest plan of the log; the last commit belongs to its epoch
	Saved    *event.Checkpoint // newest checkpoint with files; nil: a rollback returns to the start of the run
	Patience time.Duration     // how long to wait for the workers
}

// reattachment is the wait for the workers that hold the state. It ends with the first plan.
type reattachment struct {
	waiting     bool // for workers that hold rows
	recomputing bool // the shell recomputes the state
	since       time.Time
	held        map[int]map[string][32]byte // digests by worker and row
}

// awaitRows prepares the wait for the workers of an earlier process. The algorithm in effect is that of the last
// commit.
func (c *Coordinator) awaitRows(r *Reattach) {
	c.checkpoint, c.before = r.Saved, r.Plan.Timeline
	c.setRoster(r.Plan.New)
	c.declare(r.Plan)
	c.layoutDigests()
	c.reattach = reattachment{waiting: true, held: map[int]map[string][32]byte{}}
}

// firstWhenReady sends the first plan of the process as soon as it can.
func (c *Coordinator) firstWhenReady() []Effect {
	switch {
	case c.reattach.waiting, c.reattach.recomputing: // rows may also arrive before the state is recomputed
		return c.reattachWorkers(false)
	case len(c.alive) < c.cfg.Wait:
		return nil
	}
	return c.first()
}

// storeHeld stores the digests of the rows that a worker which joins holds: its own, the shared ones, and those whose
// mirror it is. It ignores others, and rows of another state.
func (c *Coordinator) storeHeld(worker int, h *message.Held) {
	place := c.hosting.Place(worker)
	if h == nil || c.reattach.held == nil || place < 0 || h.Epoch != c.base || h.Round != c.committed {
		return
	}
	own, mirrored, rows := h.Digests.Map(), h.Mirrored.Map(), map[string][32]byte{}
	for _, name := range slices.Concat(c.shared, c.names[place]) {
		if sum, ok := own[name]; ok {
			rows[name] = sum
		}
	}
	for _, name := range c.names[(place+len(c.names)-1)%len(c.names)] {
		if sum, ok := mirrored[name]; ok && len(c.names) > 1 {
			rows[name] = sum
		}
	}
	c.reattach.held[worker] = rows
}

// reattachTick ends the wait after its patience has passed.
func (c *Coordinator) reattachTick() []Effect {
	r := &c.reattach
	if r.since.IsZero() {
		r.since = c.now
	}
	if !r.waiting || c.plan != nil || c.now.Sub(r.since) < c.cfg.Reattach.Patience {
		return nil
	}
	if fx := c.reattachWorkers(true); fx != nil {
		return fx
	}
	return c.recompute(fmt.Sprintf("after %s the workers that returned do not hold all rows", c.cfg.Reattach.Patience))
}

// recompute asks the shell for the state after the last commit.
func (c *Coordinator) recompute(why string) []Effect {
	c.reattach.waiting, c.reattach.recomputing = false, true
	text := fmt.Sprintf("%s of round %d: this machine recomputes the rounds since the last checkpoint", why, c.committed)
	return []Effect{c.alert(event.LevelWarning, event.AlertRecompute, text, engine.None), Recompute{}}
}

// handleRecomputed continues from the recomputed state, unless a plan from the workers was sent meanwhile. If that plan
// fails, the next one starts from the recomputed state.
func (c *Coordinator) handleRecomputed(e Recomputed) []Effect {
	if !c.reattach.recomputing {
		return nil
	}
	c.reattach = reattachment{}
	cp := e.Checkpoint
	c.cfg.Resume, c.checkpoint = &cp, &cp
	fx := []Effect{c.record(event.Record{Checkpoint: &cp})}
	if c.plan == nil {
		fx = append(fx, c.firstWhenReady()...)
	}
	return fx
}

// reattachWorkers sends the plan that continues from the workers, once the workers present hold all rows. With mirrors
// set it also accepts mirrors in place of workers that are missing.
func (c *Coordinator) reattachWorkers(mirrors bool) []Effect {
	var missing []engine.Member
	for _, w := range c.hosting.Workers {
		if c.reattach.held[w] == nil {
			missing = append(missing, c.hosting.Of(w)...)
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 && !(mirrors && c.cfg.OnLoss == OnLossMirror) {
		return nil
	}
	root, err := c.heldRoot()
	switch {
	case err == nil && root != c.hash:
		err = fmt.Errorf("workers hold rows with hash %s, not %s,", root, c.hash)
	case errors.Is(err, errNotHeld):
		return nil
	}
	if err != nil && c.reattach.recomputing {
		return nil
	}
	if err != nil {
		return c.recompute(err.Error())
	}
	return append(c.reportRefused(), c.send(event.Plan{
		From:      event.Workers,
		At:        c.committed,
		Old:       c.roster,
		OldAlg:    c.alg.Name,
		Algorithm: c.alg.Name,
		New:       c.place(c.roster.Members),
		Before:    c.before,
		Cause:     c.cfg.Cause,
		Mirrored:  missing,
		Note:      "the workers held the state",
	})...)
}

// errNotHeld reports that no worker present holds a row.
var errNotHeld = errors.New("a row is held by no worker")

// heldRoot returns the hash of the state that the workers hold. It takes the rows of a missing worker from its mirror.
func (c *Coordinator) heldRoot() (string, error) {
	all := map[string][32]byte{}
	ring := c.hosting.Workers
	for place, w := range ring {
		rows, names := c.reattach.held[w], slices.Concat(c.shared, c.names[place])
		if rows == nil { // only rows of members have mirrors
			rows, names = c.reattach.held[ring[(place+1)%len(ring)]], c.names[place]
		}
		for _, name := range names {
			sum, ok := rows[name]
			if !ok {
				return "", errNotHeld
			}
			if was, twice := all[name]; twice && was != sum { // shared rows are at all workers
				return "", fmt.Errorf("workers hold different rows %s", name)
			}
			all[name] = sum
		}
	}
	return message.Root(message.DigestsOf(all)), nil
}
