package runs

import (
	"context"
	"slices"
	"time"

	"brood/optim"
	"brood/tui/panel"
)

// Launch is the state of the launcher. What was said stays when it is left.
type Launch struct {
	Request panel.Request
	gen     int         // of the request: what is asked of an older one is not listened to
	draft   panel.Draft // the newest that was not refused
	command string
	Err     error
	errLine panel.LineID // whose refusal err is
	drafted bool         // draft is there

	estimate  panel.Estimate
	estimated int // gen that it is of
	due       bool
	edited    time.Time
	cancel    context.CancelFunc // of the estimate on its way, nil without one

	cursor       int
	option       int // the option, and the knob, that the cursor was on before it crossed over
	knob         int
	typing       *panel.TextInput
	prefix       string        // what was typed of a word
	suggested    bool          // what stands there was not typed
	beforeTyping panel.Request // typing
	Starting     bool
	Rows         []launchRow // as last drawn
}

func NewLaunch() *Launch { return &Launch{Request: panel.Request{Preset: "quickstart"}, estimated: -1} }

// startLine is the line at the bottom that begins the run.
var startLine = panel.LineID{Name: "begin it"}

// lines are those that the cursor goes through.
func (l *Launch) lines() (out []panel.LineID) {
	for _, f := range l.draft.Lines {
		out = append(out, panel.LineID{Name: f.Name})
	}
	for _, k := range l.Knobs() {
		out = append(out, panel.LineID{Name: k.Name, Knob: true})
	}
	return append(out, startLine)
}

func (l *Launch) Knobs() []optim.Knob {
	if l.draft.Knobs == nil {
		return nil
	}
	return l.draft.Knobs.Algorithm.Shown()
}

// curve is a knob over the rounds that are expected.
func (l *Launch) curve(k optim.Knob, n int) []float64 {
	hi, _ := l.horizon()
	return l.draft.Knobs.Expecting(l.estimate.Expected).Curve(k, 0, hi, n)
}

// alg is whose knobs are shown.
func (l *Launch) alg() string {
	if l.draft.Knobs == nil {
		return ""
	}
	return l.draft.Knobs.Algorithm.Name
}

// Chosen is the line under the cursor.
func (l *Launch) Chosen() panel.LineID {
	all := l.lines()
	return all[min(max(l.cursor, 0), len(all)-1)]
}

// formLine is what a draft says of a line that is no knob's.
func (l *Launch) formLine(at panel.LineID) (f panel.FormLine) {
	if i := slices.IndexFunc(l.draft.Lines, func(f panel.FormLine) bool { return f.Name == at.Name }); i >= 0 && !at.Knob {
		f = l.draft.Lines[i]
	}
	return f
}

// value returns the value of a line, from the user or else from the draft. explicit reports whether the user gave it.
func (l *Launch) value(at panel.LineID) (text string, explicit bool) {
	if text, explicit = l.Request.Explicit(at, l.alg()); explicit {
		return text, at.Name != panel.PresetLine
	}
	if !at.Knob {
		return l.formLine(at).Value, false
	}
	knobs := l.draft.Knobs
	if expr, _ := knobs.Expr(at.Name); expr != "" {
		return expr, false
	}
	k, _ := knobs.Algorithm.Knob(at.Name)
	return k.Format(knobs.Value(k)), false
}

// choices are what may be chosen on a line.
func (l *Launch) choices(at panel.LineID) []string {
	if at.Knob {
		k, _ := l.draft.Knobs.Algorithm.Knob(at.Name)
		return k.Choices
	}
	return l.formLine(at).Words
}

// Fresh says whether the estimate is of what the form says.
func (l *Launch) Fresh() bool { return l.estimated == l.gen }
