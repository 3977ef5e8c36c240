package coordinator

import (
	"fmt"

	"brood/models/engine"
	"brood/runtime/event"
)

// backTries is how often a run returns to a checkpoint automatically before it stops. Repeated rounds are
// deterministic, so that a retry helps only against a hardware fault or a knob that was changed since.
const backTries = 3

func (c *Coordinator) handleTrouble(e Trouble) []Effect {
	if c.phase == event.Paused || c.ending != nil {
		return nil
	}
	return c.halt(e.Why, e.Reason, engine.None)
}

// halt pauses the run; under another policy than OnTroubleWait it ends the run once the committed state is saved.
func (c *Coordinator) halt(why event.PauseReason, text string, m engine.Member) []Effect {
	fx := []Effect{c.alert(event.LevelError, why.Alert(), text, m)}
	if c.cfg.OnTrouble == OnTroubleWait {
		return append(fx, c.enter(event.Paused, text))
	}
	if c.ending == nil {
		c.ending = &Exit{Phase: event.Failed, Reason: text}
	}
	return fx
}

// handleNonFinite voids the rounds in progress, in which a block was not finite. It returns to a good checkpoint if the
// policy is OnTroubleBack and retries remain; otherwise it halts the run at the last committed or saved round.
func (c *Coordinator) handleNonFinite(what string, m engine.Member) (fx []Effect) {
	c.granted = c.committed
	if c.change == nil {
		c.change = &change{
			alg:     c.alg.Name,
			members: c.roster.Members,
			cause:   event.CauseRestore,
			note:    "back to the last good round",
		}
	}
	retry := c.cfg.OnTrouble == OnTroubleBack && c.tries < backTries && c.ending == nil
	if retry && (c.lastGood.Good != nil || c.cfg.Resume == nil) {
		c.tries++
		c.checkpoint = c.lastGood.Good
		c.change.back, c.change.undo = true, true
		where := "the start"
		if c.checkpoint != nil {
			where = fmt.Sprintf("round %d, the newest checkpoint "+
				"at which the loss of the centre was not above that of the start",
				c.checkpoint.Round)
		}
		c.change.note = "back to the last good checkpoint"
		what += fmt.Sprintf("; back to %s, without the edits since: try %d of %d", where, c.tries, backTries)
		return append([]Effect{c.alert(event.LevelError, event.AlertNonFinite, what, m)}, c.reshape()...)
	}
	to := c.committed
	if !c.snapshots {
		c.change.back, to = true, c.savedRound()
	}
	what += fmt.Sprintf("; back at round %d: revert the edits before it or lower eta, and resume", to)
	good := min(c.lastGood.Round, to)
	if good < to && good > 0 {
		what += fmt.Sprintf(", or branch at round %d, the last "+
			"at which the loss of the centre was not above that of the start",
			good)
	}
	if fx = c.halt(event.PauseNonFinite, what, m); c.ending != nil && c.ending.Phase == event.Failed {
		c.ending.Branch = good
	}
	return append(fx, c.reshape()...)
}

// savedRound returns the round of the newest checkpoint, 0 for the start.
func (c *Coordinator) savedRound() uint64 {
	if c.checkpoint == nil {
		return 0
	}
	return c.checkpoint.Round
}
