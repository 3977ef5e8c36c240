package archive

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"brood/optim"
	"brood/optim/catalog"
	"brood/runtime/event"
	"brood/runtime/option"
	"brood/runtime/timeline"
	"brood/runtime/view"
)

// changes holds the values that plans set other than knobs, each with its first round.
type changes struct {
	algorithm, members, workers []change
	from                        uint64 // number of rounds before the first plan
}

type change struct {
	value  string
	logged string // a schedule in the units of a log, if value is as the user typed it; else ""
	first  uint64
}

func (c *changes) plan(p *event.Plan) {
	if len(c.algorithm) == 0 || p.From == event.Fresh {
		c.from = p.At
	}
	at := p.At + 1
	if p.At == c.from { // no round was executed before
		*c, at = changes{from: p.At}, 0
	}
	c.algorithm = follow(c.algorithm, change{value: p.Algorithm, first: at})
	c.members = follow(c.members, change{value: strconv.Itoa(len(p.New.Members)), first: at})
	c.workers = follow(c.workers, change{value: strconv.Itoa(len(p.New.Workers())), first: at})
}

// follow appends a value to a list, from which it removes values of rounds that were taken back.
func follow(list []change, next change) []change {
	list = slices.DeleteFunc(list, func(c change) bool { return c.first > 0 && c.first >= next.first })
	if n := len(list); n > 0 && list[n-1].inLog() == next.inLog() {
		return list
	}
	return append(list, next)
}

// inLog returns the value in the units of a log, in which different spellings of a schedule are equal.
func (c change) inLog() string { return cmp.Or(c.logged, c.value) }

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

// logged returns the changes in the units of a log; "" if text returns these too.
func logged(list []change) string {
	same := true
	list = slices.Clone(list)
	for i, c := range list {
		same = same && c.logged == ""
		list[i].value = c.inLog()
	}
	if same {
		return ""
	}
	return text(list)
}

// settings returns the settings of a run, in the order in which they are shown. It omits empty values.
func settings(v *view.View, planned changes) (out []Setting) {
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
			add(x.Name, text(planned.algorithm))
		case option.Members:
			add(x.Name, text(planned.members))
		case option.Workers:
			add(x.Name, text(planned.workers))
		case option.Init:
			if c.Init != nil {
				add(x.Name, c.Init.Digest)
			}
		case option.Model:
			add(x.Name, c.ModelName())
		case option.Seed:
			add(x.Name, x.Written(o))
		case option.Probe, option.Evaluate: // how often a run is measured does not change it
		default:
			if x.Has(option.Logged) && !x.Has(option.Ends) { // limits are one setting, see below
				add(x.Name, x.Text(o))
			}
		}
	}
	if err != nil { // options of another version
		for _, name := range slices.Sorted(maps.Keys(c.More)) {
			if option.Named(name) == nil {
				add(name, c.More[name])
			}
		}
	}
	if c.Parent != "" {
		add("fork of", fmt.Sprintf("%s after %d", ShortName(filepath.Base(c.Parent)), c.ParentAt))
	}
	add("limit", limit(v.Limit))
	add("arithmetic", c.Kernels)
	return append(out, knobs(v.Edits, planned.algorithm)...)
}

// knobs returns the knobs of every algorithm that ran. If there were several, names begin with that of the algorithm.
// It omits algorithms of another version, whose knobs are unknown.
func knobs(edits []view.Edit, ran []change) (out []Setting) {
	var names []string
	for _, c := range ran {
		if !slices.Contains(names, c.value) {
			names = append(names, c.value)
		}
	}
	for _, name := range names {
		alg, err := catalog.Lookup(name)
		if err != nil {
			continue
		}
		for _, k := range alg.Knobs {
			list, set := history(name, k, edits, ran)
			title := k.Name
			if len(names) > 1 {
				title = name + " " + k.Name
			}
			out = append(out, Setting{title, text(list), !set, logged(list)})
		}
	}
	return out
}

// history returns the values of a knob while its algorithm ran. After a swap an algorithm starts with its defaults and
// the edits of the swap. set reports whether the user set the knob.
func history(algorithm string, k optim.Knob, edits []view.Edit, ran []change) (list []change, set bool) {
	for i, c := range ran {
		if c.value != algorithm {
			continue
		}
		end, again := uint64(math.MaxUint64), false // the first round with another algorithm; whether this one returns later
		if i+1 < len(ran) {
			end = ran[i+1].first
			again = slices.ContainsFunc(ran[i+1:], func(x change) bool { return x.value == algorithm })
		}
		begins := change{value: k.Format(k.Default), first: c.first}
		if len(list) == 0 {
			begins.first = 0 // the setting of the algorithm has the round
		}
		var then []change
		for _, e := range edits {
			first := e.First()
			if e.Algorithm != algorithm || e.Knob != k.Name || first < c.first || first >= end || e.Void && !again {
				continue
			}
			value, err := canonical(k, e.Expr)
			if err != nil { // an edit of another version
				continue
			}
			next := change{value: value, first: first}
			if typed := timeline.Text(e.Edit); timeline.Moves(e.Expr) && typed != value {
				next.value, next.logged = typed, value
			}
			if set = true; first <= max(c.first, 1) {
				next.first = begins.first
				begins = next
			} else {
				then = append(then, next)
			}
		}
		for _, x := range append([]change{begins}, then...) {
			list = follow(list, x)
		}
	}
	return list, set
}

// canonical returns an expression in the form for comparisons: different spellings of a number become equal.
func canonical(k optim.Knob, expr string) (string, error) {
	s, err := timeline.Parse(k, expr)
	if err != nil || !s.Constant() {
		return strings.TrimSpace(expr), err
	}
	x := s.At(timeline.Position{}, timeline.Position{})
	short := k.Format(x)
	if same, err := timeline.Parse(k, short); err != nil || same.At(timeline.Position{}, timeline.Position{}) != x {
		return strconv.FormatFloat(x, 'g', -1, 64), nil // the short form has another value
	}
	return short, nil
}

func limit(l event.Limit) string {
	var words []string
	count := func(n float64, what string) {
		if n != 1 {
			what += "s"
		}
		words = append(words, fmt.Sprintf("%.12g %s", n, what))
	}
	if l.Rounds > 0 {
		count(float64(l.Rounds), "round")
	}
	if l.Epochs > 0 {
		count(l.Epochs, "epoch")
	}
	if l.Seconds > 0 {
		words = append(words, fmt.Sprintf("%g s", l.Seconds))
	}
	if l.Target != "" {
		words = append(words, l.Target)
	}
	if l.Patience > 0 {
		words = append(words, fmt.Sprintf("patience of %d evaluations", l.Patience))
	}
	return strings.Join(words, ", ")
}
