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
	era           int // how many swaps this viewer had seen
}

// past is the knob changes of this viewer that the run accepted, and those of them that were undone.
type past struct {
	done, undone []change
	asked        map[uint64]asked // by command
	running      string           // algorithm
	// swaps seen so far: a swap starts from knobs of its own, and nothing before it can be taken back
	era int
}

// follow takes note of a swap.
func (p *past) follow(algorithm string) {
	if p.running != "" && algorithm != p.running {
		p.era++
	}
	p.running = algorithm
}

// asked is a change that is not answered yet.
type asked struct {
	change
	turn turn
}

type turn uint8

const (
	applied turn = iota
	undo
	redo
)

// reverse is what takes the live run back to where it is before c.
func (m *model) reverse(c event.Command) (out event.Command) {
	if c.Members > 0 {
		out.Members = len(m.Live.Members().Members)
	}
	for _, s := range c.Set {
		out.Set = append(out.Set, event.Setting{Knob: s.Knob, Expr: m.latest(s.Knob)})
	}
	return out
}

// latest is the expression of a knob's last edit, in effect or not yet, else its default; "" for an unknown knob.
func (m *model) latest(knob string) string {
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

// ask remembers a change of knobs until it is answered.
func (p *past) ask(m *model, c event.Command) {
	if len(c.Set) == 0 && c.Members == 0 {
		return
	}
	if p.asked == nil {
		p.asked = map[uint64]asked{}
	}
	p.asked[c.ID] = asked{change{m.reverse(c), c, p.era}, applied}
}

// answer files an accepted change; a refused one is forgotten. text says what an undo or redo did, "" for others.
func (p *past) answer(msg panel.ReceiptMsg) (text string) {
	a, ok := p.asked[msg.Command.ID]
	delete(p.asked, msg.Command.ID)
	if !ok {
		return ""
	}
	what := map[turn]string{undo: "undo: ", redo: "redo: "}[a.turn]
	switch accepted := msg.Err == nil && msg.Receipt.Accepted; {
	case !accepted:
	case a.turn == applied:
		p.done, p.undone = append(p.done, a.change), nil
	case a.turn == undo:
		p.done, p.undone = p.done[:len(p.done)-1], append(p.undone, a.change)
	default:
		p.done, p.undone = append(p.done, a.change), p.undone[:len(p.undone)-1]
	}
	if what == "" {
		return ""
	}
	return what + panel.Words(msg.Command)
}

func (m *model) mayTurn(t turn) string {
	list, what := m.past.done, "undo: no knob change of yours was accepted yet"
	if t == redo {
		list, what = m.past.undone, "redo: no knob change of yours was undone"
	}
	switch why := m.WhyNoCommand(); {
	case why != "":
		return why
	case len(m.past.asked) > 0:
		return "the last change is not answered yet"
	case len(list) == 0:
		return "nothing to " + what
	}
	last := list[len(list)-1]
	if last.era != m.past.era {
		return fmt.Sprintf("%s was a change of %s, and %s took over since: it is not %s", panel.Words(last.after), last.after.Of,
			m.Live.Algorithm(), map[turn]string{undo: "undone", redo: "redone"}[t])
	}
	for _, s := range last.before.Set {
		if s.Expr == "" {
			return fmt.Sprintf("the value of %s before the change is not known: this brood does not know its algorithm", s.Knob)
		}
	}
	return ""
}

func whyNoUndo(m *model) string { return m.mayTurn(undo) }
func whyNoRedo(m *model) string { return m.mayTurn(redo) }

// turnBack sends the last change the other way: a new command, as everything that changes a run.
func (m *model) turnBack() tea.Cmd {
	c := m.past.done[len(m.past.done)-1]
	return m.sendTurn(c.before, asked{c, undo})
}

// asOf are settings as they can be asked for now: a schedule that is over is the value that it came to.
func (p *past) asOf(m *model, set []event.Setting) []event.Setting {
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

func (m *model) turnAgain() tea.Cmd {
	c := m.past.undone[len(m.past.undone)-1]
	return m.sendTurn(c.after, asked{c, redo})
}

func (m *model) sendTurn(c event.Command, a asked) tea.Cmd {
	c = event.Command{Set: m.past.asOf(m, c.Set), Members: c.Members}
	send := m.Send(c)
	if send != nil {
		m.past.asked[m.lastID] = a
		m.Say(cell.Plain, map[turn]string{undo: "undo: ", redo: "redo: "}[a.turn]+panel.Words(c)+", waiting for the answer")
	}
	return send
}
