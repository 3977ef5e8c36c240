package archive

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"brood/runtime/axis"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/option"
	"brood/runtime/session"
	"brood/runtime/view"
)

// Run is one of the runs that are compared.
type Run struct {
	Name     string // of its directory; [Join] makes those of several runs differ
	Dir      string
	Parent   string // the run that it was forked from, as the log names it, "" for none
	ParentAt uint64 // and after how many of its rounds
	Settings []Setting
	Rounds   uint64             // done
	Met      string             // the target that it met, as it was typed, "" for none
	Figures  map[string]float64 // of [Metrics] those that it came to, as [Run.Metric] begins with them
	View     *view.View         // of the whole log, lean

	clock      axis.Clock
	parent     *Run // among the runs that it was joined with, nil where it is not
	whole      bool // see [Run.Whole]
	candidates bool // its training loss is of candidates, whose distances are settings
}

// Setting is what a run was told, as it was typed. What was changed while it trained reads "0.1 → 0.05 @1200": the
// round is the first one under the new value.
type Setting struct {
	Name, Value string
	Default     bool // nobody set it
}

// ErrNoRound says that a run has nothing to compare yet.
var ErrNoRound = errors.New("holds no committed round")

// Seed is the setting in which the runs of one group differ.
var Seed = option.Seed.Name

// Read folds the whole log of the session in dir. A session that cannot be read, or holds no round, is an error.
func Read(dir string) (*Run, error) {
	r, err := session.OpenReader(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	next := func() (event.Record, error) { return r.Next() }
	run, err := fold(filepath.Base(dir), next)
	if err != nil {
		return nil, err
	}
	run.Dir = dir
	return run, nil
}

// fold reads records up to io.EOF.
func fold(name string, next func() (event.Record, error)) (*Run, error) {
	run, tally, whole := &Run{Name: name, Figures: map[string]float64{}}, NewTally(), view.New()
	var told changes
	for {
		rec, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		tally.Record(rec)
		whole.Apply(rec)
		switch {
		case rec.Plan != nil:
			run.clock.Back(rec.Plan.At)
			told.plan(rec.Plan)
		case rec.Commit != nil:
			run.clock.Begin(tally.Before())
			run.clock.Commit(rec.Commit)
		}
	}
	if whole.Config == nil || whole.Plan == nil || tally.Sum.Rounds == 0 {
		return nil, fmt.Errorf("session %s %w: there is nothing to compare", name, ErrNoRound)
	}
	tally.Finish(coordinator.Exit{})
	tally.Sum.Seconds = tally.Spent()
	run.Rounds, run.candidates = tally.Sum.Rounds, tally.Candidates
	if tally.Goal.Met != "" {
		run.Met = tally.Goal.Limit.Target
	}
	for _, m := range Metrics {
		if whole.Config.Model == "" && slices.Contains(trained, m.Name) {
			continue // a protocol without a model has none
		}
		if whole.Config.Maximises() && m.Name == event.KeyTestLoss {
			continue // that is minus the fitness, which is told
		}
		if x, ok := tally.Metric(m.Name); ok {
			run.Figures[m.Name] = x
		}
	}
	run.Parent, run.ParentAt = whole.Config.Parent, whole.Config.ParentAt
	run.Settings, run.View = settings(whole, told), whole.Lean()
	return run, nil
}

// trained are the metrics of a model alone.
var trained = []string{"train_loss", "samples_per_s"}

// Value is a setting of the run, "" where it has none of that name.
func (r *Run) Value(name string) string { return r.setting(name).Value }

func (r *Run) setting(name string) Setting {
	i := slices.IndexFunc(r.Settings, func(s Setting) bool { return s.Name == name })
	if i < 0 {
		return Setting{}
	}
	return r.Settings[i]
}
