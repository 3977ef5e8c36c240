package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"brood/models/arith"
	"brood/optim"
	"brood/presets"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/option"
)

// claimed prints a preset's claims beside what a run of it measured; of a run with other settings it says which these
// are instead. What a claim states is of the short form; the published number is of the full one.
func claimed(w io.Writer, j *host.Job, limit event.Limit, edits []event.Edit, metric func(string) (float64, bool)) {
	preset := j.Config.Preset
	p, full, err := presets.Recorded(preset)
	if err != nil {
		if strings.HasSuffix(preset, ".toml") {
			fmt.Fprintf(w, "  claims       not judged: %v\n", err)
		}
		return // of none, or of another version
	}
	if len(p.Claims) == 0 {
		return
	}
	form := p
	if full {
		if form, err = p.InFull(); err != nil {
			return // of another version
		}
	}
	others := otherwise(form, j, limit, edits)
	if len(others) > 0 {
		fmt.Fprintf(w, "  claims       of %s are of other settings (%s)\n", form.Name, strings.Join(others, ", "))
	}
	for _, c := range p.Claims {
		x, ok := metric(c.Metric)
		if !ok || c.Slope != nil || len(others) > 0 {
			continue
		}
		text := fmt.Sprintf("measured %.4g %s", x, presets.Metrics[c.Metric])
		if math.IsInf(x, 1) {
			text = "missed the target"
		} else if published := p.Published(c, full); published != nil && c.Ratio == nil {
			text += fmt.Sprintf(", published %g, difference %+.4g", *published, x-*published)
		}
		if !full {
			text += "; stated " + c.States()
		}
		fmt.Fprintf(w, "  claim        %s: %s (%s)\n", c.Metric, text, c.Source)
	}
	words := []string{"reproduce", cmp.Or(p.Study, p.Name)}
	if strings.HasSuffix(p.Name, ".toml") {
		words[1] = p.Name // a study of one's own is its file, whatever it calls itself
	}
	if full {
		words = append(words, "--full")
	}
	fmt.Fprintf(w, "               several seeds judge it: %s\n", shellLine(words))
}

// figureless are options that change no figure that is claimed.
var figureless = []*option.Option{option.Seed, option.Evaluate, option.Probe, option.Checkpoints, option.OnLoss, option.OnTrouble}

// otherwise names what a run has otherwise than the preset it is of: options, and knobs whenever they
// were turned; not its seed, nor what changes no figure that is claimed.
func otherwise(p presets.Preset, j *host.Job, limit event.Limit, edits []event.Edit) (out []string) {
	add := func(name string) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	is, want := j.Options, p.Options
	is.Algorithm, is.Limit = j.Alg.Name, limit
	_ = want.Fill() // presets are checked when they are read
	for _, x := range option.With(option.Preset) {
		if !slices.Contains(figureless, x) && x.Text(is) != x.Text(want) {
			add(x.Name)
		}
	}
	if j.Config.Init != nil {
		add(option.Init.Name)
	}
	if j.Config.Kernels != arith.Name {
		add(option.Device.Name)
	}
	stated := map[string]string{}
	for _, s := range p.Settings() {
		stated[s.Knob] = s.Expr
	}
	told := map[string]bool{}
	for _, e := range edits {
		told[e.Knob] = true
		if e.By != optim.Auto && e.By != event.ByNobody && stated[e.Knob] != e.Expr {
			add(e.Knob)
		}
	}
	for _, s := range p.Settings() {
		if !told[s.Knob] { // it has it since
			add(s.Knob)
		}
	}
	return out
}
