// Package knobs has the rail of knobs, where values are staged and sent, and the Knobs screen.
package knobs

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/timeline"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// Rail is the state of knob editing: the selected, typed, staged, sent and answered values. The workbench uses it
// outside of its panels too: a fork starts with the staged edits, a swap discards them, and the command line uses them
// as base of relative values.
type Rail struct {
	Selected string           // name of the selected knob; "" for the first
	all      bool             // knobs without effect are shown too
	Staged   []event.Setting  // in the order of staging
	owner    string           // the algorithm of the staged knobs
	Typing   *panel.TextInput // the value being typed for the selected knob; nil: none
	Sent     *event.Command   // the transaction without a receipt; nil: none
	Answer   Answer
}

// Answer is the result of the last transaction. It remains until the next one.
type Answer struct {
	Text string
	What string // the change, such as "eta = 0.1"
	Bad  bool
	ID   uint64 // of the command
	From uint64 // the first round with the change; 0 if rejected or lost
	Done bool   // the change is in effect
	Swap bool   // the change is a swap of the algorithm
}

// Panels returns the rail and the panels of the Knobs screen.
func (r *Rail) Panels() []panel.Panel {
	const group = "knobs (focus on the rail)"
	knobs := &panel.List{Name: "knobs", Entries: "knobs", Top: func() { r.Selected = "" }}
	edits := panel.ViewExport(editRows)
	turn, send := r.keys()
	return []panel.Panel{
		{
			ID: panel.Knobs, Title: r.title, Draw: r.draw, Export: edits,
			Group:   group,
			Example: "enter *0.5 enter a: halve a knob",
			Keys:    slices.Concat(turn, send), Typing: r.input, Hints: r.hints, Point: r.point, List: knobs,
			Reset: func() { *r = Rail{} },
		},
		{
			ID: panel.Schedules, Title: r.schedulesTitle, Draw: r.drawSchedules, Export: edits,
			Screen: &panel.Screen{Digit: 3, Name: "Knobs", Place: placeKnobs},
			Group:  group, Keys: turn, Hints: r.hints, List: knobs,
		},
		{ID: panel.Knob, Title: r.knobTitle, Draw: r.drawKnob, Export: edits},
		{ID: panel.EditHistory, Title: historyTitle, Draw: r.drawHistory, Export: edits},
	}
}

// input returns the input of the value being typed for a knob; nil if there is none.
func (r *Rail) input() *panel.Typing {
	if r.Typing == nil {
		return nil
	}
	return &panel.Typing{Key: r.typeKey, Hints: [][2]string{{"enter", "stage"}, {"esc", "back"}}}
}

func (r *Rail) stagedLine(m *panel.Host) string {
	k := m.ApplyKey()
	return fmt.Sprintf("%d staged   %s %s   u unstage", len(r.Staged), k[0], k[1])
}

// hints returns the main keys for knobs.
func (r *Rail) hints(m *panel.Host) [][2]string {
	own := [][2]string{{"j k", "choose"}, {"h l", "turn"}, {"enter", "type"}, m.ApplyKey(), {"u", "unstage"},
		{"z", "undo"}}
	if m.Replay == nil && m.Brancher() != nil && m.Opt.Session != "" {
		own = slices.Insert(own, 4, [2]string{"B", "branch"})
	}
	return m.HintsAfter(own)
}

// Knobs returns the rows of the rail: the knobs that pass the filter, without the hidden ones.
func (r *Rail) Knobs(m *panel.Host) []optim.Knob {
	return slices.DeleteFunc(m.AllKnobs(), func(k optim.Knob) bool {
		return !m.MatchesFilter("knobs", k.Name, k.Label, k.Title) || r.isHidden(m, k)
	})
}

// isHidden reports whether a knob is hidden since it has no effect, given the choices in effect and those that are
// staged. A knob that is selected, staged or searched for is shown.
func (r *Rail) isHidden(m *panel.Host, k optim.Knob) bool {
	if r.all || m.Alg == nil || m.Filters.Text["knobs"] != "" || k.Name == r.Selected {
		return false
	}
	if _, staged := r.StagedExpr(k.Name); staged {
		return false
	}
	return m.Alg.Idle(k, func(on optim.Knob) float64 {
		if expr, staged := r.StagedExpr(on.Name); staged {
			if x, err := on.Parse(expr); err == nil {
				return x
			}
		}
		return m.KnobValue(on)
	})
}

