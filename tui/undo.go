package tui

import (
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/timeline"
	"brood/tui/cell"
	"brood/tui/panel"
)

// change is an accepted transaction of knobs. before restores the values that after replaced.
type change struct {
	before, after event.Command
	swaps         int // swaps before the change
}

// changeHistory holds the accepted knob changes of this viewer for undo and redo.
type changeHistory struct {
	done, undone []change
	pending      map[uint64]pendingChange // by command
	running      string                   // algorithm
	swaps        int                      // swaps seen so far: a change before a swap cannot be undone
}

// countSwap counts the swaps of the algorithm.
func (p *changeHistory) countSwap(algorithm string) {
	if p.running != "" && algorithm != p.running {
		p.swaps++
	}
	p.running = algorithm
}

// pendingChange is a change whose receipt has not arrived.
type pendingChange struct {
	change
	direction direction
}

// direction is the way in which a command changes the history.
type direction uint8

const (
	applied direction = iota
	undo
	redo
)

// inverse returns the command that restores the values before c.
func (m *model) inverse(c event.Command) (out event.Command) {
	if c.Members > 0 {
		out.Members = len(m.Live.Members().Members)
	}
	for _, s := range c.Set {
		expr := m.lastExpr(s.Knob)
		if timeline.Scales(s.Expr) {
			expr = timeline.Inverse(s.Expr)
		}
		out.Set = append(out.Set, event.Setting{Knob: s.Knob, Expr: expr})
	}
	return out
}

// lastExpr returns the expression that continues a knob's last edit, in effect or pending, else its default; "" for an
// unknown knob.
func (m *model) lastExpr(knob string) string {
	var k optim.Knob
	known := false
	if m.Alg != nil {
		k, known = m.Alg.Knob(knob)
	}
	for _, e := range slices.Backward(m.Live.Edits) {
		if e.Knob == knob && e.Algorithm == m.Live.Algorithm() && !e.Void {
			return timeline.Continued(k, e.Edit)
		}
	}
	if !known {
		return ""
	}
	return k.Format(k.Default)
}

// add records a knob change until its receipt arrives.
func (p *changeHistory) add(m *model, c event.Command) {
	if len(c.Set) == 0 && c.Members == 0 {
		return
	}
	if p.pending == nil {
		p.pending = map[uint64]pendingChange{}
	}
	p.pending[c.ID] = pendingChange{change{m.inverse(c), c, p.swaps}, applied}
}

// settle records an accepted change and forgets a rejected one. It returns the text of an undo or redo; "" for other
// commands.
func (p *changeHistory) settle(msg panel.ReceiptMsg) (text string) {
	a, ok := p.pending[msg.Command.ID]
	delete(p.pending, msg.Command.ID)
	if !ok {
		return ""
	}
	what := map[direction]string{undo: "undo: ", redo: "redo: "}[a.direction]
	switch accepted := msg.Err == nil && msg.Receipt.Accepted; {
	case !accepted:
	case a.direction == applied:
		p.done, p.undone = append(p.done, a.change), nil
	case a.direction == undo:
		p.done, p.undone = p.done[:len(p.done)-1], append(p.undone, a.change)
	default:
		p.done, p.undone = append(p.done, a.change), p.undone[:len(p.undone)-1]
	}
	if what == "" {
		return ""
	}
	return what + panel.SettingsText(msg.Command)
}

// whyNoTurn returns why there is nothing to undo or redo; "" if there is.
func (m *model) whyNoTurn(t direction) string {
	list, what := m.history.done, "undo: none of your knob changes was accepted yet"
	if t == redo {
		list, what = m.history.undone, "redo: none of your knob changes was undone"
	}
	switch why := m.WhyNoCommand(); {
	case why != "":
		return why
	case len(m.history.pending) > 0:
		return "the last change is still pending"
	case len(list) == 0:
		return "nothing to " + what
	}
	last := list[len(list)-1]
	if last.swaps != m.history.swaps {
		return fmt.Sprintf("%s cannot be %s: it changed %s, and the algorithm was swapped since",
			panel.SettingsText(last.after),
			map[direction]string{undo: "undone", redo: "redone"}[t], last.after.Of)
	}
	for _, s := range last.before.Set {
		if s.Expr == "" {
			return fmt.Sprintf("the value of %s before the change is unknown: this brood does not have its algorithm",
				s.Knob)
		}
	}
	return ""
}

// undoLast sends the inverse of the last change as a new command.
func (m *model) undoLast() tea.Cmd {
	c := m.history.done[len(m.history.done)-1]
	return m.sendChange(c.before, pendingChange{c, undo})
}

// currentSettings returns settings that the run accepts now: it replaces a schedule that has ended by its last value.
func (p *changeHistory) currentSettings(m *model, set []event.Setting) []event.Setting {
	set = slices.Clone(set)
	for i, s := range set {
		if m.Knobs == nil {
			break
		}
		if k, ok := m.Alg.Knob(s.Knob); ok && m.Knobs.Accept(k, s.Expr) != nil {
			set[i].Expr = k.Format(m.Knobs.With(s.Knob, s.Expr).Value(k))
		}
	}
	return set
}

// redoLast sends the last undone change again.
func (m *model) redoLast() tea.Cmd {
	c := m.history.undone[len(m.history.undone)-1]
	return m.sendChange(c.after, pendingChange{c, redo})
}

// sendChange sends an undo or redo.
func (m *model) sendChange(c event.Command, a pendingChange) tea.Cmd {
	c = event.Command{Set: m.history.currentSettings(m, c.Set), Members: c.Members}
	send := m.Send(c)
	if send != nil {
		m.history.pending[m.lastID] = a
		m.Say(cell.Plain, map[direction]string{undo: "undo: ",
			redo: "redo: "}[a.direction]+panel.SettingsText(c)+", waiting for the receipt")
	}
	return send
}
