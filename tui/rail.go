package tui

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
)

// rail is the state of knob editing: the selected, typed, staged, sent and answered values. The model refers to it
// outside its panels too: a fork starts with the staged edits, a swap discards them, and the command line counts from
// them.
type rail struct {
	selected string          // name of the selected knob; "" for the first
	all      bool            // knobs without effect are shown too
	staged   []event.Setting // in the order of staging
	owner    string          // the algorithm of the staged knobs
	typing   *line           // the value being typed for the selected knob; nil: none
	sent     *event.Command
	answer   answer
}

// answer is the result of the last transaction. It remains until the next one.
type answer struct {
	text string
	what string // what it changes, in words
	bad  bool
	id   uint64 // of the command
	from uint64 // the first round with the change; 0 if rejected or lost
	done bool   // the change is in effect
	swap bool   // the change is a swap of the algorithm
}

const (
	knobsPanel     panelID = "knobs"
	schedulesPanel panelID = "schedules"
	knobPanel      panelID = "knob"
	historyPanel   panelID = "history"
)

// panels returns the rail and the panels of the Knobs screen.
func (r *rail) panels() []panel {
	const group = "knobs (focus on the rail)"
	knobs := &list{name: "knobs", entries: "knobs", top: func() { r.selected = "" }}
	edits := plainly(editRows)
	turn, send := r.keys()
	return []panel{
		{
			id: knobsPanel, title: r.title, draw: r.draw, export: edits,
			group: group, keys: slices.Concat(turn, send), typing: r.typed, hints: r.hints, point: r.point, list: knobs,
			reset: func() { *r = rail{} },
		},
		{
			id: schedulesPanel, title: r.schedulesTitle, draw: r.drawSchedules, export: edits,
			screen: &screen{digit: 3, name: "Knobs", place: placeKnobs},
			group:  group, keys: turn, hints: r.hints, list: knobs,
		},
		{id: knobPanel, title: r.knobTitle, draw: r.drawKnob, export: edits},
		{id: historyPanel, title: historyTitle, draw: r.drawHistory, export: edits},
	}
}

// typed returns the input of the value being typed for a knob; nil if none is.
func (r *rail) typed() *typing {
	if r.typing == nil {
		return nil
	}
	return &typing{r.typeKey, [][2]string{{"enter", "stage"}, {"esc", "back"}}}
}

func (r *rail) stagedLine(m *model) string {
	k := m.applyKey()
	return fmt.Sprintf("%d staged   %s %s   u unstage", len(r.staged), k[0], k[1])
}

// hints returns the main keys for knobs.
func (r *rail) hints(m *model) [][2]string {
	own := [][2]string{{"j k", "choose"}, {"h l", "turn"}, {"enter", "type"}, m.applyKey(), {"u", "unstage"},
		{"z", "undo"}}
	if m.replay == nil && m.brancher() != nil && m.opt.Session != "" {
		own = slices.Insert(own, 4, [2]string{"B", "branch"})
	}
	return m.hintsAfter(own)
}

// population returns the pseudo-knob of the population size, at the top of the rail.
func (m *model) population() optim.Knob {
	n := max(1, len(m.shown.Members().Members))
	return optim.Knob{
		Name:    view.MembersKnob,
		Label:   event.MembersLabel,
		Title:   "population",
		Unit:    "members",
		Min:     1,
		Max:     event.MaxMembers,
		Default: float64(n),
		Integer: true,
		Doc:     "how many members there are; new ones enter as the algorithm says, the highest ids leave first",
	}
}

// label returns the displayed label of a knob; its name if the terminal cannot show the label.
func (m *model) label(k optim.Knob) string {
	ascii := !strings.ContainsFunc(k.Label, func(r rune) bool { return r > unicode.MaxASCII })
	if k.Label == "" || m.opt.ASCII && !ascii {
		return k.Name
	}
	return k.Label
}

// labelOf returns the label of a knob of the run by its name. It returns any other word unchanged.
func (m *model) labelOf(name string) string {
	for _, k := range m.allKnobs() {
		if k.Name == name {
			return m.label(k)
		}
	}
	return name
}

