package panel

import (
	"context"
	"maps"
	"slices"

	"brood/runtime/event"
	"brood/runtime/view"
)

// Launcher is an optional interface of a Library that can start runs. It accepts and rejects the same requests, with
// the same messages, as `brood run`.
type Launcher interface {
	// Draft resolves a request. It reads no data, so that it is fast enough to run after every key press.
	Draft(r Request) Draft
	// Estimate returns the resources that the run needs. It may take seconds; ctx cancels it.
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

// PresetLine is the name of the line for the preset.
const PresetLine = "preset"

// LineID identifies a line of the form.
type LineID struct {
	Name string // PresetLine, or the name of an option or a knob
	Knob bool
}

// FormLine is a line of the form for the preset or an option.
type FormLine struct {
	Name, Value, Doc string
	Words            []string // valid values; nil: any text
	Paths            bool     // paths are valid too
}

// Draft is a resolved request. If Err is set, only Command, Err and At are valid.
type Draft struct {
	Lines   []FormLine  // the preset and options
	Knobs   *view.Knobs // at round 0
	Limit   event.Limit
	Command string // equivalent shell command
	Err     error  // why the request is rejected
	At      LineID // the line that causes Err; "": none in particular
}

// Estimate holds the resources that a run needs.
type Estimate struct {
	Model, Data string // "" if the run trains no model
	Members     int
	Parameters  int
	Memory      int64          // bytes
	Device      int64          // bytes on the device; 0 without one
	Took        float64        // seconds of the last run of the unchanged preset; 0 if unknown
	Expected    event.Progress // at its end; zero if its limit does not determine it

	Err error  `json:"-"` // why the run would be rejected
	At  LineID `json:"-"` // the line that causes Err
}

// Without returns the request without the value of a line. alg is the algorithm of the line's knob.
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

// With returns the request with a value for a line. alg is the algorithm of the line's knob.
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

// Explicit returns the value that the user gave for a line. ok is false if there is none.
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
