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

// resets returns the knobs that a swap of the algorithm resets to their defaults: first those that the user changed,
// then those of a preset. A swap keeps no knob values, neither those of the running algorithm nor earlier ones of the
// next.
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
		switch tuned, byUser := m.isTuned(k, c.Algorithm); {
		case byUser:
			names = append(names, k.Name)
		case tuned:
			others = append(others, k.Name)
		}
	}
	return append(names, others...)
}

// isTuned reports whether a knob of an algorithm, or the knob of the same name of the running one, differs from its
// default, and whether a user changed it.
func (m *model) isTuned(k optim.Knob, algorithm string) (tuned, byUser bool) {
	last := map[string]event.Edit{}
	for _, e := range m.Live.Edits {
		if e.Knob == k.Name && !e.Void && (e.Algorithm == algorithm || e.Algorithm == m.Live.Algorithm()) {
			last[e.Algorithm] = e.Edit
		}
	}
	for _, e := range last {
		if x, err := k.Parse(e.Expr); err != nil || x != k.Default {
			tuned = true
			byUser = byUser || !e.FromSpec()
		}
	}
	return tuned, byUser
}

// showSwap shows an accepted swap with the knobs that it resets.
func (m *model) showSwap(msg panel.ReceiptMsg) {
	from, what := msg.Receipt.Round+1, "swap to "+msg.Command.Algorithm
	reset := "reset to defaults: " + strings.Join(msg.Resets, ", ")
	text := what + " from round " + textfmt.Grouped(from) + ", " + reset
	m.Say(cell.Good, text)
	if m.rail.Sent == nil {
		m.rail.Answer = knobs.Answer{What: what + ", " + reset, Text: text, ID: msg.Command.ID, From: from, Swap: true}
		m.rail.Refresh(m.Host)
	}
}