// about returns the title of a knob, after its name if the label differs from it.
func (m *model) about(k optim.Knob) string {
	if m.label(k) == k.Name {
		return k.Title
	}
	return k.Name + ": " + k.Title
}

// allKnobs returns the knobs of the run.
func (m *model) allKnobs() []optim.Knob {
	out := []optim.Knob{m.population()}
	if m.alg != nil {
		out = append(out, m.alg.Shown()...)
	}
	return out
}

// knobs returns the rows of the rail: the knobs that pass the filter, without those that are folded.
func (r *rail) knobs(m *model) []optim.Knob {
	return slices.DeleteFunc(m.allKnobs(), func(k optim.Knob) bool {
		return !m.passes("knobs", k.Name, k.Label, k.Title) || r.folds(m, k)
	})
}

// folds reports whether a knob is not shown since it has no effect, given the choices in effect and those that are
// staged. A knob that is selected, staged or searched for is shown.
func (r *rail) folds(m *model, k optim.Knob) bool {
	if r.all || m.alg == nil || m.filters.text["knobs"] != "" || k.Name == r.selected {
		return false
	}
	if _, staged := r.of(k.Name); staged {
		return false
	}
	return m.alg.Idle(k, func(on optim.Knob) float64 {
		if expr, staged := r.of(on.Name); staged {
			if x, err := on.Parse(expr); err == nil {
				return x
			}
		}
		return m.current(on)
	})
}

// folded returns how many knobs are not shown since they have no effect.
func (r *rail) folded(m *model) (n int) {
	for _, k := range m.allKnobs() {
		if r.folds(m, k) {
			n++
		}
	}
	return n
}

// index returns the place of the selected knob among knobs; 0 if it is not there.
func (r *rail) index(knobs []optim.Knob) int {
	return max(0, slices.IndexFunc(knobs, func(k optim.Knob) bool { return k.Name == r.selected }))
}

// onKnobs reports whether a panel of knobs has the focus.
func (m *model) onKnobs() bool { return m.focus == knobsPanel || m.focus == schedulesPanel }

// current returns the value of a knob in the next round.
func (m *model) current(k optim.Knob) float64 {
	if k.Name == view.MembersKnob || m.knobs == nil {
		return k.Default
	}
	return m.knobs.Value(k)
}

// chosen returns the selected knob; the first of all knobs if the filter matches none.
func (r *rail) chosen(m *model) optim.Knob {
	ks := r.knobs(m)
	if len(ks) == 0 {
		ks = m.allKnobs()
	}
	return ks[r.index(ks)]
}

func (r *rail) of(knob string) (string, bool) {
	for _, s := range r.staged {
		if s.Knob == knob {
			return s.Expr, true
		}
	}
	return "", false
}

// stage stages an expression. The value in effect removes the staged one.
func (r *rail) stage(m *model, k optim.Knob, expr string) error {
	if err := m.stageable(k.Name); err != nil {
		return err
	}
	if k.Name == view.MembersKnob {
		if _, err := k.Parse(expr); err != nil {
			return err
		}
	}
	same := k.Format(m.current(k))
	if m.knobs != nil {
		if e, moving := m.knobs.Expr(k.Name); moving {
			same = e
		}
	}
	if expr != same && k.Name != view.MembersKnob && m.knobs != nil {
		if err := m.knobs.Accept(k, expr); err != nil {
			return err
		}
	}
	r.unstage(k.Name)
	if expr != same {
		r.staged, r.owner = append(r.staged, event.Setting{Knob: k.Name, Expr: expr}), m.shown.Algorithm()
	}
	return nil
}

func (r *rail) unstage(knob string) bool {
	n := len(r.staged)
	r.staged = slices.DeleteFunc(r.staged, func(s event.Setting) bool { return s.Knob == knob })
	return len(r.staged) < n
}

// base returns the value that the next step or expression starts from: the staged one, else the one in effect.
func (r *rail) base(m *model, k optim.Knob) float64 {
	if e, ok := r.of(k.Name); ok {
		if x, err := k.Parse(e); err == nil {
			return x
		}
	}
	return m.current(k)
}

// turn moves the selected knob by n steps.
func (r *rail) turn(m *model, n int) {
	r.clearRefusal()
	k := r.chosen(m)
	x := r.base(m, k)
	for range max(n, -n) {
		x = step(k, x, n > 0)
	}
	if err := r.stage(m, k, k.Format(x)); err != nil {
		r.answer = answer{text: err.Error(), bad: true}
	}
}