// hiddenCount returns the number of knobs that are hidden since they have no effect.
func (r *Rail) hiddenCount(m *panel.Host) (n int) {
	for _, k := range m.AllKnobs() {
		if r.isHidden(m, k) {
			n++
		}
	}
	return n
}

// index returns the place of the selected knob among knobs; 0 if it is not there.
func (r *Rail) index(knobs []optim.Knob) int {
	return max(0, slices.IndexFunc(knobs, func(k optim.Knob) bool { return k.Name == r.Selected }))
}

// SelectedKnob returns the selected knob; the first of all knobs if the filter matches none.
func (r *Rail) SelectedKnob(m *panel.Host) optim.Knob {
	ks := r.Knobs(m)
	if len(ks) == 0 {
		ks = m.AllKnobs()
	}
	return ks[r.index(ks)]
}

// StagedExpr returns the staged expression of a knob; ok is false if there is none.
func (r *Rail) StagedExpr(knob string) (string, bool) {
	for _, s := range r.Staged {
		if s.Knob == knob {
			return s.Expr, true
		}
	}
	return "", false
}

// schedule returns the schedule that a knob follows, for readers; ok is false if there is none.
func (r *Rail) schedule(m *panel.Host, k optim.Knob) (text string, ok bool) {
	if m.Knobs == nil || k.Name == view.MembersKnob {
		return "", false
	}
	return m.Knobs.Schedule(k.Name)
}

// moves reports whether a knob follows a schedule, staged or in effect: steps and *F scale it then.
func (r *Rail) moves(m *panel.Host, k optim.Knob) bool {
	if expr, staged := r.StagedExpr(k.Name); staged {
		return timeline.Moves(expr)
	}
	_, moving := r.schedule(m, k)
	return moving
}

// check returns why the run would reject an expression for a knob.
func (r *Rail) check(m *panel.Host, k optim.Knob, expr string) error {
	switch {
	case r.inEffect(m, k, expr):
		return nil
	case k.Name == view.MembersKnob:
		_, err := k.Parse(expr)
		return err
	case m.Knobs != nil:
		return m.Knobs.Accept(k, expr)
	}
	return nil
}

// inEffect reports whether an expression changes nothing.
func (r *Rail) inEffect(m *panel.Host, k optim.Knob, expr string) bool {
	if was, moving := r.schedule(m, k); moving {
		exact, _ := m.Knobs.Expr(k.Name)
		return expr == "*1" || expr == exact || expr == was
	}
	return expr == k.Format(m.KnobValue(k))
}

// stage stages an expression. The value in effect removes the staged one.
func (r *Rail) stage(m *panel.Host, k optim.Knob, expr string) error {
	if err := m.CheckStage(k.Name); err != nil {
		return err
	}
	if err := r.check(m, k, expr); err != nil {
		return err
	}
	r.unstage(k.Name)
	if !r.inEffect(m, k, expr) {
		r.Staged, r.owner = append(r.Staged, event.Setting{Knob: k.Name, Expr: expr}), m.Shown.Algorithm()
	}
	return nil
}

// unstage removes the staged change of a knob. It reports whether there was one.
func (r *Rail) unstage(knob string) bool {
	n := len(r.Staged)
	r.Staged = slices.DeleteFunc(r.Staged, func(s event.Setting) bool { return s.Knob == knob })
	return len(r.Staged) < n
}

// base returns the value that the next step or expression starts from: the staged one, else the one in effect.
func (r *Rail) base(m *panel.Host, k optim.Knob) float64 {
	if e, ok := r.StagedExpr(k.Name); ok {
		if x, err := k.Parse(e); err == nil {
			return x
		}
	}
	return m.KnobValue(k)
}

// turn moves the selected knob by n steps. It scales a schedule.
func (r *Rail) turn(m *panel.Host, n int) {
	r.clearRefusal()
	k := r.SelectedKnob(m)
	if r.moves(m, k) {
		if err := r.rescale(m, k, n); err != nil {
			r.Answer = Answer{Text: err.Error(), Bad: true}
		}
		return
	}
	x := r.base(m, k)
	for range max(n, -n) {
		x = panel.NextValue(k, x, n > 0)
	}
	if err := r.stage(m, k, k.Format(x)); err != nil {
		r.Answer = Answer{Text: err.Error(), Bad: true}
	}
}

