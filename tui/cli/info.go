package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"brood/models"
	"brood/models/data"
	"brood/optim"
	"brood/optim/catalog"
	"brood/presets"
	"brood/runtime/coordinator"
	"brood/runtime/host"
	"brood/runtime/session"
)

func presetsCommand(s streams) *cobra.Command {
	c := &cobra.Command{Use: "presets", Short: "List and show the built-in experiments", Args: noArgs, RunE: listPresets(s)}
	c.AddCommand(&cobra.Command{Use: "list", Short: "List the presets", Args: noArgs, RunE: listPresets(s)})
	c.AddCommand(&cobra.Command{Use: "show NAME", Short: "Show one as TOML, ready to save and change", Args: exactly("a NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := presets.Source(args[0])
			if err != nil {
				return err
			}
			_, err = s.out.Write(text)
			return err
		}})
	return c
}

func listPresets(s streams) func(*cobra.Command, []string) error {
	return func(*cobra.Command, []string) error {
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
		for _, p := range all {
			t.row(p.Name, p.Algorithm, p.Model, p.Data, fmt.Sprint(p.Members), p.Study, p.Title)
		}
		t.write(s.out)
		return nil
	}
}

func algorithmsCommand(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "algorithms [NAME]", Short: "List the algorithms, or explain one with its knobs", Args: func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return exactly("a NAME")(c, args)
		}
		return nil
	},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				t := newTable("algorithm", "needs", "knobs", "paper")
				for _, a := range catalog.All() {
					t.row(a.Name, needs(a.Needs), fmt.Sprint(len(a.Knobs)), shorten(a.Paper, 70))
				}
				t.write(s.out)
				return nil
			}
			a, err := catalog.Lookup(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(s.out).Encode(map[string]any{"name": a.Name, "title": a.Title, "paper": a.Paper, "doc": a.Doc, "knobs": a.Knobs, "series": a.Series})
			}
			explain(s.out, a)
			return nil
		}}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

func needs(n optim.Needs) string {
	var out []string
	for _, x := range []struct {
		n    optim.Needs
		name string
	}{{optim.Gradients, "gradients"}, {optim.Evaluations, "evaluations"}, {optim.Pairs, "pairs"}} {
		if n&x.n != 0 {
			out = append(out, x.name)
		}
	}
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, ", ")
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
	for _, k := range append([]optim.Knob{coordinator.MembersKnob}, a.Knobs...) {
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
	list := func(*cobra.Command, []string) error {
		t := newTable("model", "input", ">classes", ">parameters", ">statistics", "what")
		for _, name := range models.List() {
			m, err := models.Load(name)
			if err != nil {
				return err
			}
			t.row(m.Name, fmt.Sprint(m.Input), fmt.Sprint(m.Classes), grouped(int64(m.Layout.Params)), grouped(int64(m.Layout.Stats)), m.Doc)
		}
		t.write(s.out)
		return nil
	}
	c := &cobra.Command{Use: "models", Short: "List and show the models", Args: noArgs, RunE: list}
	c.AddCommand(&cobra.Command{Use: "list", Short: "List the models", Args: noArgs, RunE: list})
	c.AddCommand(&cobra.Command{Use: "show NAME", Short: "Show the layers and tensors of one", Args: exactly("a NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			m, err := models.Load(args[0])
			if err != nil {
				return err
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
		}})
	return c
}

// version is set when a release is linked.
var version = ""

func versionText() string {
	v := version
	if info, ok := debug.ReadBuildInfo(); ok && v == "" {
		v = info.Main.Version
		for _, x := range info.Settings {
			if x.Key == "vcs.revision" && len(x.Value) >= 12 {
				v = x.Value[:12]
			}
		}
	}
	if v == "" || v == "(devel)" {
		v = "unreleased"
	}
	return v
}

func versionCommand(s streams) *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the version", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprintf(s.out, "brood %s %s/%s %s\n", versionText(), goruntime.GOOS, goruntime.GOARCH, goruntime.Version())
			return nil
		}}
}

func doctorCommand(s streams) *cobra.Command {
	return &cobra.Command{Use: "doctor", Short: "Check what brood needs here, and say what is missing", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			t := newTable("what", "state")
			t.row("version", versionText()+" "+goruntime.Version())
			t.row("machine", fmt.Sprintf("%s/%s, %d cores", goruntime.GOOS, goruntime.GOARCH, goruntime.NumCPU()))
			t.row("kernels", host.Kernels())
			t.row("terminal", fmt.Sprintf("%v, TERM=%s", s.terminal, os.Getenv("TERM")))
			failed := 0
			home, err := session.Home()
			if err == nil {
				err = os.MkdirAll(home, 0o755)
			}
			if err == nil {
				var f *os.File
				if f, err = os.CreateTemp(home, ".doctor"); err == nil {
					f.Close()
					err = os.Remove(f.Name())
				}
			}
			if err != nil {
				failed++
				t.row("sessions", "cannot be written: "+err.Error()+"; set BROOD_SESSIONS to another directory")
			} else {
				t.row("sessions", home)
			}
			for _, name := range data.List() {
				if _, err := data.Load(name); err != nil {
					t.row("data "+name, err.Error())
				} else {
					t.row("data "+name, "ready")
				}
			}
			t.write(s.out)
			if failed > 0 {
				return &exitError{code: exitFailed, err: fmt.Errorf("%d of these keep brood from running", failed)}
			}
			return nil
		}}
}
