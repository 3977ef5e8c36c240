package cli

import (
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"brood/optim/catalog"
	"brood/presets"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/option"
	"brood/tui/panel"
)

// requests returns every preset unchanged and, for each algorithm, one preset with several changes.
func requests(t *testing.T) (all []panel.Request) {
	t.Helper()
	changed := map[string]bool{}
	for _, name := range presets.List() {
		p, err := presets.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		alg, err := catalog.Lookup(p.Options.Algorithm)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, panel.Request{Preset: name})
		if changed[alg.Name] {
			continue
		}
		changed[alg.Name] = true
		k := alg.Knobs[0]
		all = append(all,
			panel.Request{Preset: name, Options: map[string]string{"rounds": "300", "members": "8", "seed": "7"}},
			panel.Request{Preset: name, Options: map[string]string{"epochs": "2.5", "workers": "2"},
				Knobs: map[string][]event.Setting{alg.Name: {{Knob: k.Name, Expr: k.Format(k.Default)}}, "nobody": {{Knob: "x", Expr: "1"}}}})
	}
	return append(all, panel.Request{},
		panel.Request{
			Preset: "quickstart", Options: map[string]string{"workers": "2", "threads": "3", "device": "cpu", "augment": "none",
				"for": "1m30s"},
		},
		panel.Request{Preset: "quickstart", Options: map[string]string{"target": "loss=0.1", "device": "gpu"}},
		panel.Request{
			Preset: "quickstart", Options: map[string]string{"algorithm": "dp-sgd", "data": "it's my data/$HOME *.npz",
				"model": "ü~ `x`.toml"},
		},
		panel.Request{
			Preset: "quickstart", Knobs: map[string][]event.Setting{"parle": {{Knob: "eta", Expr: "exp:0.1*0.99/round..0.01"},
				{Knob: "gamma", Expr: "cosine:100..2@+50"}}},
		},
		panel.Request{Options: map[string]string{"algorithm": "openai-es", "model": "softmax", "data": "glyphs",
			"members": "auto", "target": "test_error=2.8"}})
}

// TestLauncherOrdersItsLine: the command line that the launcher shows, parsed by a shell and by `brood run`, gives the
// order that the launcher begins: the preset with the changes of the request.
func TestLauncherOrdersItsLine(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh to read the line")
	}
	for _, r := range requests(t) {
		w, err := parseRequest(r)
		if err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		line := draft(r).Command
		read, err := exec.Command(sh, "-c", `printf '%s\n' `+line).Output()
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		words := strings.Split(strings.TrimSuffix(string(read), "\n"), "\n")
		if words[0] != "brood" || words[1] != "run" {
			t.Fatalf("the line is %s", line)
		}
		typed, err := parseRun(words[1:])
		if err != nil || !reflect.DeepEqual(typed.order, w.order) {
			t.Errorf("%s\norders %+v, %v\nand begins %+v", line, typed.order, err, w.order)
		}
		if want := wantOrder(t, r); !reflect.DeepEqual(want, w.order) {
			t.Errorf("%+v\nis to order %+v\nand orders  %+v", r, want, w.order)
		}
	}
}

// TestLauncherServes: a request that waits for workers is served.
func TestLauncherServes(t *testing.T) {
	r := panel.Request{Preset: "quickstart", Options: map[string]string{"wait": "2", "rounds": "40"}}
	w, err := parseRequest(r)
	if d := draft(r); err != nil || d.Err != nil || d.Command != "brood serve quickstart --wait 2 --rounds 40" ||
		w.order.Options.Wait != 2 || w.order.Options.Workers != 2 {
		t.Errorf("%q orders %+v: %v, %v", d.Command, w.order.Options, err, d.Err)
	}
	r.Options["wait"] = "0"
	if d := draft(r); d.Command != "brood run quickstart --rounds 40" || d.Err != nil {
		t.Errorf("%q: %v", d.Command, d.Err)
	}
	for text, want := range map[string]string{"-1": "--wait", "2000": "--wait 2000", "two": "--wait two"} {
		r.Options["wait"] = text
		if d := draft(r); d.Err == nil || !strings.Contains(d.Err.Error(), want) {
			t.Errorf("wait %s: %v", text, d.Err)
		}
	}
}

