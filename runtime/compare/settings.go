package compare

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"brood/optim"
	"brood/optim/catalog"
	"brood/runtime/event"
	"brood/runtime/option"
	"brood/runtime/view"
)

// changes are the values that plans gave to what is no knob, each with the first round under it.
type changes struct {
	algorithm, members, workers []change
	from                        uint64 // rounds before the first plan
}

type change struct {
	value string
	first uint64
}

func (c *changes) plan(p *event.Plan) {
	if len(c.algorithm) == 0 || p.From == event.Fresh {
		c.from = p.At
	}
	at := p.At + 1
	if p.At == c.from { // nothing was done before
		*c, at = changes{from: p.At}, 0
	}
	c.algorithm = follow(c.algorithm, change{p.Algorithm, at})
	c.members = follow(c.members, change{strconv.Itoa(len(p.New.Members)), at})
	c.workers = follow(c.workers, change{strconv.Itoa(len(p.New.Workers())), at})
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
		case option.Workers:
			add(x.Name, text(told.workers))
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
