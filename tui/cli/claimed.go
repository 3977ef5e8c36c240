package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"brood/models/arith"
	"brood/models/data"
	"brood/optim"
	"brood/presets"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/option"
	"brood/runtime/summary"
)

// claimed prints a preset's claims beside what a run of it measured; of a run with other settings it says which these
// are instead. What a claim states is of the short form; the published number is of the full one.
func claimed(w io.Writer, j *host.Job, t *summary.Tally, metric func(string) (float64, bool)) {
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
	others := otherwise(form, j, t)
	if len(others) > 0 {
		fmt.Fprintf(w, "  claims       of %s are of other settings (%s)\n", form.Name, strings.Join(others, ", "))
	}
	for _, c := range p.Claims {
		x, ok := metric(c.Metric)
		if !ok || c.Slope != nil || len(others) > 0 || t.Before().Rounds > 0 && sinceResumed(c.Metric) {
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

// sinceResumed says that a run that goes on knows a metric of the rounds since alone.
func sinceResumed(metric string) bool {
	return strings.HasPrefix(metric, "bytes") ||
		slices.Contains([]string{"seconds", "samples_per_s", "memory", "diversity"}, metric)
}

// decisive are the options that make a run another than its preset's. With another algorithm, model or data it is of
// no preset; what does not count are the seed, and who dies and what is done then.
var decisive = []*option.Option{option.Members, option.Workers, option.Rounds, option.Epochs, option.For,
	option.Target, option.Augment, option.ClassWeights, option.Label, option.Validation, option.Rebuild}

// watched are those that decide when a target is seen to be met.
var watched = []*option.Option{option.Probe, option.Evaluate}

// otherwise names what a run has otherwise than the preset it is of, as far as that changes a figure: options, and
// knobs whenever they were turned.
func otherwise(p presets.Preset, j *host.Job, t *summary.Tally) (out []string) {
	add := func(name string) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	is, want := j.Options, p.Options
	is.Limit = t.Goal.Limit
	if want.Limit == (event.Limit{}) { // which the run chose
		want.Limit = is.Limit
	}
	if want.Members == host.Auto {
		want.Members = is.Members
	}
	_ = want.Fill() // presets are checked when they are read
	for _, x := range slices.Concat(decisive, watched) {
		if text := x.Text(want); x.Text(is) != text && !(x == option.Augment && sameAugment(text, x.Text(is))) &&
			(want.Limit.Target != "" || !slices.Contains(watched, x)) {
			add(x.Name)
		}
	}
	if j.Config.Init != nil {
		add(option.Init.Name)
	}
	if j.Config.Kernels != arith.Name {
		add(option.Device.Name)
	}
	if t.Moved {
		add("algorithm, population or workers while it trained")
	}
	stated, told := map[string]string{}, map[string]bool{}
	for _, s := range p.Settings() {
		stated[s.Knob] = s.Expr
	}
	for _, e := range t.Edits {
		told[e.Knob] = true
		if e.By != optim.Auto && e.By != event.ByNobody && stated[e.Knob] != e.Expr && !sameNumber(stated[e.Knob], e.Expr) {
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

func sameAugment(a, b string) bool {
	x, err := data.ParseAugment(a)
	y, failed := data.ParseAugment(b)
	return err == nil && failed == nil && x.String() == y.String()
}

func sameNumber(a, b string) bool {
	x, err := strconv.ParseFloat(a, 64)
	y, failed := strconv.ParseFloat(b, 64)
	return err == nil && failed == nil && x == y
}
