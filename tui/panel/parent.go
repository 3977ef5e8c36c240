package panel

import (
	"fmt"
	"math"
	"slices"

	"brood/runtime/axis"
	"brood/runtime/event"
	"brood/runtime/view"
)

// Events returns the event list of the shown run. In a fork the effect of a change is followed by what the parent did
// without it, as far as the log of the parent was read, and the changes with which the fork began have an effect too.
func (m *Host) Events() []view.Entry {
	lane := m.Shown.Lane
	if m.Parent == nil || m.Shown.Config == nil {
		return lane
	}
	key := eventsKey{m.Shown, m.Shown.Position, m.Parent}
	if m.events.key != key {
		m.events.key, m.events.list = key, m.withParent(lane)
	}
	return m.events.list
}

// eventsKey is what the events of a fork depend on.
type eventsKey struct {
	shown  *view.View
	at     view.Position
	parent *view.View
}

func (m *Host) withParent(lane []view.Entry) []view.Entry {
	lane = slices.Clone(lane)
	for i := range lane {
		lane[i].Text += m.withoutIt(lane[i].Effect)
	}
	v, text := m.Shown, m.Shown.ForkText()
	e, ok := v.ForkEffect(m.Parent, math.MaxUint64)
	round := e.First + e.Rounds - 1
	whole := e.Rounds >= max(v.EffectWindow(), m.Parent.EffectWindow()) || round < v.Progress.Rounds || v.Over()
	if !ok || !whole || text == "" {
		return lane
	}
	at := slices.IndexFunc(lane, func(x view.Entry) bool { return x.Round > round })
	if at < 0 {
		at = len(lane)
	}
	seconds := v.Clock.At(axis.Seconds, axis.Rounds, float64(round))
	return slices.Insert(lane, at, view.Entry{Trained: int64(seconds * 1e9), Round: round, Level: event.LevelInfo,
		Kind: view.KindEffect, Text: fmt.Sprintf("%s at round %s: %s%s", text, view.Grouped(e.First), e, m.withoutIt(&e))})
}

// withoutIt returns the change of the parent over the rounds of an effect, to append to its text; "" if it is unknown.
func (m *Host) withoutIt(e *view.Effect) string {
	if e == nil {
		return ""
	}
	if change, ok := m.Parent.Change(*e); ok {
		return fmt.Sprintf(", without it %+.2g", change)
	}
	return ""
}
