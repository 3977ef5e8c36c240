package tui

import (
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/tui/cell"
	"brood/tui/panel"
)

// change is a transaction of knobs with what it replaced: either is a command of its own.
type change struct {
	before, after event.Command
	swaps         int // how many swaps this viewer had seen
}

// changeHistory is the knob changes of this viewer that the run accepted, and those of them that were undone.
type changeHistory struct {
	done, undone []change
	pending      map[uint64]pendingChange // by command
	running      string                   // algorithm
	// swaps seen so far: a swap starts from knobs of its own, and nothing before it can be taken back
	swaps int
}

// countSwap takes note of a swap.
func (p *changeHistory) countSwap(algorithm string) {
	if p.running != "" && algorithm != p.running {
		p.swaps++
	}
	p.running = algorithm
}

// pendingChange is a change that is not answered yet.
type pendingChange struct {
	change
	direction direction
}

type direction uint8

const (
	applied direction = iota
	undo
	redo
)

// inverse is what takes the live run back to where it is before c.
func (m *model) inverse(c event.Command) (out event.Command) {
	if c.Members > 0 {
		out.Members = len(m.Live.Members().Members)
	}
	for _, s := range c.Set {
		out.Set = append(out.Set, event.Setting{Knob: s.Knob, Expr: m.lastExpr(s.Knob)})
	}
	return out
}

// lastExpr is the expression of a knob's last edit, in effect or not yet, else its default; "" for an unknown knob.
func (m *model) lastExpr(knob string) string {
	for i := len(m.Live.Edits) - 1; i >= 0; i-- {
		if e := m.Live.Edits[i]; e.Knob == knob && e.Algorithm == m.Live.Algorithm() && !e.Void {
			return e.Expr
		}
	}
	if m.Alg != nil {
		if k, ok := m.Alg.Knob(knob); ok {
			return k.Format(k.Default)
		}
	}
	return ""
}

// add remembers a change of knobs until it is answered.
func (p *changeHistory) add(m *model, c event.Command) {
	if len(c.Set) == 0 && c.Members == 0 {
		return
	}
	if p.pending == nil {
		p.pending = map[uint64]pendingChange{}
	}
	p.pending[c.ID] = pendingChange{change{m.inverse(c), c, p.swaps}, applied}
}

// settle files an accepted change; a refused one is forgotten. text says what an undo or redo did, "" for others.
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

func (m *model) whyNoTurn(t direction) string {
	list, what := m.history.done, "undo: no knob change of yours was accepted yet"
	if t == redo {
		list, what = m.history.undone, "redo: no knob change of yours was undone"
	}
	switch why := m.WhyNoCommand(); {
	case why != "":
		return why
	case len(m.history.pending) > 0:
		return "the last change is not answered yet"
	case len(list) == 0:
		return "nothing to " + what
	}
	last := list[len(list)-1]
	if last.swaps != m.history.swaps {
		return fmt.Sprintf("%s was a change of %s, and %s took over since: it is not %s", panel.SettingsText(last.after), last.after.Of,
			m.Live.Algorithm(), map[direction]string{undo: "undone", redo: "redone"}[t])
	}
	for _, s := range last.before.Set {
		if s.Expr == "" {
			return fmt.Sprintf("the value of %s before the change is not known: this brood does not know its algorithm", s.Knob)
		}
	}
	return ""
}

func whyNoUndo(m *model) string { return m.whyNoTurn(undo) }
func whyNoRedo(m *model) string { return m.whyNoTurn(redo) }

// undoLast sends the last change the other way: a new command, as everything that changes a run.
func (m *model) undoLast() tea.Cmd {
	c := m.history.done[len(m.history.done)-1]
	return m.sendChange(c.before, pendingChange{c, undo})
}

// currentSettings are settings as they can be asked for now: a schedule that is over is the value that it came to.
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

func (m *model) redoLast() tea.Cmd {
	c := m.history.undone[len(m.history.undone)-1]
	return m.sendChange(c.after, pendingChange{c, redo})
}

func (m *model) sendChange(c event.Command, a pendingChange) tea.Cmd {
	c = event.Command{Set: m.history.currentSettings(m, c.Set), Members: c.Members}
	send := m.Send(c)
	if send != nil {
		m.history.pending[m.lastID] = a
		m.Say(cell.Plain, map[direction]string{undo: "undo: ", redo: "redo: "}[a.direction]+panel.SettingsText(c)+", waiting for the answer")
	}
	return send
}
