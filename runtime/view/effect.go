package view

import (
	"fmt"
	"math"
	"slices"

	"brood/runtime/event"
)

// Effect compares a quantity before and after a change of the run: an edit, a swap of the algorithm or a resize. It is
// a difference of means, so it includes what training alone would have changed.
type Effect struct {
	Series string  `cbor:"0,keyasint"` // one of effectSeries
	Rounds uint64  `cbor:"1,keyasint"` // number of rounds from the change on
	Before float64 `cbor:"2,keyasint"` // mean over the rounds before the change
	After  float64 `cbor:"3,keyasint"` // mean over the rounds from the change on
}

const (
	effectRounds = 50 // length of a window, if the series has a bucket for each few rounds
	EffectPoints = 3  // least number of values in a window
)

// effectSeries are the series of an effect, with their names for users. The first one that has enough values is used:
// the loss of the centre is what a run minimises, and has less noise than that of mini-batches.
var effectSeries = []struct{ name, title string }{
	{CentreLoss, "loss"}, {"loss", "training loss"}, {Fitness, "fitness"},
}

// Effect returns the effect of a change from round first on: of the rounds up to end, exclusive, on those from round
// from on. ok is false if no series has enough values.
func (v *View) Effect(from, first, end uint64) (e Effect, ok bool) {
	rounds := end - first
	for _, x := range effectSeries {
		s := v.Find(x.name)
		if s == nil || 4*s.Width() > rounds {
			continue
		}
		before, after := s.Mean(from, first), s.Mean(first, end)
		if before.Count >= EffectPoints && after.Count >= EffectPoints {
			return Effect{x.name, rounds, before.Mean(), after.Mean()}, true
		}
	}
	return Effect{}, false
}

// Mean summarises the rounds [from, end): the values of a scalar, or the medians over members. It is empty if s is nil.
func (s *Series) Mean(from, end uint64) Bucket {
	switch edges := []uint64{from, end}; {
	case s == nil:
		return Bucket{}
	case len(s.Members) > 0:
		return s.Median(edges)[0]
	default:
		return s.Columns(Whole, edges)[0]
	}
}

// Percent returns the change relative to the magnitude before it; NaN if that is 0.
func (e Effect) Percent() float64 {
	if e.Before == 0 {
		return math.NaN()
	}
	return 100 * (e.After - e.Before) / math.Abs(e.Before)
}

// String describes the effect: "loss -0.004 (-11 %) in 50 rounds".
func (e Effect) String() string {
	title := ""
	for _, x := range effectSeries {
		if x.name == e.Series {
			title = x.title
		}
	}
	text := fmt.Sprintf("%s %+.2g", title, e.After-e.Before)
	if p := e.Percent(); p == p {
		text += fmt.Sprintf(" (%+.2g %%)", p)
	}
	return fmt.Sprintf("%s in %s", text, Plural(int(e.Rounds), "round"))
}

// turn is a change whose effect is not known yet.
type turn struct {
	First  uint64 `cbor:"0,keyasint"` // the first round with it
	Rounds uint64 `cbor:"1,keyasint"` // window
	Text   string `cbor:"2,keyasint"`
}

// turned adds a change that takes effect in round first. It joins the texts of changes of one round.
func (v *View) turned(first uint64, text string) {
	v.Turns = slices.Clone(v.Turns)
	for i := range v.Turns {
		if t := &v.Turns[i]; t.First == first {
			t.Text += ", " + text
			return
		}
	}
	rounds := uint64(effectRounds)
	if s := v.Find(CentreLoss); s != nil {
		rounds = max(rounds, 4*s.Width())
	}
	v.Turns = append(v.Turns, turn{first, rounds, text})
	slices.SortStableFunc(v.Turns, func(a, b turn) int { return int(int64(a.First) - int64(b.First)) })
}

// settle adds the effect of each change whose window has ended to the event list and to its last mark. A window ends at
// the next change, and with the run (over). Values of the rounds up to v.Progress must have been applied.
func (v *View) settle(over bool) {
	next := v.Progress.Rounds + 1
	for len(v.Turns) > 0 {
		t, end := v.Turns[0], v.Turns[0].First+v.Turns[0].Rounds
		if len(v.Turns) > 1 {
			end = min(end, v.Turns[1].First)
		}
		if end > next && !over {
			return
		}
		v.Turns = v.Turns[1:]
		if end = min(end, next); end <= t.First {
			continue
		}
		e, ok := v.Effect(v.windowBefore(t.First, end-t.First), t.First, end)
		if !ok {
			continue
		}
		v.note(event.LevelInfo, KindEffect, end-1, fmt.Sprintf("%s at round %d: %s", t.Text, t.First, e))
		v.Marks = slices.Clone(v.Marks)
		for i := len(v.Marks) - 1; i >= 0; i-- {
			if k := &v.Marks[i]; k.Round == t.First && !k.Alert {
				k.Effect = &e
				break
			}
		}
	}
}

// windowBefore returns the first round of the window before a change in round first: it has the given length, unless
// there is another change in it, at which it begins.
func (v *View) windowBefore(first, rounds uint64) uint64 {
	from := first - min(rounds, first-min(first, 1))
	for _, k := range v.Marks {
		if k.Round < first && !k.Alert {
			from = max(from, k.Round)
		}
	}
	return from
}
