package tui

import (
	"cmp"
	"slices"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/view"
)

// keys returns the bindings that select and change a knob, and those that send and discard staged changes.
func (r *rail) keys() (turning, sending []binding) {
	some := func(m *model) string {
		if len(r.knobs(m)) == 0 {
			return m.nothing("knobs", "knob")
		}
		return ""
	}
	may := func(m *model) string { return cmp.Or(m.whyNoStage(), some(m)) }
	move := func(d int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd {
			ks := r.knobs(m)
			r.selected = ks[(r.index(ks)+d+len(ks))%len(ks)].Name
			return nil
		}
	}
	turn := func(n int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { r.turn(m, n); return nil }
	}
	turning = []binding{
		{keys: []string{"j", "down"}, title: "next knob", why: some, do: move(1)},
		{keys: []string{"k", "up"}, title: "knob before", why: some, do: move(-1)},
		{keys: []string{"h", "left"}, title: "a step down", why: may, do: turn(-1)},
		{keys: []string{"l", "right"}, title: "a step up", why: may, do: turn(1)},
		{keys: []string{"H", "shift+left"}, title: "ten steps down", why: may, do: turn(-10)},
		{keys: []string{"L", "shift+right"}, title: "ten steps up", why: may, do: turn(10)},
		{
			keys:  []string{"enter"},
			title: "type a value, *0.5 or a schedule",
			why:   may,
			do:    func(m *model) tea.Cmd { r.typing = &line{}; return nil },
		},
		{
			keys:  []string{"i"},
			title: "knobs without effect too, or not",
			why:   some,
			do:    func(*model) tea.Cmd { r.all = !r.all; return nil },
		},
	}
	sending = []binding{
		{keys: []string{"a"}, title: "apply all that is staged", why: (*model).whyNoCommand, do: r.apply, anywhere: true},
		{keys: []string{"u"}, title: "unstage", why: (*model).whyNoStage, do: r.unstageChosen, anywhere: true},
	}
	return turning, sending
}

// apply sends all staged changes as one transaction. It refuses while an earlier one is unanswered.
func (r *rail) apply(m *model) tea.Cmd {
	switch {
	case r.sent != nil:
		r.answer = answer{text: "the last changes are not answered yet", bad: true}
		return nil
	case len(r.staged) == 0:
		r.answer = answer{text: "nothing is staged: turn a knob with h and l first", bad: true}
		return nil
	}
	c := event.Command{}
	for _, s := range r.staged {
		if n, err := strconv.Atoi(s.Expr); s.Knob == view.MembersKnob && err == nil {
			c.Members = n
			continue
		}
		c.Set = append(c.Set, s)
	}
	send := m.send(c)
	if send == nil {
		return nil
	}
	c.ID, c.By = m.lastID, m.opt.By
	r.sent, r.answer = &c, answer{text: "sent, waiting for the answer"}
	return send
}

// unstageChosen discards the staged change of the chosen knob, or all changes if that knob has none.
func (r *rail) unstageChosen(m *model) tea.Cmd {
	if !m.onKnobs() || !r.unstage(r.chosen(m).Name) {
		r.staged = nil
	}
	if r.sent == nil {
		r.answer = answer{}
	}
	return nil
}

// answered handles the receipt of the sent changes. It returns false if msg answers another command.
func (r *rail) answered(m *model, msg receiptMsg) bool {
	if r.sent == nil || msg.command.ID != r.sent.ID {
		return false
	}
	sent := r.sent
	r.sent = nil
	switch {
	case msg.err != nil:
		r.answer = answer{text: "not sent: " + msg.err.Error(), bad: true}
	case !msg.receipt.Accepted:
		r.answer = answer{text: "refused: " + msg.receipt.Reason, bad: true}
	default:
		r.staged = slices.DeleteFunc(r.staged, func(s event.Setting) bool {
			return slices.Contains(sent.Set, s) || s.Knob == view.MembersKnob && s.Expr == strconv.Itoa(sent.Members)
		})
		r.accepted(m, msg)
	}
	return true
}

// accepted shows from which round an accepted change applies, also for commands from elsewhere. It does nothing while
// the rail waits for the answer to its own changes.
func (r *rail) accepted(m *model, msg receiptMsg) {
	if c := msg.command; r.sent == nil && (len(c.Set) > 0 || c.Members > 0) {
		from := msg.receipt.Round + 1
		r.answer = answer{what: words(c), text: "accepted, from round " + round(from), id: c.ID, from: from}
		r.settle(m)
	}
}

// typeKey handles a key while the user types a value.
func (r *rail) typeKey(m *model, name, text string) tea.Cmd {
	switch name {
	case "esc":
		r.typing = nil
		r.clearRefusal()
		return nil
	case "enter":
		k := r.chosen(m)
		expr, err := r.evaluate(m, k, r.typing.text())
		if err == nil {
			err = r.stage(m, k, expr)
		}
		if err != nil {
			r.answer = answer{text: err.Error(), bad: true}
			return nil
		}
		r.typing, r.answer = nil, answer{}
		return nil
	}
	r.clearRefusal()
	r.typing.key(name, text)
	return nil
}

// clearRefusal removes a refusal from the screen, since the user corrects or cancels the value.
func (r *rail) clearRefusal() {
	if r.answer.bad {
		r.answer = answer{}
	}
}
