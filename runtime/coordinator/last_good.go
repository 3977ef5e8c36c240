package coordinator

import (
	"math"

	"brood/runtime/event"
)

// LastGood is computed from the records of a log: the newest state known to be good. A probe is good if the centre's
// loss is finite and not above the loss of the log's first probe. A checkpoint is good once a good probe was made at
// its round or later; a probe before it does not cover the rounds in between. The state that a branch starts from
// is good, since a person chose it.
type LastGood struct {
	Round uint64            // of the newest good probe; 0 without one
	Good  *event.Checkpoint // newest good checkpoint; nil without one

	newest *event.Checkpoint
	first  *float64 // loss at the first probe
	begun  bool     // this log contains a committed round
}

// Take applies the next record.
func (s *LastGood) Take(r event.Record) {
	switch {
	case r.Plan != nil: // later rounds are repeated
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

// Newest returns the checkpoint to which a rollback returns: the newest one that no later plan undid.
func (s *LastGood) Newest() *event.Checkpoint { return s.newest }
