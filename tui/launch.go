package tui

import (
	"context"
	"maps"
	"slices"
	"time"

	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/view"
)

// Launcher is an optional power of a Library: to begin runs. What it refuses and says is what `brood run` does.
type Launcher interface {
	// Draft says what a request comes to; it reads no data, so that it can be asked at every key.
	Draft(r Request) Draft
	// Estimate says what the run would need. It may take seconds, and ends with ctx.
	Estimate(ctx context.Context, r Request) Estimate
	// Begin starts a process that trains the run, and returns when the run answers. If ctx ends before that, Begin
	// removes everything it created.
	Begin(ctx context.Context, r Request) (Opened, error)
}

// Request is a run to start, with the options that the user has given so far. The preset, if any, gives the others. A
// Request is immutable, since other goroutines read it.
type Request struct {
	Preset  string                     // name or path; "": none
	Options map[string]string          // as text, by the option's name
	Knobs   map[string][]event.Setting // by algorithm; those of the algorithm that runs apply
}

// PresetLine is the line of the preset, which is no option.
const PresetLine = "preset"

// LineID names a line of the form.
type LineID struct {
	Name string // PresetLine, or that of an option or a knob
	Knob bool
}

// FormLine is a line of the form that is no knob.
type FormLine struct {
	Name, Value, Doc string
	Words            []string // that may be chosen; nil: anything may be typed
	Paths            bool     // and paths beside them
}

// Draft is what a request comes to. One that is refused has the command, the sentence and whose it is alone.
type Draft struct {
	Lines   []FormLine  // the preset and options
	Knobs   *view.Knobs // at round 0
	Limit   event.Limit
	Command string // the line for a shell that would order the same
	Err     error
	At      LineID // whose refusal Err is; "": none's in particular
}

// Estimate is what a run would need.
type Estimate struct {
	Model, Data string // "" of a run that trains no model
	Members     int
	Parameters  int
	Memory      int64          // bytes
	Device      int64          // bytes on the device that computes, 0 without one
	Took        float64        // seconds of the last run of the unchanged preset; 0 if unknown
	Expected    event.Progress // at its end, zero where its limit says nothing of work

	Err error  `json:"-"` // why it would be refused
	At  LineID `json:"-"`
}

// Without is the request without what is said on a line; alg is whose knob it is.
func (r Request) Without(at LineID, alg string) Request {
	switch {
	case at.Knob:
		kept := slices.DeleteFunc(slices.Clone(r.Knobs[alg]), func(s event.Setting) bool { return s.Knob == at.Name })
		if r.Knobs = maps.Clone(r.Knobs); len(kept) == 0 {
			delete(r.Knobs, alg)
		} else {
			r.Knobs[alg] = kept
		}
	case at.Name == PresetLine:
		r.Preset = ""
	default:
		r.Options = maps.Clone(r.Options)
		delete(r.Options, at.Name)
	}
	return r
}

// with is the request with a text on a line.
func (r Request) with(at LineID, alg, text string) Request {
	switch {
	case at.Knob:
		set := slices.Clone(r.Knobs[alg])
		i := slices.IndexFunc(set, func(s event.Setting) bool { return s.Knob == at.Name })
		if i < 0 {
			i, set = len(set), append(set, event.Setting{Knob: at.Name})
		}
		set[i].Expr = text
		if r.Knobs = maps.Clone(r.Knobs); r.Knobs == nil {
			r.Knobs = map[string][]event.Setting{}
		}
		r.Knobs[alg] = set
	case at.Name == PresetLine:
		r.Preset = text
	default:
		if r.Options = maps.Clone(r.Options); r.Options == nil {
			r.Options = map[string]string{}
		}
		r.Options[at.Name] = text
	}
	return r
}

// explicit returns the text that the user gave for a line.
func (r Request) explicit(at LineID, alg string) (text string, ok bool) {
	switch {
	case at.Knob:
		for _, s := range r.Knobs[alg] {
			if s.Knob == at.Name {
				return s.Expr, true
			}
		}
		return "", false
	case at.Name == PresetLine:
		return r.Preset, r.Preset != ""
	}
	text, ok = r.Options[at.Name]
	return text, ok
}

// launch is the state of the launcher. What was said stays when it is left.
type launch struct {
	request Request
	gen     int   // of the request: what is asked of an older one is not listened to
	draft   Draft // the newest that was not refused
	command string
	err     error
	at      LineID // whose refusal err is
	drafted bool   // draft is there

	estimate  Estimate
	estimated int // gen that it is of
	due       bool
	edited    time.Time
	cancel    context.CancelFunc // of the estimate on its way, nil without one

	cursor    int
	option    int // the option, and the knob, that the cursor was on before it crossed over
	knob      int
	typing    *line
	stem      string  // what was typed of a word
	untouched bool    // what stands there was not typed
	before    Request // typing
	beginning bool
	rows      []launchRow // as last drawn
}

func newLaunch() *launch { return &launch{request: Request{Preset: "quickstart"}, estimated: -1} }

// beginLine is the line at the bottom that begins the run.
var beginLine = LineID{Name: "begin it"}

// lines are those that the cursor goes through.
func (l *launch) lines() (out []LineID) {
	for _, f := range l.draft.Lines {
		out = append(out, LineID{Name: f.Name})
	}
	for _, k := range l.knobs() {
		out = append(out, LineID{Name: k.Name, Knob: true})
	}
	return append(out, beginLine)
}

func (l *launch) knobs() []optim.Knob {
	if l.draft.Knobs == nil {
		return nil
	}
	return l.draft.Knobs.Algorithm.Shown()
}

// curve is a knob over the rounds that are expected.
func (l *launch) curve(k optim.Knob, n int) []float64 {
	hi, _ := l.horizon()
	return l.draft.Knobs.Expecting(l.estimate.Expected).Curve(k, 0, hi, n)
}

// alg is whose knobs are shown.
func (l *launch) alg() string {
	if l.draft.Knobs == nil {
		return ""
	}
	return l.draft.Knobs.Algorithm.Name
}

// chosen is the line under the cursor.
func (l *launch) chosen() LineID {
	all := l.lines()
	return all[min(max(l.cursor, 0), len(all)-1)]
}

// formLine is what a draft says of a line that is no knob's.
func (l *launch) formLine(at LineID) (f FormLine) {
	if i := slices.IndexFunc(l.draft.Lines, func(f FormLine) bool { return f.Name == at.Name }); i >= 0 && !at.Knob {
		f = l.draft.Lines[i]
	}
	return f
}

// value returns the value of a line, from the user or else from the draft. explicit reports whether the user gave it.
func (l *launch) value(at LineID) (text string, explicit bool) {
	if text, explicit = l.request.explicit(at, l.alg()); explicit {
		return text, at.Name != PresetLine
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

// words are what may be chosen on a line.
func (l *launch) words(at LineID) []string {
	if at.Knob {
		k, _ := l.draft.Knobs.Algorithm.Knob(at.Name)
		return k.Choices
	}
	return l.formLine(at).Words
}

// fresh says whether the estimate is of what the form says.
func (l *launch) fresh() bool { return l.estimated == l.gen }
