package cli

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"

	"brood/models"
	"brood/models/data"
	"brood/optim"
	"brood/presets"
	"brood/runtime/session"
)

// jsonFlag adds the flag --json to a command that lists or shows something.
func jsonFlag(c *cobra.Command) *bool { return c.Flags().Bool("json", false, "one JSON object a line") }

// objects writes one JSON object a line.
func objects[T any](w io.Writer, all ...T) error {
	enc := json.NewEncoder(exact(w))
	enc.SetEscapeHTML(false) // texts contain < and >
	for _, x := range all {
		if err := enc.Encode(x); err != nil {
			return err
		}
	}
	return nil
}

// underscored returns the JSON key of an option.
func underscored(name string) string { return strings.ReplaceAll(name, "-", "_") }

// presetObject returns the TOML of a preset as a JSON object, with its name. Keys have underscores instead of dashes.
func presetObject(name string) (map[string]any, error) {
	text, err := presets.Source(name)
	if err != nil {
		return nil, err
	}
	if _, err := presets.Load(name); err != nil {
		return nil, err
	}
	out := map[string]any{}
	if err := toml.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	for _, key := range slices.Collect(maps.Keys(out)) {
		if x := out[key]; strings.Contains(key, "-") {
			delete(out, key)
			out[underscored(key)] = x
		}
	}
	out["name"] = name
	return out, nil
}

func algorithmObject(a *optim.Algorithm) map[string]any {
	knobs, series := []any{}, []any{}
	for _, k := range knobsOf(a) {
		knobs = append(knobs, knobObject(k))
	}
	for _, x := range a.Series {
		series = append(series, map[string]any{"name": x.Name, "title": x.Title, "unit": x.Unit, "doc": x.Doc})
	}
	return map[string]any{"name": a.Name, "title": a.Title, "paper": a.Paper, "doc": a.Doc, "needs": needs(a.Needs),
		"knobs": knobs, "series": series}
}

func knobObject(k optim.Knob) map[string]any {
	line := map[string]any{"name": k.Name, "label": cmp.Or(k.Label, k.Name), "title": k.Title, "unit": k.Unit,
		"doc": k.Doc, "integer": k.Integer}
	if len(k.Choices) > 0 {
		line["choices"], line["default"] = k.Choices, k.Initial()
	} else {
		line["min"], line["max"], line["default"] = finite(k.Min), finite(k.Max), k.Default
		if k.Schedule != "" {
			line["default"] = k.Schedule
		}
	}
	return line
}

func modelObject(m *models.Model) map[string]any {
	layers, tensors := []any{}, []any{}
	for _, l := range m.Layers {
		layers = append(layers, map[string]any{"kind": l.Kind, "in": l.In, "out": l.Out})
	}
	for _, x := range m.Layout.Tensors {
		tensors = append(tensors, map[string]any{"name": x.Name, "shape": x.Shape, "parameters": x.Len})
	}
	line := map[string]any{"name": m.Name, "doc": m.Doc, "input": m.Input, "classes": m.Classes,
		"parameters": m.Layout.Params, "statistics": m.Layout.Stats,
		"layers": layers, "tensors": tensors}
	if m.Int8 {
		line["arithmetic"] = models.Int8
	}
	return line
}

// knownObject describes a data set without reading it.
func knownObject(k data.Known) map[string]any {
	where, err := k.Where()
	train, validation, test := k.Splits()
	line := map[string]any{"name": k.Name, "state": strings.ReplaceAll(presence(k, err), " ", "_"), "shape": k.Shape,
		"classes": k.Classes, "train": train, "validation": validation, "test": test}
	if k.Text {
		line["text"] = true
	}
	if k.Files != nil && err == nil {
		line["path"] = where
	}
	return line
}

func setObject(d *data.Set) map[string]any {
	line := map[string]any{"name": d.Name, "from": d.From, "shape": d.Shape, "classes": d.Classes, "class_names": d.Names,
		"train": len(d.Train()), "validation": len(d.Validation()),
		"test": len(d.Test()), "normalised": d.Normalisation(), "bytes": d.Bytes(), "digest": d.Digest()}
	if len(d.Notes) > 0 {
		line["notes"] = d.Notes
	}
	if d.Text {
		line["unigram_bits"], line["bigram_bits"] = d.Baselines()
	}
	switch {
	case d.MultiLabel:
		line["classes"], line["several"] = d.Outputs, true
	case d.Outputs > 0:
		line["outputs"], line["target_mean"], line["target_deviation"] = d.Outputs, d.TargetMean, d.TargetStd
		line["output_names"] = d.Form().OutputNames()
	}
	return line
}

func sessionObject(x session.Info) map[string]any {
	line := map[string]any{"name": x.Name, "path": x.Dir, "running": x.Running, "state": x.State(),
		"preset": x.Preset, "algorithm": x.Algorithm, "model": x.Model, "data": x.Data,
		"seed": x.Seed, "started": x.Started, "round": x.Round, "test_error": nil, "bytes": x.Size}
	if x.Parent != "" {
		line["parent"], line["parent_round"] = x.Parent, x.ParentAt
	}
	if x.Begins > 0 {
		line["begins"] = x.Begins
	}
	if x.Score != nil {
		line["test_round"], line[x.Score.Key] = x.TestRound, finite(x.Score.Value)
	}
	if x.PID != 0 {
		line["pid"] = x.PID
	}
	if a := x.About; a.Name != "" || a.Note != "" || len(a.Tags) > 0 {
		line["about"] = a
	}
	if x.Err != "" {
		line["error"] = x.Err
	}
	return line
}

// listing completes a command without arguments that lists things as a table or, with --json, as JSON.
func listing(c *cobra.Command, list func(asJSON bool) error) *cobra.Command {
	asJSON := jsonFlag(c)
	c.Args = noArgs
	c.RunE = func(*cobra.Command, []string) error { return list(*asJSON) }
	return c
}