// rescale stages the schedule of a knob with a factor that is n steps larger, or as many as its bounds admit. It
// returns why not even one is possible.
func (r *Rail) rescale(m *panel.Host, k optim.Knob, n int) error {
	expr := r.scaleBase(k)
	for i := range max(n, -n) {
		next := timeline.WithFactor(expr, panel.NextFactor(timeline.Factor(expr), n > 0))
		if err := r.check(m, k, next); err != nil {
			if i == 0 {
				return err
			}
			break
		}
		expr = next
	}
	return r.stage(m, k, expr)
}

// scaleBase returns the expression whose factor the next step or *F changes: the staged one, else that of the schedule
// in effect.
func (r *Rail) scaleBase(k optim.Knob) string {
	if expr, staged := r.StagedExpr(k.Name); staged {
		return expr
	}
	return "*1"
}

// Evaluate converts the typed text to an expression for the knob. *F, /F, +=D and -=D apply to the base; of a schedule
// *F and /F change the factor.
func (r *Rail) Evaluate(m *panel.Host, k optim.Knob, text string) (string, error) {
	text = strings.TrimSpace(text)
	for _, op := range []string{"*", "/", "+=", "-="} {
		rest, ok := strings.CutPrefix(text, op)
		if !ok {
			continue
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
		if err != nil {
			return "", fmt.Errorf("%s: write %s and a number, not %q", k.Name, op, rest)
		}
		if r.moves(m, k) {
			switch _, staged := r.StagedExpr(k.Name); {
			case op != "*" && op != "/":
				return "", fmt.Errorf("%s follows a schedule: *0.5 scales it, a value or a schedule replaces it", k.Name)
			case !staged:
				return op + strings.TrimSpace(rest), nil
			case op == "/":
				f = 1 / f
			}
			return timeline.Scaled(r.scaleBase(k), f), nil
		}
		x := r.base(m, k)
		switch op {
		case "*":
			x *= f
		case "/":
			x /= f
		case "+=":
			x += f
		default:
			x -= f
		}
		if k.Integer {
			x = math.Round(x)
		}
		return k.Format(x), nil
	}
	if text == "" {
		return "", errors.New("type a number, *0.5, or a schedule such as linear:0.1..0.01@+200")
	}
	return text, nil
}

// Refresh follows the view: an accepted transaction is in effect once its first round is committed, and edits staged
// for another algorithm are discarded after a swap.
func (r *Rail) Refresh(m *panel.Host) {
	if now := m.Shown.Algorithm(); len(r.Staged) > 0 && now != r.owner {
		m.Say(cell.Warn, "swap to "+now+": discarded "+panel.SettingsText(event.Command{Set: r.Staged})+", staged for "+
			r.owner)
		r.Staged = nil
	}
	if a := &r.Answer; a.From > 0 && !a.Done && m.Live.Progress.Rounds >= a.From {
		a.Done = true
		a.Text = "in effect since round " + textfmt.Grouped(a.From) + ": " + a.What
	}
	if r.Answer.Done && isSuperseded(m, r.Answer) {
		r.Answer = Answer{}
	}
}

// isSuperseded reports whether a later change, by any author, replaced one that is in effect: of a knob, of the
// population or of the algorithm. Edits of one round are in the order of acceptance.
func isSuperseded(m *panel.Host, a Answer) bool {
	last := -1 // index of its last edit; a change of the population or the algorithm may have none
	for i, e := range m.Live.Edits {
		if a.ID != 0 && e.ID == a.ID {
			last = i
		}
	}
	if last >= 0 && m.Live.Edits[last].Algorithm != m.Live.Algorithm() {
		return true
	}
	for i, e := range m.Live.Edits {
		later := e.First() > a.From || e.First() == a.From && last >= 0 && i > last
		if later && e.First() <= m.Live.Progress.Rounds && !e.FromSpec() {
			return true
		}
	}
	return slices.ContainsFunc(m.Live.Marks,
		func(k view.Mark) bool { return k.Round > a.From && (k.Before != k.After || k.Swap) })
}
