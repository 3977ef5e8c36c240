// Package compare lays recorded runs side by side: in what their settings differ, what each of them came to, and their
// curves over a common axis. It folds logs by package view and package summary, and knows no screen.
package compare

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/option"
	"brood/runtime/session"
	"brood/runtime/summary"
	"brood/runtime/view"
)

// Run is one of the runs that are compared.
type Run struct {
	Name     string // of its directory; [Join] makes those of several runs differ
	Dir      string
	Parent   string // the run that it was forked from, as the log names it, "" for none
	ParentAt uint64 // and after how many of its rounds
	Settings []Setting
	Tally    *summary.Tally // finished
	View     *view.View     // of the whole log

	clock  clock
	parent *Run // among the runs that it was joined with, nil where it is not
	whole  bool // see [Run.Whole]
}

// Setting is what a run was told, as it was typed. What was changed while it trained reads "0.1 → 0.05 @1200": the
// round is the first one under the new value.
type Setting struct {
	Name, Value string
	Default     bool // nobody set it
}

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
	run := &Run{Name: name, Tally: summary.New(), View: view.New()}
	var told changes
	for {
		rec, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		run.Tally.Record(rec)
		run.View.Apply(rec)
		switch {
		case rec.Plan != nil:
			run.clock.back(rec.Plan.At)
			told.plan(rec.Plan)
		case rec.Commit != nil:
			run.clock.begin(run.Tally.Before())
			run.clock.commit(rec.Commit)
		}
	}
	if run.View.Config == nil || run.View.Plan == nil || run.Tally.Sum.Rounds == 0 {
		return nil, fmt.Errorf("session %s holds no committed round: there is nothing to compare", name)
	}
	run.Tally.Finish(coordinator.Exit{})
	run.Tally.Sum.Seconds = run.Tally.Spent()
	run.Parent, run.ParentAt = run.View.Config.Parent, run.View.Config.ParentAt
	run.Settings = settings(run.View, told)
	return run, nil
}

// Value is a setting of the run, "" where it has none of that name.
func (r *Run) Value(name string) string { return r.setting(name).Value }

func (r *Run) setting(name string) Setting {
	i := slices.IndexFunc(r.Settings, func(s Setting) bool { return s.Name == name })
	if i < 0 {
		return Setting{}
	}
	return r.Settings[i]
}
