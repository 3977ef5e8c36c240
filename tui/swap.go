package tui

import (
	"slices"
	"strings"

	"brood/optim"
	"brood/runtime/event"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/panel/knobs"
	"brood/tui/textfmt"
)

// resets are the knobs that a command puts back at their defaults by swapping the algorithm, a person's before a
// preset's: a swap carries no knob over, neither what the one that runs was given nor what the next one was given when
// it ran before.
func (m *model) resets(c event.Command) (names []string) {
	i := slices.IndexFunc(m.Opt.Algorithms, func(a *optim.Algorithm) bool { return a.Name == c.Algorithm })
	if i < 0 || c.Algorithm == m.Live.Algorithm() {
		return nil
	}
	var others []string
	for _, k := range m.Opt.Algorithms[i].Knobs {
		if slices.ContainsFunc(c.Set, func(s event.Setting) bool { return s.Knob == k.Name }) {
			continue
		}
		switch tuned, person := m.isTuned(k, c.Algorithm); {
		case person:
			names = append(names, k.Name)
		case tuned:
			others = append(others, k.Name)
		}
	}
	return append(names, others...)
}

// isTuned says whether an algorithm's knob, or the one of that name of the algorithm that runs, has another value than
// the default, and whether a person gave it.
func (m *model) isTuned(k optim.Knob, algorithm string) (some, person bool) {
	last := map[string]event.Edit{}
	for _, e := range m.Live.Edits {
		if e.Knob == k.Name && !e.Void && (e.Algorithm == algorithm || e.Algorithm == m.Live.Algorithm()) {
			last[e.Algorithm] = e.Edit
		}
	}
	for _, e := range last {
		if x, err := k.Parse(e.Expr); err != nil || x != k.Default {
			some = true
			person = person || !e.FromSpec()
		}
	}
	return some, person
}

// showSwap tells of a swap that was accepted, and until the next answer at the rail what it puts back.
func (m *model) showSwap(msg panel.ReceiptMsg) {
	from, what := msg.Receipt.Round+1, "swap to "+msg.Command.Algorithm
	back := "back at defaults: " + strings.Join(msg.Resets, ", ")
	m.Say(cell.Good, what+" from round "+textfmt.Grouped(from)+" on, "+back)
	if m.rail.Sent == nil {
		text := what + " from round " + textfmt.Grouped(from) + " on, " + back
		m.rail.Answer = knobs.Answer{What: what + ", " + back, Text: text, ID: msg.Command.ID, From: from, Swap: true}
		m.rail.Refresh(m.Host)
	}
}
