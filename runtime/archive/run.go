package archive

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"

	"brood/runtime/axis"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/option"
	"brood/runtime/session"
	"brood/runtime/view"
)

// Run is a recorded run, to be compared with others.
type Run struct {
	Name     string // of its directory; [Join] makes equal names of several runs different
	Dir      string
	Parent   string // the run that it was forked from, as in the log; "": none
	ParentAt uint64 // rounds of the parent before the fork
	Settings []Setting
	Rounds   uint64             // committed
	Met      string             // the target that it met, as the user wrote it; "": none
	Figures  map[string]float64 // by name of [Metrics], without the costs of a parent: see [Run.Metric]
	View     *view.View         // of the whole log, lean

	clock      axis.Clock
	parent     *Run // in its set; nil: not in the set, or no fork
	whole      bool // see [Run.Whole]
	candidates bool // its training loss is that of candidates, whose distance to the model is a setting
}

// Setting is a setting of a run, as the user wrote it. If it changed during training, the value is such as
// "0.1 → 0.05 @1200": the round is the first with the new value.
type Setting struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Default bool   `json:"default,omitempty"` // not set by the user
	Logged  string `json:"logged,omitempty"`  // Value in the units of a log, by which runs are compared; "": Value
}

// same returns what is equal for equal settings: Value has schedules as the user typed them.
func (s Setting) same() string { return cmp.Or(s.Logged, s.Value) }

// ErrNoRound reports a run without a committed round, which cannot be compared.
var ErrNoRound = errors.New("holds no committed round")

// Seed is the name of the setting in which the runs of a group differ.
var Seed = option.Seed.Name

// Read folds the whole log of the session in dir. It fails if the session cannot be read, and with [ErrNoRound] if it
// has no committed round.
func Read(dir string) (*Run, error) {
	run, err := fold(filepath.Base(dir), session.Records(dir))
	if err != nil {
		return nil, err
	}
	run.Dir = dir
	return run, nil
}

// fold reads the records of a log.
func fold(name string, records iter.Seq2[event.Record, error]) (*Run, error) {
	run, tally, whole := &Run{Name: name, Figures: map[string]float64{}}, NewTally(), view.New()
	var planned changes
	for rec, err := range records {
		if err != nil {
			return nil, err
		}
		tally.Record(rec)
		whole.Apply(rec)
		switch {
		case rec.Plan != nil:
			run.clock.Back(rec.Plan.At)
			planned.plan(rec.Plan)
		case rec.Commit != nil:
			run.clock.Begin(tally.Before())
			run.clock.Commit(rec.Commit)
		}
	}
	if whole.Config == nil || whole.Plan == nil || tally.Sum.Rounds == 0 {
		return nil, fmt.Errorf("session %s %w: there is nothing to compare", name, ErrNoRound)
	}
	tally.Finish(coordinator.Exit{})
	run.Rounds, run.candidates = tally.Sum.Rounds, tally.Candidates
	if tally.Goal.Met != "" {
		run.Met = tally.Goal.Limit.Target
	}
	for _, m := range Metrics {
		if whole.Config.Model == "" && slices.Contains(trained, m.Name) {
			continue // a protocol without a model does not have them
		}
		if whole.Config.Maximises() && m.Name == event.KeyTestLoss {
			continue // equals minus the fitness, which is listed
		}
		if x, ok := tally.Metric(m.Name); ok {
			run.Figures[m.Name] = x
		}
	}
	run.Parent, run.ParentAt = whole.Config.Parent, whole.Config.ParentAt
	run.Settings, run.View = settings(whole, planned), whole.Lean()
	return run, nil
}

// trained are the metrics that only runs with a model have.
var trained = []string{"train_loss", "samples_per_s"}

// Value returns the value of a setting; "" if the run does not have the setting.
func (r *Run) Value(name string) string { return r.setting(name).Value }

func (r *Run) setting(name string) Setting {
	i := slices.IndexFunc(r.Settings, func(s Setting) bool { return s.Name == name })
	if i < 0 {
		return Setting{}
	}
	return r.Settings[i]
}
