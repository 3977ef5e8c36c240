package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"brood/models"
	"brood/optim"
	"brood/optim/catalog"
	"brood/presets"
	"brood/runtime/coordinator"
)

func presetsCommand(s streams) *cobra.Command {
	c := listing(&cobra.Command{Use: "presets", Short: "List and show the built-in experiments"}, listPresets(s))
	c.AddCommand(listing(&cobra.Command{Use: "list", Short: "List the presets"}, listPresets(s)))
	show := &cobra.Command{Use: "show NAME", Short: "Show one as TOML, ready to save and change", Args: exactly("a NAME")}
	asJSON := jsonFlag(show)
	show.RunE = func(_ *cobra.Command, args []string) error {
		if *asJSON {
			p, err := presetObject(args[0])
			if err != nil {
				return err
			}
			return objects(s.out, p)
		}
		text, err := presets.Source(args[0])
		if err != nil {
			return err
		}
		_, err = s.out.Write(text)
		return err
	}
	c.AddCommand(show)
	return c
}

// listing makes a command that lists all of something, as a table or as JSON.
func listing(c *cobra.Command, list func(asJSON bool) error) *cobra.Command {
	asJSON := jsonFlag(c)
	c.Args = noArgs
	c.RunE = func(*cobra.Command, []string) error { return list(*asJSON) }
	return c
}

func listPresets(s streams) func(bool) error {
	return func(asJSON bool) error {
		t := newTable("preset", "algorithm", "model", "data", ">members", "study", "what")
		var all []presets.Preset
		for _, name := range presets.List() {
			p, err := presets.Load(name)
			if err != nil {
				return err
			}
			all = append(all, p)
		}
		slices.SortStableFunc(all, func(a, b presets.Preset) int { return cmp.Compare(a.Study, b.Study) }) // those of no study first
		if asJSON {
			for _, p := range all {
				x, err := presetObject(p.Name)
				if err == nil {
					err = objects(s.out, x)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}
		for _, p := range all {
			t.row(p.Name, p.Algorithm, p.Model, p.Data, fmt.Sprint(p.Members), p.Study, p.Title)
		}
		t.write(s.out)
		return nil
	}
}

func algorithmsCommand(s streams) *cobra.Command {
	c := &cobra.Command{Use: "algorithms [NAME]", Short: "List the algorithms, or explain one with its knobs", Args: func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return exactly("a NAME")(c, args)
		}
		return nil
	}}
	asJSON := jsonFlag(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		all := catalog.All()
		if len(args) > 0 {
			a, err := catalog.Lookup(args[0])
			if err != nil {
				return err
			}
			all = []*optim.Algorithm{a}
		}
		switch {
		case *asJSON:
			var out []map[string]any
			for _, a := range all {
				out = append(out, algorithmObject(a))
			}
			return objects(s.out, out...)
		case len(args) > 0:
			explain(s.out, all[0])
			return nil
		}
		t := newTable("algorithm", "needs", "knobs", "paper")
		for _, a := range all {
			needed := strings.Join(needs(a.Needs), ", ")
			t.row(a.Name, cmp.Or(needed, "nothing"), fmt.Sprint(len(a.Knobs)), shorten(a.Paper, 70))
		}
		t.write(s.out)
		return nil
	}
	return c
}

func needs(n optim.Needs) []string {
	out := []string{}
	for _, x := range []struct {
		n    optim.Needs
		name string
	}{{optim.Gradients, "gradients"}, {optim.Evaluations, "evaluations"}, {optim.Pairs, "pairs"}} {
		if n&x.n != 0 {
			out = append(out, x.name)
		}
	}
	return out
}

// knobsOf are the knobs of an algorithm, and the one that all have.
func knobsOf(a *optim.Algorithm) []optim.Knob {
	return append([]optim.Knob{coordinator.MembersKnob}, a.Knobs...)
}

func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

func explain(w io.Writer, a *optim.Algorithm) {
	fmt.Fprintf(w, "%s (%s)\n%s\n\n%s\n\n", a.Title, a.Name, a.Paper, a.Doc)
	t := newTable("knob", ">default", "bounds", "unit", "what")
	for _, k := range knobsOf(a) {
		bounds := k.Format(k.Min) + " to " + k.Format(k.Max)
		if len(k.Choices) > 0 {
			bounds = strings.Join(k.Choices, ", ")
		}
		t.row(k.Name, k.Format(k.Default), bounds, k.Unit, k.Doc)
	}
	t.write(w)
	fmt.Fprintln(w)
	t = newTable("series", "unit", "what")
	for _, x := range a.Series {
		t.row(x.Name, x.Unit, x.Doc)
	}
	t.write(w)
}

func modelsCommand(s streams) *cobra.Command {
	list := func(asJSON bool) error {
		t := newTable("model", "input", ">classes", ">parameters", ">statistics", "what")
		for _, name := range models.List() {
			m, err := models.Load(name)
			if err != nil {
				return err
			}
			if asJSON {
				if err := objects(s.out, modelObject(m)); err != nil {
					return err
				}
				continue
			}
			t.row(m.Name, fmt.Sprint(m.Input), fmt.Sprint(m.Classes), grouped(int64(m.Layout.Params)), grouped(int64(m.Layout.Stats)), m.Doc)
		}
		if !asJSON {
			t.write(s.out)
		}
		return nil
	}
	c := listing(&cobra.Command{Use: "models", Short: "List and show the models"}, list)
	c.AddCommand(listing(&cobra.Command{Use: "list", Short: "List the models"}, list))
	show := &cobra.Command{Use: "show NAME", Short: "Show the layers and tensors of one", Args: exactly("a NAME")}
	asJSON := jsonFlag(show)
	show.RunE = func(_ *cobra.Command, args []string) error {
		m, err := models.Load(args[0])
		if err != nil {
			return err
		}
		if *asJSON {
			return objects(s.out, modelObject(m))
		}
		t := newTable(">layer", "kind", "in", "out")
		for i, l := range m.Layers {
			t.row(fmt.Sprint(i+1), string(l.Kind), fmt.Sprint(l.In), fmt.Sprint(l.Out))
		}
		t.write(s.out)
		fmt.Fprintln(s.out)
		t = newTable("tensor", "shape", ">parameters")
		for _, x := range m.Layout.Tensors {
			t.row(x.Name, fmt.Sprint(x.Shape), grouped(int64(x.Len)))
		}
		t.row("all", "", grouped(int64(m.Layout.Params)))
		t.write(s.out)
		return nil
	}
	c.AddCommand(show)
	return c
}