// tenth returns the n-th logarithmic step of a decade: ten steps to a factor of ten, in round numbers.
func tenth(n int) float64 { return [...]float64{1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.4, 8}[n] }

// step returns the next value up or down on the scale of the knob, within its bounds.
func step(k optim.Knob, x float64, up bool) float64 {
	d := 1.0
	if !up {
		d = -1
	}
	next := x
	switch {
	case len(k.Choices) > 0:
		next = x + d
	case k.Scale == optim.Log && k.Integer && x < 10:
		next = x + d
	case k.Scale == optim.Log && x <= 0 && up:
		next = max(k.Min, k.Default/100, 1e-6)
	case k.Scale == optim.Log && (x <= 1e-9 && !up && k.Min <= 0):
		next = k.Min
	case k.Scale == optim.Log:
		next = logStep(x, up)
	case k.Integer:
		next = x + d
	default:
		w := math.Pow(10, math.Floor(math.Log10((k.Max-k.Min)/99)+1e-9))
		next = math.Round((x+d*w)/w) * w
		if math.Abs(next-x) < w/2 {
			next = x + d*w
		}
		next, _ = strconv.ParseFloat(strconv.FormatFloat(next, 'g', 10, 64), 64)
	}
	if k.Integer {
		next = math.Round(next)
	}
	return min(max(next, k.Min), k.Max)
}

func logStep(x float64, up bool) float64 {
	p := math.Pow(10, math.Floor(math.Log10(x)+1e-9))
	at := func(i int) float64 {
		e := p
		for ; i < 0; i += 10 {
			e /= 10
		}
		for ; i >= 10; i -= 10 {
			e *= 10
		}
		y, _ := strconv.ParseFloat(strconv.FormatFloat(tenth(i)*e, 'g', 4, 64), 64)
		return y
	}
	if up {
		for i := 0; ; i++ {
			if y := at(i); y > x*(1+1e-6) {
				return y
			}
		}
	}
	for i := 10; ; i-- {
		if y := at(i); y < x*(1-1e-6) {
			return y
		}
	}
}

// evaluate converts the typed text to an expression for the knob. *F, /F, +=D and -=D apply to the base.
func (r *rail) evaluate(m *model, k optim.Knob, text string) (string, error) {
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
		return "", errors.New("nothing was typed: a number, *0.5, or a schedule like linear:0.1..0.01@200")
	}
	return text, nil
}

// settle follows the view: an accepted transaction is in effect once its first round is committed, and edits staged
// for another algorithm are discarded after a swap.
func (r *rail) settle(m *model) {
	if now := m.shown.Algorithm(); len(r.staged) > 0 && now != r.owner {
		m.say(cell.Warn, now+" took over: "+words(event.Command{Set: r.staged})+" was staged for "+r.owner+
			" and is not any more")
		r.staged = nil
	}
	if a := &r.answer; a.from > 0 && !a.done && m.live.Progress.Rounds >= a.from {
		a.done = true
		a.text = "in effect since round " + round(a.from) + ": " + a.what
	}
	if r.answer.done && m.overtaken(r.answer) {
		r.answer = answer{}
	}
}

// overtaken reports whether a later change, by any author, replaced one that is in effect: of a knob, of the
// population or of the algorithm. Edits of one round are in the order of acceptance.
func (m *model) overtaken(a answer) bool {
	last := -1 // index of its last edit; a change of the population or the algorithm may have none
	for i, e := range m.live.Edits {
		if a.id != 0 && e.ID == a.id {
			last = i
		}
	}
	if last >= 0 && m.live.Edits[last].Algorithm != m.live.Algorithm() {
		return true
	}
	for i, e := range m.live.Edits {
		later := e.First() > a.from || e.First() == a.from && last >= 0 && i > last
		if later && e.First() <= m.live.Progress.Rounds && !e.Given() {
			return true
		}
	}
	return slices.ContainsFunc(m.live.Marks,
		func(k view.Mark) bool { return k.Round > a.from && (k.Before != k.After || k.Swap) })
}
