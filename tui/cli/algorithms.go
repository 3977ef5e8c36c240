package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"brood/optim"
	"brood/optim/catalog"
	"brood/runtime/coordinator"
	"brood/runtime/option"
)

func algorithmsCommand(s streams) *cobra.Command {
	c := &cobra.Command{Use: "algorithms [NAME]", Short: "List the algorithms, or explain one with its knobs",
		Args: func(c *cobra.Command, args []string) error {
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
	}{{optim.Gradients, "gradients"}, {optim.Evaluations, "evaluations"}, {optim.Pairs, "pairs"}, {optim.Whole,
		"whole numbers"}} {
		if n&x.n != 0 {
			out = append(out, x.name)
		}
	}
	return out
}

// knobsOf returns the knob members, which every algorithm has, and then the knobs of the algorithm.
func knobsOf(a *optim.Algorithm) []optim.Knob {
	return append([]optim.Knob{coordinator.MembersKnob.Scheduled(option.Members.Default)}, a.Knobs...)
}

func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// bound formats a bound of a knob so that it can be typed: whole numbers in full.
func bound(k optim.Knob, x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e12 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return k.Format(x)
}

func explain(w io.Writer, a *optim.Algorithm) {
	fmt.Fprintf(w, "%s (%s)\n%s\n\n%s\n\n", a.Title, a.Name, a.Paper, a.Doc)
	t := newTable("knob", "shown as", ">default", "bounds", "unit", "what")
	for _, k := range knobsOf(a) {
		bounds := bound(k, k.Min) + " to " + bound(k, k.Max)
		if len(k.Choices) > 0 {
			bounds = strings.Join(k.Choices, ", ")
		}
		t.row(k.Name, cmp.Or(k.Label, k.Name), k.Initial(), bounds, k.Unit, k.Doc)
	}
	t.write(w)
	fmt.Fprintln(w)
	t = newTable("series", "unit", "what")
	for _, x := range a.Series {
		t.row(x.Name, x.Unit, x.Doc)
	}
	t.write(w)
}
