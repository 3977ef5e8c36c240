package coordinator

import (
	"fmt"

	"brood/models/usererr"
	"brood/runtime/event"
)

// Losses holds the validation losses of the evaluations that no plan undid, computed from the records of a log. A run
// and a reader of its log thus agree on when its patience is over.
type Losses struct{ all []loss }

// loss is the validation loss of the centre after a round.
type loss struct {
	round uint64
	value float64
}

// Take applies the next record.
func (l *Losses) Take(r event.Record) {
	switch {
	case r.Plan != nil:
		n := len(l.all)
		for n > 0 && l.all[n-1].round > r.Plan.At {
			n--
		}
		l.all = l.all[:n:n]
	case r.Evaluation != nil && r.Evaluation.Validation != nil:
		l.all = append(l.all, loss{r.Evaluation.Round, r.Evaluation.Validation.Loss})
	}
}

// Best returns the first round with the lowest validation loss; 0 if there is none.
func (l Losses) Best() (round uint64) {
	if best := l.best(); best >= 0 {
		return l.all[best].round
	}
	return 0
}

// best returns the index of the first lowest loss; -1 if there is none. NaN is no loss.
func (l Losses) best() int {
	best := -1
	for i, x := range l.all {
		if x.value == x.value && (best < 0 || x.value < l.all[best].value) {
			best = i
		}
	}
	return best
}

// Stalled returns a sentence if the patience of the limit is over: if none of the last evaluations, as many as it
// states, has the lowest loss. It returns "" otherwise.
func (l Losses) Stalled(limit event.Limit) string {
	best := l.best()
	n := len(l.all) - 1 - best
	if limit.Patience == 0 || n < limit.Patience {
		return ""
	}
	text := fmt.Sprintf("the validation loss has not improved for %d evaluations", n)
	if best >= 0 {
		text += fmt.Sprintf(": it was %.4g after round %d", l.all[best].value, l.all[best].round)
	}
	return text
}

// CheckPatience rejects a patience of n evaluations if the run does not evaluate validation samples.
func CheckPatience(n, validation int) error {
	if n < 0 || n > 0 && validation == 0 {
		return usererr.Errorf("patience = %d: the run has no validation loss to wait for: give --validation above 0, "+
			"or omit it", n)
	}
	return nil
}

// stalled returns the exit of a run whose patience is over; nil if it is not. A target was missed then.
func (c *Coordinator) stalled() *Exit {
	why := c.losses.Stalled(c.cfg.Limit)
	if why == "" {
		return nil
	}
	return &Exit{Phase: event.Finished, Reason: why, Missed: c.cfg.Limit.Target}
}
