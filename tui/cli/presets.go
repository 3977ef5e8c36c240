package cli

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"brood/presets"
)

func presetsCommand(s streams) *cobra.Command {
	c := listing(&cobra.Command{Use: "presets", Short: "List and show the built-in experiments"}, listPresets(s))
	c.AddCommand(listing(&cobra.Command{Use: "list", Short: "List the presets"}, listPresets(s)))
	show := &cobra.Command{Use: "show NAME", Short: "Show a preset as TOML, ready to save and change",
		Args: exactly("a NAME")}
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
		// presets without a study first
		slices.SortStableFunc(all, func(a, b presets.Preset) int { return cmp.Compare(a.Study, b.Study) })
		var lines []map[string]any
		for _, p := range all {
			t.row(p.Name, p.Options.Algorithm, p.Options.Model, p.Options.Data, fmt.Sprint(p.Options.Members), p.Study, p.Title)
			if asJSON {
				x, err := presetObject(p.Name)
				if err != nil {
					return err
				}
				lines = append(lines, x)
			}
		}
		if asJSON {
			return objects(s.out, lines...)
		}
		t.write(s.out)
		return nil
	}
}
