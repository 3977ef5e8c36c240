package worker

import (
	"math"
	"testing"

	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/message"
)

// TestProgress: counters add up, and epochs stay exact when the number of samples per pass changes.
func TestProgress(t *testing.T) {
	s := someEpoch(t)
	for range 3 {
		s.advance(optim.Report{Steps: 2, Samples: 40, Evaluations: 5, Pass: optim.Pass{Done: 40, Of: 100}})
	}
	want := event.Progress{Rounds: 3, Steps: 6, Samples: 120, Evaluations: 15, Epochs: 1.2}
	if p := s.progress(); p != want {
		t.Errorf("%+v, want %+v", p, want)
	}
	for range 4 { // twice the population: a pass takes twice as long
		s.advance(optim.Report{Samples: 80, Pass: optim.Pass{Done: 80, Of: 200}})
	}
	s.advance(optim.Report{}) // a round that draws nothing
	if p := s.progress(); math.Abs(p.Epochs-2.8) > 1e-9 || p.Rounds != 8 || p.Samples != 440 {
		t.Errorf("%+v", p)
	}
	s.advance(optim.Report{Pass: optim.Pass{Done: 50, Of: 100}})
	if p := s.progress(); math.Abs(p.Epochs-3.3) > 1e-9 {
		t.Errorf("%+v", p)
	}
}

// TestEpochsBetweenPasses: if the size of a pass changes, past epochs are rounded down, by less than one unit.
func TestEpochsBetweenPasses(t *testing.T) {
	s := someEpoch(t)
	s.advance(optim.Report{Pass: optim.Pass{Done: 1, Of: 10}})
	was := s.progress().Epochs
	s.advance(optim.Report{Pass: optim.Pass{Done: 0, Of: 4}})
	if fell := was - s.progress().Epochs; was != 0.1 || fell <= 0 || fell >= message.EpochUnit {
		t.Errorf("from %g it fell by %g", was, fell)
	}
}

func TestReached(t *testing.T) {
	p := event.Progress{Rounds: 10, Epochs: 2}
	for _, c := range []struct {
		l    event.Limit
		want bool
	}{
		{event.Limit{}, false}, {event.Limit{Rounds: 10}, true}, {event.Limit{Rounds: 11}, false},
		{event.Limit{Epochs: 2}, true}, {event.Limit{Epochs: 2.01}, false},
		{event.Limit{Rounds: 11, Epochs: 1}, true}, {event.Limit{Seconds: 1, Target: "loss=9"}, false},
	} {
		if got := c.l.Reached(p); got != c.want {
			t.Errorf("%+v at %+v: %v", c.l, p, got)
		}
	}
}
