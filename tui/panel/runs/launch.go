package runs

import (
	"context"
	"slices"
	"time"

	"brood/optim"
	"brood/tui/panel"
)

// Launch is the state of the launcher. It is kept when the user leaves the form.
type Launch struct {
	Request panel.Request
	gen     int          // number of the request; answers to older ones are dropped
	draft   panel.Draft  // newest draft without an error
	command string       // command line of the newest draft
	Err     error        // of the newest draft
	errLine panel.LineID // line that causes Err
	drafted bool         // draft is set

	estimate  panel.Estimate
	estimated int                // gen of estimate; -1: none
	due       bool               // an estimate has to be requested
	edited    time.Time          // time of the last change
	cancel    context.CancelFunc // cancels the pending estimate; nil: none

	cursor       int
	option       int // last selected option
	knob         int // last selected knob
	typing       *panel.TextInput
	prefix       string        // typed part of a choice
	suggested    bool          // the text was suggested, not typed
	beforeTyping panel.Request // request before typing
	typedOver    string        // value of the line before typing, which *F scales
	Starting     bool          // the run is being started
	Rows         []launchRow   // rows of the last frame
}

// NewLaunch returns the state of the launcher with the preset quickstart.
func NewLaunch() *Launch { return &Launch{Request: panel.Request{Preset: "quickstart"}, estimated: -1} }

// startLine is the line at the bottom that starts the run.
var startLine = panel.LineID{Name: "start it"}

// lines returns the lines that the cursor can select.
func (l *Launch) lines() (out []panel.LineID) {
	for _, f := range l.draft.Lines {
		out = append(out, panel.LineID{Name: f.Name})
	}
	for _, k := range l.Knobs() {
		out = append(out, panel.LineID{Name: k.Name, Knob: true})
	}
	return append(out, startLine)
}

// Knobs returns the knobs of the chosen algorithm.
func (l *Launch) Knobs() []optim.Knob {
	if l.draft.Knobs == nil {
		return nil
	}
	return l.draft.Knobs.Algorithm.Shown()
}

// curve returns n values of a knob over the expected rounds.
func (l *Launch) curve(k optim.Knob, n int) []float64 {
	hi, _ := l.horizon()
	return l.draft.Knobs.Expecting(l.estimate.Expected).Curve(k, 0, hi, n)
}

// alg returns the name of the algorithm whose knobs are shown.
func (l *Launch) alg() string {
	if l.draft.Knobs == nil {
		return ""
	}
	return l.draft.Knobs.Algorithm.Name
}

// Chosen returns the line under the cursor.
func (l *Launch) Chosen() panel.LineID {
	all := l.lines()
	return all[min(max(l.cursor, 0), len(all)-1)]
}

// formLine returns the draft of a line; the zero FormLine for a knob.
func (l *Launch) formLine(at panel.LineID) (f panel.FormLine) {
	if i := slices.IndexFunc(l.draft.Lines, func(f panel.FormLine) bool { return f.Name == at.Name }); i >= 0 &&
		!at.Knob {
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

// choices returns the valid values of a line; nil for any text.
func (l *Launch) choices(at panel.LineID) []string {
	if at.Knob {
		k, _ := l.draft.Knobs.Algorithm.Knob(at.Name)
		return k.Choices
	}
	return l.formLine(at).Words
}

// Fresh reports whether the estimate belongs to the present request.
func (l *Launch) Fresh() bool { return l.estimated == l.gen }
