package panel

import (
	"context"
	"maps"
	"slices"

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

// With is the request with a text on a line.
func (r Request) With(at LineID, alg, text string) Request {
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

// Explicit returns the text that the user gave for a line.
func (r Request) Explicit(at LineID, alg string) (text string, ok bool) {
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
