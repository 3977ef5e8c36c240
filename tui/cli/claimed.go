package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"brood/runtime/archive"

	"brood/models/arith"
	"brood/models/data"
	"brood/optim"
	"brood/presets"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/option"
)

// printClaims prints the claims of the run's preset with the measured figures. If the settings of the run differ from
// the preset, it prints the names of these settings instead. Claims state bounds for the short form; published numbers
// are of the full form. metric returns a measured figure, and false if the run has none.
func printClaims(w io.Writer, j *host.Job, t *archive.Tally, metric func(string) (float64, bool)) {
	preset := j.Config.Preset
	p, full, err := presets.Recorded(preset)
	if err != nil {
		if strings.HasSuffix(preset, ".toml") {
			fmt.Fprintf(w, "  claims       not judged: %v\n", err)
		}
		return // no preset, or the preset of another version
	}
	if len(p.Claims) == 0 {
		return
	}
	form := p
	if full {
		if form, err = p.InFull(); err != nil {
			return // the preset has another version
		}
	}
	others := differingSettings(form, j, t)
	if len(others) > 0 {
		fmt.Fprintf(w, "  claims       of %s do not apply: other settings (%s)\n", form.Name, strings.Join(others,
			", "))
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
		kind := "claim"
		if c.IsCheck(math.NaN()) {
			kind = "check"
		}
		fmt.Fprintf(w, "  %s        %s: %s (%s)\n", kind, c.Metric, text, c.Source)
	}
	words := []string{"reproduce", cmp.Or(p.Study, p.Name)}
	if strings.HasSuffix(p.Name, ".toml") {
		words[1] = p.Name // a user's study is named by its file
	}
	if full {
		words = append(words, "--full")
	}
	fmt.Fprintf(w, "               judge with several seeds: %s\n", shellLine(words))
}

// sinceResumed reports whether a metric covers only the rounds since the run was resumed.
func sinceResumed(metric string) bool {
	return strings.HasPrefix(metric, "bytes") ||
		slices.Contains([]string{"seconds", "samples_per_s", "memory", "diversity"}, metric)
}

// claimOptions are the options that must equal the preset's for its claims to apply. A run with another algorithm,
// model or data has no preset. The seed and the handling of lost workers do not matter.
var claimOptions = []*option.Option{option.Members, option.Workers, option.Rounds, option.Epochs, option.For,
	option.Target, option.Patience, option.Augment, option.ClassWeights, option.Label, option.Validation, option.Rebuild}

// targetOptions must be equal too if the preset has a target: they set when a target is detected as met.
var targetOptions = []*option.Option{option.Probe, option.Evaluate}

// differingSettings returns the names of the settings in which a run differs from its preset p and that can change a
// figure: options, and knobs that were changed at any time. Names are unique.
func differingSettings(p presets.Preset, j *host.Job, t *archive.Tally) (out []string) {
	add := func(name string) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	actual, want := j.Options, p.Options
	actual.Limit = t.Goal.Limit
	if want.Limit == (event.Limit{}) { // the preset has no limit
		want.Limit = actual.Limit
	}
	if want.Members == host.Auto {
		want.Members = actual.Members
	}
	_ = want.Fill() // presets are checked when they are read
	for _, x := range slices.Concat(claimOptions, targetOptions) {
		if text := x.Text(want); x.Text(actual) != text && !(x == option.Augment && sameAugment(text,
			x.Text(actual))) &&
			(want.Limit.Target != "" || !slices.Contains(targetOptions, x)) {
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
	stated, edited := map[string]string{}, map[string]bool{}
	for _, s := range p.Settings() {
		stated[s.Knob] = s.Expr
	}
	for _, e := range t.Edits {
		edited[e.Knob] = true
		typed := cmp.Or(e.Typed, e.Expr) // a preset has schedules as they are typed
		if e.By != optim.Auto && e.By != event.ByDefault && stated[e.Knob] != typed && !sameNumber(stated[e.Knob], typed) {
			add(e.Knob)
		}
	}
	for _, s := range p.Settings() {
		if !edited[s.Knob] { // the preset gained this setting after the run
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
