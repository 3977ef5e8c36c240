package knobs

import (
	"cmp"
	"slices"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// keys returns the bindings that select and change a knob, and those that send and discard staged changes.
func (r *Rail) keys() (turning, sending []panel.Binding) {
	some := func(m *panel.Host) string {
		if len(r.Knobs(m)) == 0 {
			return m.NoMatchText("knobs", "knob")
		}
		return ""
	}
	may := func(m *panel.Host) string { return cmp.Or(m.WhyNoStage(), some(m)) }
	move := panel.Steps(func(m *panel.Host, d int) {
		ks := r.Knobs(m)
		r.Selected = ks[(r.index(ks)+d+len(ks))%len(ks)].Name
	})
	turn := panel.Steps(r.turn)
	turning = []panel.Binding{
		{Keys: []string{"j", "down"}, Title: "next knob", Why: some, Do: move(1)},
		{Keys: []string{"k", "up"}, Title: "previous knob", Why: some, Do: move(-1)},
		{Keys: []string{"h", "left"}, Title: "a step down", Why: may, Do: turn(-1)},
		{Keys: []string{"l", "right"}, Title: "a step up", Why: may, Do: turn(1)},
		{Keys: []string{"H", "shift+left"}, Title: "ten steps down", Why: may, Do: turn(-10)},
		{Keys: []string{"L", "shift+right"}, Title: "ten steps up", Why: may, Do: turn(10)},
		{
			Keys:  []string{"enter"},
			Title: "type a value, *0.5 or a schedule",
			Why:   may,
			Do:    func(m *panel.Host) tea.Cmd { r.Edit(r.SelectedKnob(m).Name); return nil },
		},
		{
			Keys:  []string{"i"},
			Title: "show or hide knobs without effect",
			Why:   some,
			Do:    func(*panel.Host) tea.Cmd { r.all = !r.all; return nil },
		},
	}
	sending = []panel.Binding{
		{Keys: []string{"a"}, Title: "apply all staged changes", Why: (*panel.Host).WhyNoCommand, Do: r.apply,
			Anywhere: true},
		{Keys: []string{"u"}, Title: "unstage", Why: (*panel.Host).WhyNoStage, Do: r.unstageChosen, Anywhere: true},
	}
	return turning, sending
}

// Edit selects a knob and opens the input of its value.
func (r *Rail) Edit(knob string) { r.Selected, r.Typing = knob, &panel.TextInput{} }

// apply sends all staged changes as one transaction. It refuses while an earlier one is unanswered.
func (r *Rail) apply(m *panel.Host) tea.Cmd {
	switch {
	case r.Sent != nil:
		r.Answer = Answer{Text: "the last changes are still pending", Bad: true}
		return nil
	case len(r.Staged) == 0:
		r.Answer = Answer{Text: "nothing is staged: change a knob with h and l first", Bad: true}
		return nil
	}
	c := event.Command{}
	for _, s := range r.Staged {
		if n, err := strconv.Atoi(s.Expr); s.Knob == view.MembersKnob && err == nil {
			c.Members = n
			continue
		}
		c.Set = append(c.Set, s)
	}
	c = m.Sign(c)
	send := m.Send(c)
	if send == nil {
		return nil
	}
	r.Sent, r.Answer = &c, Answer{Text: "sent, waiting for the receipt"}
	return send
}

// unstageChosen discards the staged change of the chosen knob, or all changes if that knob has none.
func (r *Rail) unstageChosen(m *panel.Host) tea.Cmd {
	if !m.KnobsFocused() || !r.unstage(r.SelectedKnob(m).Name) {
		r.Staged = nil
	}
	if r.Sent == nil {
		r.Answer = Answer{}
	}
	return nil
}

// HandleReceipt handles the receipt of the sent changes. It returns false if msg answers another command.
func (r *Rail) HandleReceipt(m *panel.Host, msg panel.ReceiptMsg) bool {
	if r.Sent == nil || msg.Command.ID != r.Sent.ID {
		return false
	}
	sent := r.Sent
	r.Sent = nil
	switch {
	case msg.Err != nil:
		r.Answer = Answer{Text: "not sent: " + msg.Err.Error(), Bad: true}
	case !msg.Receipt.Accepted:
		r.Answer = Answer{Text: "rejected: " + msg.Receipt.Reason, Bad: true}
	default:
		r.Staged = slices.DeleteFunc(r.Staged, func(s event.Setting) bool {
			return slices.Contains(sent.Set, s) || s.Knob == view.MembersKnob && s.Expr == strconv.Itoa(sent.Members)
		})
		r.ShowAccepted(m, msg)
	}
	return true
}

// ShowAccepted shows from which round an accepted change applies, also for commands from elsewhere. It does nothing
// while the rail waits for the answer to its own changes.
func (r *Rail) ShowAccepted(m *panel.Host, msg panel.ReceiptMsg) {
	if c := msg.Command; r.Sent == nil && (len(c.Set) > 0 || c.Members > 0) {
		from := msg.Receipt.Round + 1
		r.Answer = Answer{What: panel.SettingsText(c), Text: "accepted, from round " + textfmt.Grouped(from), ID: c.ID,
			From: from}
		r.Refresh(m)
	}
}

// typeKey handles a key while the user types a value.
func (r *Rail) typeKey(m *panel.Host, name, text string) tea.Cmd {
	switch name {
	case "esc":
		r.Typing = nil
		r.clearRefusal()
		return nil
	case "enter":
		k := r.SelectedKnob(m)
		expr, err := r.Evaluate(m, k, r.Typing.Text())
		if err == nil {
			err = r.stage(m, k, expr)
		}
		if err != nil {
			r.Answer = Answer{Text: err.Error(), Bad: true}
			return nil
		}
		r.Typing, r.Answer = nil, Answer{}
		return nil
	}
	r.clearRefusal()
	r.Typing.Key(name, text)
	return nil
}

// clearRefusal removes a refusal from the screen, since the user corrects or cancels the value.
func (r *Rail) clearRefusal() {
	if r.Answer.Bad {
		r.Answer = Answer{}
	}
}
