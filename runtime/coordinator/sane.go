package coordinator

import (
	"math"

	"brood/runtime/event"
)

// Sane folds the records of a log into the newest state that is known to be good. A probe is sane where the centre's
// loss is finite and not above that of the log's first probe. A checkpoint is sane once a sane probe was made at its
// round or after it, since a probe before it says nothing of what came between. The state that a branch begins with is
// sane because a person chose it.
type Sane struct {
	Round uint64            // of the newest sane probe; 0 without one
	Good  *event.Checkpoint // newest sane one, nil without one

	newest *event.Checkpoint
	first  *float64 // loss at the first probe
	begun  bool     // a round is committed in this log
}

// Take looks at the next record.
func (s *Sane) Take(r event.Record) {
	switch {
	case r.Plan != nil: // what lies behind it is done again
		s.Round = min(s.Round, r.Plan.At)
		if s.Good != nil && s.Good.Round > r.Plan.At {
			s.Good = nil
		}
		if s.newest != nil && s.newest.Round > r.Plan.At {
			s.newest = s.Good
		}
	case r.Commit != nil:
		s.begun = true
	case r.Checkpoint != nil:
		if s.newest = r.Checkpoint; !s.begun || s.newest.Round <= s.Round {
			s.Good = s.newest
		}
	case r.Points != nil && r.Points.Series == event.SeriesCentre && len(r.Points.Values) > 0:
		loss := r.Points.Values[0]
		if math.IsNaN(loss) || math.IsInf(loss, 0) {
			return
		}
		if s.first == nil {
			s.first = &loss
		}
		if loss > *s.first {
			return
		}
		if s.Round = r.Points.Round; s.newest != nil && s.newest.Round <= s.Round {
			s.Good = s.newest
		}
	}
}

// Newest is the checkpoint that a plan from one goes back to: the newest that no later plan undid.
func (s *Sane) Newest() *event.Checkpoint { return s.newest }
