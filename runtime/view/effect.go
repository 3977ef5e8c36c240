package view

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"brood/runtime/event"
)

// Effect compares a quantity before and after a change of the run: an edit, a swap of the algorithm or a resize. It is
// a difference of means, so it includes what training alone would have changed.
type Effect struct {
	Series string  `cbor:"0,keyasint"` // one of effectSeries
	Rounds uint64  `cbor:"1,keyasint"` // number of rounds from the change on
	Before float64 `cbor:"2,keyasint"` // mean over the rounds before the change
	After  float64 `cbor:"3,keyasint"` // mean over the rounds from the change on
	From   uint64  `cbor:"4,keyasint"` // first of the rounds before the change
	First  uint64  `cbor:"5,keyasint"` // first round with the change
}

const (
	effectRounds = 50 // length of a window, if the series has a bucket for each few rounds
	effectPoints = 3  // least number of values in a window
)

// effectSeries are the series of an effect, with their names for users. The first one that has enough values is used:
// the loss of the centre is what a run minimises, and has less noise than that of mini-batches.
var effectSeries = []struct{ name, title string }{
	{CentreLoss, "centre loss"}, {"loss", "training loss"}, {Fitness, "fitness"},
}

// measures reports whether a series is one of those by which effects in this run are measured. Of an objective only the
// fitness is, which its user defines: its losses are negated fitness.
func (v *View) measures(series string) bool { return series == Fitness || !v.Config.Maximises() }

// Effect returns the effect of a change from round first on: of the rounds up to end, exclusive, on those from round
// from on. ok is false if no series has enough values.
func (v *View) Effect(from, first, end uint64) (e Effect, ok bool) {
	rounds := end - first
	for _, x := range effectSeries {
		e := Effect{Series: x.name, Rounds: rounds, From: from, First: first}
		var before, after bool
		e.Before, before = v.mean(x.name, rounds, from, first)
		if e.After, after = v.mean(x.name, rounds, first, end); before && after && v.measures(x.name) {
			return e, true
		}
	}
	return Effect{}, false
}

// mean returns the mean of a series over the rounds [from, end). ok is false for less than effectPoints values, and if
// the series has no bucket for each few rounds of a window.
func (v *View) mean(series string, window, from, end uint64) (mean float64, ok bool) {
	s := v.Find(series)
	if s == nil || 4*s.Width() > window {
		return 0, false
	}
	b := s.Mean(from, end)
	return b.Mean(), b.Count >= effectPoints
}

// Change returns the change of the series of an effect in another run, over the same rounds. ok is false if that run
// has not reached the last of these rounds, or has too few values.
func (v *View) Change(e Effect) (change float64, ok bool) {
	before, some := v.mean(e.Series, e.Rounds, e.From, e.First)
	after, more := v.mean(e.Series, e.Rounds, e.First, e.First+e.Rounds)
	return after - before, some && more && v.Progress.Rounds+1 >= e.First+e.Rounds
}

// EffectWindow returns the number of rounds of an effect, if no other change follows sooner.
func (v *View) EffectWindow() uint64 {
	if s := v.Find(CentreLoss); s != nil {
		return max(effectRounds, 4*s.Width())
	}
	return effectRounds
}

// ForkEffect returns the effect of the changes with which a fork began: of its first rounds, at most this many, on
// those before the fork, which only its parent has. It has fewer rounds while the fork has, and if another change
// follows. ok is false if one of the runs has too few values.
func (v *View) ForkEffect(parent *View, limit uint64) (e Effect, ok bool) {
	first := v.Config.ParentAt + 1
	rounds := min(limit, max(v.EffectWindow(), parent.EffectWindow()), max(v.Progress.Rounds+1, first)-first)
	for _, k := range v.Marks {
		if k.Round > first && !k.Alert {
			rounds = min(rounds, k.Round-first)
		}
	}
	for _, x := range effectSeries {
		e = Effect{Series: x.name, Rounds: rounds, From: parent.windowBefore(first, rounds), First: first}
		var before, after bool
		e.Before, before = parent.mean(x.name, rounds, e.From, first)
		if e.After, after = v.mean(x.name, rounds, first, first+rounds); before && after && v.measures(x.name) {
			return e, true
		}
	}
	return Effect{}, false
}

// ForkText returns the changes with which a fork began, "" if there are none: "eta 0.1 → 0.05, ell 5".
func (v *View) ForkText() string {
	var texts []string
	for _, k := range v.Marks {
		if k.Round == v.Config.ParentAt+1 && !k.Alert {
			texts = append(texts, strings.ReplaceAll(k.Text, "→", " → "))
		}
	}
	return strings.Join(texts, ", ")
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

// String describes the effect: "centre loss -0.004 (-11 %) in 50 rounds".
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
	v.Turns = append(v.Turns, turn{first, v.EffectWindow(), text})
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
		v.note(event.LevelInfo, KindEffect, end-1, fmt.Sprintf("%s at round %s: %s", t.Text, Grouped(t.First), e))
		v.Lane[len(v.Lane)-1].Effect = &e
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
	if v.Config != nil { // a fork has no values of the rounds before it
		from = max(from, v.Config.ParentAt+1)
	}
	for _, k := range v.Marks {
		if k.Round < first && !k.Alert {
			from = max(from, k.Round)
		}
	}
	return from
}
