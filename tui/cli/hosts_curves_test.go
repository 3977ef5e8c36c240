package cli

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"brood/runtime/archive"

	"github.com/fxamacker/cbor/v2"

	"brood/runtime/axis"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
)

// shelveCurves records a run with curves in a new home.
func shelveCurves(t *testing.T) (home string) {
	home = shelve(t)
	sourcetest.Write(t, filepath.Join(home, "away"), sourcetest.Run(3, 40)...)
	return home
}

// TestCurvesOfAHost: curves arrive unchanged from another machine, and invalid messages are rejected with an error.
func TestCurvesOfAHost(t *testing.T) {
	home := shelveCurves(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	lib := archive.OpenLibrary(home, archive.CacheDir())
	var out bytes.Buffer
	if err := writeCurves(&out, lib, home, "away"); err != nil {
		t.Fatal(err)
	}
	e := archive.Entry{Name: "away", Dir: "ssh://lab/away", Host: "lab"}
	got, err := readCurves(bytes.NewReader(out.Bytes()), e)
	if err != nil {
		t.Fatal(err)
	}
	want, err := archive.Read(filepath.Join(home, "away"))
	if err != nil {
		t.Fatal(err)
	}
	a, _ := want.Curve("loss", axis.Samples, 0, 40*9600, 20)
	b, _ := got.Curve("loss", axis.Samples, 0, 40*9600, 20)
	if len(a) != 20 || len(b) != 20 || a[10] != b[10] || a[10].Empty() || got.Dir != e.Dir || got.Name != "away" {
		t.Errorf("%s has %v, want %v", got.Dir, a, b)
	}
	for _, name := range []string{"none", "../away", "--help"} {
		if err := writeCurves(&out, lib, home, name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	other, _ := cbor.Marshal(railCurves{railVersion, view.Fold + 1, nil})
	for text, want := range map[string]string{
		"": "empty answer", "Welcome to lab!": "the answer has no curves of away",
		string(other):                         "use one version on both machines",
		strings.Repeat("x", maxCurvesBytes+1): "take more than 8 MB: enter opens it there",
	} {
		if _, err := readCurves(strings.NewReader(text), e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", text, err, want)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 { // damage is refused, or drawn; it ends nothing
		text := bytes.Clone(out.Bytes())
		for range 1 + rng.IntN(3) {
			text[rng.IntN(len(text))] ^= 1 << rng.IntN(8)
		}
		run, err := readCurves(bytes.NewReader(text), e)
		if err != nil {
			continue
		}
		for _, r := range archive.Set([]*archive.Run{run, want}) {
			lo, hi := r.Span(axis.Seconds)
			r.Curve("loss", axis.Seconds, lo, hi, 50)
			r.Measured("loss", axis.Rounds)
			r.Commits(axis.Bytes, axis.Rounds)
			r.Metric("test_error")
		}
	}
}

// TestRequestCurves: curves are requested by ssh, and its output on stderr is the error if that fails.
func TestRequestCurves(t *testing.T) {
	home, bin := shelveCurves(t), t.TempDir()
	var out bytes.Buffer
	if err := writeCurves(&out, archive.OpenLibrary(home, ""), home, "away"); err != nil {
		t.Fatal(err)
	}
	curves := filepath.Join(bin, "curves")
	if err := os.WriteFile(curves, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	h := newHosts([]hostLine{{Name: "lab", SSH: "ada@lab"}}, nil)
	defer h.end()
	for script, want := range map[string]string{
		`case "$*" in *"sessions --curves away") cat ` + curves + ` ;; *) exit 9 ;; esac`: "",
		"echo 'ada@lab: Permission denied (publickey).' >&2; exit 255":                    "request the curves of away from lab: ada@lab: Permission denied (publickey)",
		"echo 'brood: unknown flag: --curves' >&2; exit 2":                                "too old for this command",
		"echo hello": "the answer has no curves of",
		"true":       "empty answer",
	} {
		if err := os.WriteFile(filepath.Join(bin, "ssh"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
		run, err := h.curves(archive.Entry{Name: "away", Dir: "ssh://lab/away", Host: "lab"})
		switch {
		case want == "" && (err != nil || run.View.Find("loss") == nil):
			t.Errorf("no curves: %v", err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", script, err, want)
		}
	}
}
