package presets

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brood/models"
	"brood/optim/catalog"
	"brood/optim/protocol"
	"brood/runtime/option"
	"brood/runtime/timeline"
)

// TestEmbedded: every embedded preset uses existing names, and its knobs are within bounds.
func TestEmbedded(t *testing.T) {
	if len(List()) < 2 {
		t.Fatalf("presets: %v", List())
	}
	seen := map[string]bool{}
	for _, name := range List() {
		p, err := Load(name)
		if err != nil {
			t.Error(err)
			continue
		}
		seen[name] = true
		if p.Title == "" || p.Doc == "" || p.Paper == "" || p.Expect == "" {
			t.Errorf("%s: title, doc, paper and what to expect must be there", name)
		}
		alg, err := catalog.Lookup(p.Options.Algorithm)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		layered := alg.Needs.Model() && option.Env.Text(p.Options) == "" && option.BBOB.Text(p.Options) == ""
		if _, err := models.Load(p.Options.Model); layered && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, s := range p.Settings() {
			k, _ := alg.Knob(s.Knob)
			if _, err := timeline.Parse(k, s.Expr); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if !seen[Default] {
		t.Errorf("the default preset %q is not embedded", Default)
	}
}

func TestParseRefuses(t *testing.T) {
	for text, says := range map[string]string{
		"colour = 3":         "colour",
		"augment = \"turn\"": "pad=N",
		"[full]\nexpect = \"x\"\naugment = \"turn\"": "the full form: augment",
		"members = \"three\"":                        "line 1",
		"algorithm = \"adam\"":                       "adam",
		"algorithm = \"parle\"\n[knobs]\nzeta = 1":   "zeta",
		"algorithm = \"parle\"\n[knobs\neta = 0.1\n": "line",
		"[protocol]\nname = \"x\"\ncolour = 3":       "colour",
		"[protocol]\nname = \"x\"\nstates = [\"A\"]": "1 states",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), says) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Load("nope"); err == nil || !strings.Contains(err.Error(), Default) {
		t.Errorf("unknown preset: %v", err)
	}
}

// TestParity: the preset of a rule table equals the example of its algorithm.
func TestParity(t *testing.T) {
	p, err := Load("parity")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := p.Rules()
	if err != nil {
		t.Fatal(err)
	}
	want, err := protocol.Parity.Text()
	if err != nil {
		t.Fatal(err)
	}
	if p.Options.Algorithm != protocol.Own.Name || string(rules) != string(want) {
		t.Errorf("%s with\n%s\nwant\n%s", p.Options.Algorithm, rules, want)
	}
}

// TestPathsOfAPresetFile: relative paths in a preset file are relative to its folder, whatever the working directory.
func TestPathsOfAPresetFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "p.toml")
	text := "model = \"nets/net.toml\"\ndata = \"digits.csv\"\nalgorithm = \"dp-sgd\"\n[full]\nexpect = \"a minute\"\n" +
		"model = \"lenet\"\ndata = \"../all\"\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{p.Options.Model, p.Options.Data, p.Full.Options.Model, p.Full.Options.Data}
	if want := []string{filepath.Join(dir, "nets/net.toml"), filepath.Join(dir, "digits.csv"), "lenet",
		filepath.Join(filepath.Dir(dir), "all")}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	t.Chdir(dir)
	if p, err = Load("p.toml"); err != nil || p.Options.Model != "nets/net.toml" || p.Options.Data != "digits.csv" {
		t.Errorf("in the folder itself: %q, %q, %v", p.Options.Model, p.Options.Data, err)
	}
}