// wantOrder returns the order that a request should give, without parsing a command line.
func wantOrder(t *testing.T, r panel.Request) host.Order {
	t.Helper()
	var p presets.Preset
	name := r.Preset
	if name == "" && r.Options == nil {
		name = presets.Default
	}
	if name != "" {
		var err error
		if p, err = presets.Load(name); err != nil {
			t.Fatal(err)
		}
	}
	o := p.Options
	o.By = "flag"
	o.Rules, _ = p.Rules()
	if o.Seed == 0 {
		o.Seed = 1
	}
	if a := r.Options["algorithm"]; a == "" {
		for _, s := range p.Settings() {
			o.Base = append(o.Base, event.Setting{Knob: s.Knob, Expr: s.Expr})
		}
	} else if len(p.Settings()) > 0 {
		o.Unused = p.Options.Algorithm
	}
	if r.Options["rounds"] != "" || r.Options["epochs"] != "" || r.Options["for"] != "" {
		o.Limit = event.Limit{}
	}
	for name, text := range r.Options {
		if err := option.Named(name).Set(&o, text); err != nil {
			t.Fatal(err)
		}
	}
	o.Set = r.Knobs[o.Algorithm]
	o.Preset = presetName(p, o)
	return host.Order{Options: o}
}

// TestLauncherRefuses: the launcher rejects requests with the error text of `brood run`, and blames the right line.
func TestLauncherRefuses(t *testing.T) {
	lib := newTestShelf(t)
	knob := func(name, expr string) map[string][]event.Setting {
		return map[string][]event.Setting{"parle": {{Knob: "ell", Expr: "5"}, {Knob: name, Expr: expr}}}
	}
	with := func(pairs ...string) map[string]string {
		out := map[string]string{"seed": "3"}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i]] = pairs[i+1]
		}
		return out
	}
	for _, c := range []struct {
		r    panel.Request
		at   panel.LineID
		says string
	}{
		{panel.Request{Preset: "quickstrat"}, panel.LineID{Name: "preset"}, `no preset "quickstrat"`},
		{panel.Request{Preset: "mine.toml"}, panel.LineID{Name: "preset"}, "mine.toml"},
		{panel.Request{Preset: "quickstart", Options: with("algorithm", "sgd")}, panel.LineID{Name: "algorithm"}, `there is no algorithm "sgd"`},
		{panel.Request{Preset: "quickstart", Options: with("members", "0")}, panel.LineID{Name: "members"}, "--members 0: give 1 or more"},
		{panel.Request{Preset: "quickstart", Options: with("members", "many")}, panel.LineID{Name: "members"}, "--members many: that is no whole number, nor auto"},
		{panel.Request{Preset: "quickstart", Options: with("rounds", "0")}, panel.LineID{Name: "rounds"}, "--rounds 0: give 1 or more"},
		{panel.Request{Preset: "quickstart", Options: with("workers", "0")}, panel.LineID{Name: "workers"}, "--workers 0: give 1 or more"},
		{panel.Request{Preset: "quickstart", Options: with("threads", "two")}, panel.LineID{Name: "threads"}, "--threads two"},
		{panel.Request{Preset: "quickstart", Options: with("device", "tpu")}, panel.LineID{Name: "device"}, "tpu"},
		{panel.Request{Preset: "quickstart", Options: with("augment", "blur")}, panel.LineID{Name: "augment"}, "blur"},
		{panel.Request{Preset: "quickstart", Options: with("for", "long")}, panel.LineID{Name: "for"}, "--for long: that is no duration such as 30s"},
		{panel.Request{Preset: "quickstart", Options: with("target", "loss")}, panel.LineID{Name: "target"}, "loss"},
		{panel.Request{Preset: "quickstart", Options: with("model", "mlp-smal")}, panel.LineID{Name: "model"}, `"mlp-smal"`},
		{panel.Request{Preset: "quickstart", Options: with("rounds", "300"), Knobs: knob("eta", "-1")}, panel.LineID{Name: "eta", Knob: true}, "eta = -1 is out of bounds"},
		{panel.Request{Preset: "quickstart", Knobs: knob("gamma", "cosine:1..2")}, panel.LineID{Name: "gamma", Knob: true}, "is not a schedule"},
	} {
		d := lib.Draft(c.r)
		if d.Err == nil || !strings.Contains(d.Err.Error(), c.says) || d.At != c.at {
			t.Errorf("%+v: %v at %+v, want %q at %+v", c.r, d.Err, d.At, c.says, c.at)
			continue
		}
		if !strings.HasPrefix(d.Command, "brood run ") {
			t.Errorf("the line of a refusal is %q", d.Command)
		}
		if printed := ran(t, requestArgs(c.r, c.r.Knobs["parle"])); printed != "brood: "+d.Err.Error()+"\n" {
			t.Errorf("%s\nsays here        %q\nand there %q", d.Command, d.Err, printed)
		}
	}
	d := lib.Draft(panel.Request{Options: map[string]string{"for": "90s", "device": "gpu"}})
	var names []string
	for _, l := range d.Lines {
		names = append(names, l.Name)
		if want := map[string]string{"for": "1m30s", "device": "gpu", "target": "", "augment": ""}; l.Doc == "" ||
			want[l.Name] != "" && l.Value != want[l.Name] {
			t.Errorf("the line of %s is %+v", l.Name, l)
		}
	}
	if want := strings.Fields("preset algorithm model data label members rounds epochs for target seed augment workers " +
		"wait threads device"); !slices.Equal(names, want) {
		t.Errorf("the form has lines of %v, want %v", names, want)
	}
	if d := lib.Draft(panel.Request{}); d.Lines[0].Value != presets.Default || d.Command != "brood run" {
		t.Errorf("without options the form is %+v", d)
	}
	for _, r := range requests(t) {
		if r.Options["model"] == "ü~ `x`.toml" {
			continue
		}
		if d := lib.Draft(r); d.Err != nil || len(d.Lines) != 1+len(launcherOptions()) || len(d.Knobs.Algorithm.Knobs) == 0 {
			t.Errorf("%+v: %+v", r, d)
		}
	}
}

