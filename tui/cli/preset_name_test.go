package cli

import (
	"cmp"
	"path/filepath"
	"strings"
	"testing"

	"brood/presets"
)

// TestNameOfChangedPreset: a run with another algorithm, model or data than its preset has another name, in
// its log and in the name of its session, and no claims. A run with other numbers keeps the name.
func TestNameOfChangedPreset(t *testing.T) {
	t.Setenv("BROOD_SESSIONS", t.TempDir())
	for line, want := range map[string]string{
		"run quickstart": "quickstart",
		"run":            "quickstart",
		"run quickstart --members 8 --rounds 300 --set eta=0.2":       "quickstart",
		"run quickstart --algorithm parle":                            "quickstart",
		"run quickstart --algorithm ga":                               "quickstart, ga",
		"run quickstart --algorithm ga --model softmax --data glyphs": "quickstart, ga, softmax",
		"run quickstart --data some/where/digits":                     "quickstart, digits",
		"run --algorithm ga":                                          "",
	} {
		w, err := parseRun(strings.Fields(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if got := w.order.Options.Preset; got != want {
			t.Errorf("%s is called %q, want %q", line, got, want)
		}
		dir, _, err := w.flags.place(cmp.Or(want, w.order.Options.Algorithm))
		if err != nil {
			t.Fatal(err)
		}
		stem := strings.ReplaceAll(want, ", ", "-")
		if want == "" {
			stem = "ga"
		}
		if name := filepath.Base(dir); !strings.HasPrefix(name[len("2006-01-02-"):], stem+"-") ||
			len(name) != len("2006-01-02-")+len(stem)+len("-7f3a") {
			t.Errorf("%s lies in %s", line, name)
		}
		if _, _, err := presets.Recorded(want); want != "" && (err == nil) != (want == "quickstart") {
			t.Errorf("%s has the claims of a preset: %v", want, err)
		}
	}
}
