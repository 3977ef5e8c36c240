// Package compare lays recorded runs side by side: in what their settings differ, what each of them came to, and their
// curves over a common axis. It folds logs by package view and package summary, and knows no screen.
package compare

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"brood/optim"
	"brood/optim/catalog"
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

// changes are the values that plans gave to what is no knob, each with the first round under it.
type changes struct{ algorithm, members []change }

type change struct {
	value string
	first uint64
}

func (c *changes) plan(p *event.Plan) {
	at := p.At + 1
	if p.From == event.Fresh || len(c.algorithm) == 0 {
		at = 0
	}
	c.algorithm = follow(c.algorithm, change{p.Algorithm, at})
	c.members = follow(c.members, change{strconv.Itoa(len(p.New.Members)), at})
}

// follow adds a value to those before it, of which a plan that goes back takes some away again.
func follow(list []change, next change) []change {
	list = slices.DeleteFunc(list, func(c change) bool { return c.first > 0 && c.first >= next.first })
	if n := len(list); n > 0 && list[n-1].value == next.value {
		return list
	}
	return append(list, next)
}

func (c change) String() string {
	if c.first == 0 {
		return c.value
	}
	return fmt.Sprintf("%s @%d", c.value, c.first)
}

func text(list []change) string {
	words := make([]string, len(list))
	for i, c := range list {
		words[i] = c.String()
	}
	return strings.Join(words, " → ")
}

// settings are what a run was told, in the order in which they are shown; what was left at "nothing" is left out.
func settings(v *view.View, told changes) (out []Setting) {
	c := v.Config
	add := func(name, value string) {
		if value != "" {
			out = append(out, Setting{Name: name, Value: value})
		}
	}
	o, err := option.Recorded(*c)
	for _, x := range option.All {
		switch x {
		case option.Algorithm:
			add(x.Name, text(told.algorithm))
		case option.Members:
			add(x.Name, text(told.members))
		case option.Init:
			if c.Init != nil {
				add(x.Name, c.Init.Digest)
			}
		case option.Seed:
			add(x.Name, x.Written(o))
		case option.Probe, option.Evaluate: // how often it is measured makes no other run
		default:
			if x.Has(option.Logged) && !x.Has(option.Ends) { // what ends it is one setting, below
				add(x.Name, x.Text(o))
			}
		}
	}
	if err != nil { // options of another version
		for _, name := range slices.Sorted(maps.Keys(c.Told)) {
			if option.Named(name) == nil {
				add(name, c.Told[name])
			}
		}
	}
	if c.Parent != "" {
		add("fork of", fmt.Sprintf("%s after %d", filepath.Base(c.Parent), c.ParentAt))
	}
	add("limit", limit(v.Limit))
	add("arithmetic", c.Kernels)
	alg, err := catalog.Lookup(v.Plan.Algorithm)
	if err != nil {
		return out // an algorithm of another version: its knobs are not known here
	}
	knobs := v.Resolve(alg)
	for _, k := range alg.Knobs {
		edits := knobs.History(k.Name)
		out = append(out, Setting{k.Name, knobText(k, edits), len(edits) == 0})
	}
	return out
}

func knobText(k optim.Knob, edits []view.Edit) string {
	list := []change{{k.Format(k.Default), 0}}
	for _, e := range edits {
		if e.At == 0 { // what the run began with
			list = []change{{e.Expr, 0}}
			continue
		}
		list = follow(list, change{e.Expr, e.First()})
	}
	return text(list)
}

func limit(l event.Limit) string {
	var words []string
	if l.Rounds > 0 {
		words = append(words, fmt.Sprintf("%d rounds", l.Rounds))
	}
	if l.Epochs > 0 {
		words = append(words, fmt.Sprintf("%g epochs", l.Epochs))
	}
	if l.Seconds > 0 {
		words = append(words, fmt.Sprintf("%g s", l.Seconds))
	}
	if l.Target != "" {
		words = append(words, l.Target)
	}
	return strings.Join(words, ", ")
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
