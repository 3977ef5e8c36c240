package cli

import (
	"bytes"
	"strings"
	"testing"

	"brood/runtime/archive"

	"brood/models/arith"
	"brood/optim/catalog"
	"brood/presets"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/option"
)

// TestClaimed: claims are printed for a run with the settings of its preset and any seed. For a run with another knob
// at any time, or another limit, population, initial model or arithmetic, the differing settings are printed instead. A
// preset in its full form is compared with the published numbers.
func TestClaimed(t *testing.T) {
	set := func(x *option.Option, text string) func(*host.Job, *archive.Tally) {
		return func(j *host.Job, _ *archive.Tally) {
			if err := x.Set(&j.Options, text); err != nil {
				t.Fatal(err)
			}
		}
	}
	turn := func(e event.Edit) func(*host.Job, *archive.Tally) {
		return func(_ *host.Job, y *archive.Tally) { y.Edits = append(y.Edits, e) }
	}
	for _, c := range []struct {
		preset string
		change func(j *host.Job, y *archive.Tally)
		want   string
	}{
		{"quickstart", nil, "measured 2.5 %; stated at most 4"},
		{"quickstart", set(option.Seed, "7"), "measured 2.5 %; stated"},
		{"quickstart", set(option.Rounds, "20"), "of quickstart do not apply: other settings (rounds)"},
		{"quickstart", set(option.Members, "5"), "other settings (members)"},
		{"quickstart", set(option.Target, "loss=1"), "other settings (target)"},
		{"quickstart", func(j *host.Job, _ *archive.Tally) { j.Config.Init = &event.File{} }, "other settings (init)"},
		{"quickstart", func(j *host.Job, _ *archive.Tally) { j.Config.Kernels = arith.BF16 }, "other settings (device)"},
		{"quickstart", turn(event.Edit{Knob: "eta", Expr: "0.5", By: "flag"}), "other settings (eta)"},
		{"quickstart", turn(event.Edit{At: 9, Knob: "ell", Expr: "3", By: "ada", ID: 1}), "other settings (ell)"},
		{"quickstart", turn(event.Edit{Knob: "eta", Expr: "1e-1", By: "flag"}), "measured 2.5 %; stated"}, // as it is
		// no target is looked for
		{"quickstart", set(option.Evaluate, "7"), "measured 2.5 %; stated"},
		{"pesgd-easy-1", set(option.Evaluate, "7"), "other settings (evaluate)"},
		{"quickstart", func(_ *host.Job, y *archive.Tally) { y.Moved = true }, "other settings (algorithm, population or workers"},
		{"quickstart", turn(event.Edit{Knob: "thermal", Expr: "0.1", By: event.ByDefault}), "measured 2.5 %; stated"},
		// of an older preset, without its first knob
		{"quickstart", func(_ *host.Job, y *archive.Tally) { y.Edits = y.Edits[1:] }, "other settings ("},
		{"parle-lenet-full", nil, "published 0.44, difference +2.06"},
		{"parle-lenet-full", func(_ *host.Job, y *archive.Tally) { // the log has schedules in its units
			for i := range y.Edits {
				if e := &y.Edits[i]; strings.Contains(e.Expr, ":") {
					e.Expr, e.Typed = "exp:1*0.999/round", e.Expr
				}
			}
		}, "published 0.44, difference +2.06"},
		{"parle-lenet-full", set(option.Epochs, "1"), "of parle-lenet-full do not apply: other settings (epochs)"},
	} {
		p, full, err := presets.Recorded(c.preset)
		if err != nil {
			t.Fatal(err)
		}
		if full {
			if p, err = p.InFull(); err != nil {
				t.Fatal(err)
			}
		}
		j := &host.Job{Options: p.Options, Config: event.Config{Preset: c.preset, Kernels: arith.Name}}
		for _, s := range p.Settings() {
			j.Base = append(j.Base, event.Setting{Knob: s.Knob, Expr: s.Expr})
		}
		if err := j.Fill(); err != nil {
			t.Fatal(err)
		}
		if j.Alg, err = catalog.Lookup(j.Algorithm); err != nil {
			t.Fatal(err)
		}
		y := archive.NewTally()
		y.Edits = host.Edits(j.Alg, j.Options)
		if c.change != nil {
			c.change(j, y)
		}
		y.Goal.Limit = j.Limit
		var out bytes.Buffer
		printClaims(&out, j, y, func(metric string) (float64, bool) { return 2.5, metric == "test_error" })
		text := out.String()
		if !strings.Contains(text, c.want) || !strings.Contains(text, "brood reproduce") ||
			strings.Contains(text, "stated") != strings.Contains(c.want, "stated") {
			t.Errorf("a run of %s says\n%swant %q", c.preset, text, c.want)
		}
	}
}