// ran returns the error of `brood` for words that it rejects.
func ran(t *testing.T, words []string) string {
	t.Helper()
	var printed strings.Builder
	if Run(t.Context(), append(words, "--plain", "--session", filepath.Join(t.TempDir(), "s")),
		streams{out: &printed, err: &printed}) == 0 {
		t.Fatalf("%q runs", words)
	}
	return printed.String()
}

// TestLauncherEstimates: the estimated needs of a run equal those in its log.
func TestLauncherEstimates(t *testing.T) {
	w, err := parseRequest(panel.Request{Preset: "quickstart",
		Options: map[string]string{"rounds": "20", "members": "auto"}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := estimateOf(w.order)
	if err != nil || e.Members < 1 || e.Model != "mlp-small" || e.Data != "glyphs" || e.Parameters != 50890 ||
		e.Memory < 1<<20 || e.Expected.Rounds != 20 || !(e.Expected.Epochs > 0) {
		t.Errorf("%+v, %v", e, err)
	}
	w.order.Options.Limit = event.Limit{Epochs: 2}
	if e, err = estimateOf(w.order); err != nil || e.Expected.Rounds < 2 || e.Expected.Epochs < 2 ||
		e.Expected.Epochs > 2.5 {
		t.Errorf("two epochs: %+v, %v", e.Expected, err)
	}
	w.order.Options.Data = "nowhere.npz"
	if _, err := estimateOf(w.order); err == nil || !strings.Contains(err.Error(), "nowhere.npz") {
		t.Errorf("data that are not there: %v", err)
	}
}

// TestShellLine: paths and schedules are quoted for a shell only if needed.
func TestShellLine(t *testing.T) {
	for word, want := range map[string]string{"a/b.toml": "a/b.toml", "eta=0.1": "eta=0.1", "": "''", "it's": `'it'\''s'`,
		"x*y": "'x*y'", "~/d": "'~/d'"} {
		if got := shellLine([]string{word}); got != "brood "+want {
			t.Errorf("%q is written %s", word, got)
		}
	}
}
