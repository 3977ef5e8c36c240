package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"brood/models"
	"brood/runtime/option"
	"brood/tui/textfmt"
)

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
			t.row(m.Name, fmt.Sprint(m.Input), fmt.Sprint(m.Classes), textfmt.Grouped(m.Layout.Params),
				textfmt.Grouped(m.Layout.Stats), m.Doc)
		}
		if !asJSON {
			t.write(s.out)
			fmt.Fprintf(s.out, "\nmodels that follow the data: %s; `brood models show %s --data PATH` shows the layers\n",
				strings.Join(models.Families(), ", "), models.Families()[0])
		}
		return nil
	}
	c := listing(&cobra.Command{Use: "models", Short: "List and show the models"}, list)
	c.AddCommand(listing(&cobra.Command{Use: "list", Short: "List the models"}, list))
	show := &cobra.Command{Use: "show NAME", Short: "Show the layers and tensors of a model", Args: exactly("a NAME")}
	asJSON := jsonFlag(show)
	asTOML := show.Flags().Bool("toml", false, "print the layer list as TOML, ready to save and change")
	set := show.Flags().String(option.Data.Name, "",
		"use the input shape and the classes of these `data`, a name or a path")
	var read option.Options
	optionFlags(show, &read, option.ReadingOptions...)
	show.RunE = func(_ *cobra.Command, args []string) error {
		if *asTOML && *asJSON {
			return usage("--toml and --json exclude each other")
		}
		text, err := models.Source(args[0])
		if err != nil {
			return err
		}
		m, err := models.FromSource(args[0], text)
		if err == nil && *set != "" {
			if text, err = fitTo(m, args[0], text, *set, read); err == nil {
				m, err = models.FromSource(args[0], text)
			}
		}
		if err != nil {
			return err
		}
		switch {
		case *asJSON:
			return objects(s.out, modelObject(m))
		case *asTOML:
			_, err = s.out.Write(text)
			return err
		}
		if m.Int8 {
			fmt.Fprintf(s.out, "Integer arithmetic: weights and activations have 8 bits, sums 32.\n\n")
		}
		t := newTable(">layer", "kind", "in", "out")
		for i, l := range m.Layers {
			t.row(fmt.Sprint(i+1), string(l.Kind), fmt.Sprint(l.In), fmt.Sprint(l.Out))
		}
		t.write(s.out)
		fmt.Fprintln(s.out)
		t = newTable("tensor", "shape", ">parameters")
		for _, x := range m.Layout.Tensors {
			t.row(x.Name, fmt.Sprint(x.Shape), textfmt.Grouped(x.Len))
		}
		t.row("all", "", textfmt.Grouped(m.Layout.Params))
		t.write(s.out)
		return nil
	}
	c.AddCommand(show)
	return c
}

// fitTo returns the text of a model with the input and the classes of a data set. It loads the data set as a run with
// this model does.
func fitTo(m *models.Model, name string, text []byte, set string, read option.Options) ([]byte, error) {
	if err := read.Check(); err != nil {
		return nil, err
	}
	r, err := read.Reading()
	if err != nil {
		return nil, err
	}
	if f, is, err := models.ParseFamily(name); is && err == nil {
		d, err := f.Read(r, set)
		if err != nil {
			return nil, err
		}
		return f.Source(d.Info)
	}
	r.MultiLabel, r.Context = m.MultiLabel(), m.Context()
	if m.Targeted() {
		r.Outputs = 1
	}
	d, err := r.Load(set)
	if err != nil {
		return nil, err
	}
	return models.FitTo(name, text, d.Info)
}
