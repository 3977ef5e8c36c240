package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"brood/models/native/kernel"
)

// A line of a table has a place for every column, and leaves out what was not measured.
func TestMeasurementText(t *testing.T) {
	whole := measurement{Name: "product", Value: 231.25, Unit: "GFLOP/s", Ratio: 0.954, Scatter: 0.012, Goal: 0.9, Limit: "registers", Note: "idle"}.text()
	if !strings.Contains(whole, "231.2 GFLOP/s") || !strings.HasSuffix(whole, "0.95 ±0.01  0.90  registers; idle") {
		t.Errorf("%q", whole)
	}
	bare := measurement{Name: "control socket open", Value: 0.5, Unit: "s"}.text()
	if !strings.HasSuffix(bare, "0.5000 s") {
		t.Errorf("%q", bare)
	}
	if noted := (measurement{Name: "a", Value: 1, Unit: "s", Note: "b"}).text(); !strings.HasSuffix(noted, "  b") {
		t.Errorf("%q", noted)
	}
}

// TestBeside: a figure's ratio is to the least of its limits, each measured in every pair by spells as long as a call
// of the figure, within bounds, and the median of pairs; what fails is told of.
func TestBeside(t *testing.T) {
	m := &machine{perFigure: time.Millisecond}
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	var got measurement
	report := func(x measurement) { got = x }
	asked, spells := map[string]int{}, []time.Duration{}
	at := func(name string, rate func(turn int) float64) limit {
		return limit{name, func(spell time.Duration) float64 {
			asked[name]++
			spells = append(spells, spell)
			return rate(asked[name])
		}}
	}
	f := speed{name: "sleep", unit: "calls/s", work: 1, goal: 0.9, call: func() error { time.Sleep(200 * time.Microsecond); return nil },
		limits: []limit{at("wide", func(int) float64 { return 1e9 }), at("none", func(int) float64 { return 0 }),
			at("narrow", func(turn int) float64 { return []float64{1e4, 1e4, 1e5}[min(turn, 3)-1] })}}
	rate, err := m.measure(cmd, report, f)
	if err != nil {
		t.Fatal(err)
	}
	if asked["wide"] != asked["narrow"] || asked["none"] != asked["wide"] || asked["wide"] < 3 {
		t.Errorf("limits were measured %v times", asked)
	}
	if got.Limit != "narrow" || got.Value != rate || got.Goal != 0.9 || !(got.Scatter > 0) {
		t.Errorf("%+v, %g", got, rate)
	}
	if low, high := rate/1e5, rate/1e4; got.Ratio < 0.1*low || got.Ratio > 10*high {
		t.Errorf("the ratio %g of %g calls/s is to no limit", got.Ratio, rate)
	}
	for _, c := range []struct{ call, least, most time.Duration }{
		{0, kernel.Short, longestSpell}, {3 * time.Millisecond, 3 * time.Millisecond, longestSpell}, {longestSpell + time.Millisecond, longestSpell, longestSpell},
	} {
		spells, f.call = nil, func() error { time.Sleep(c.call); return nil }
		if _, err := m.measure(cmd, report, f); err != nil || len(spells) == 0 {
			t.Fatalf("%v, %d spells", err, len(spells))
		}
		if low, high := slices.Min(spells), slices.Max(spells); low < c.least || high > c.most || low != high {
			t.Errorf("beside calls of %v a limit has spells of %v to %v", c.call, low, high)
		}
	}
	f.limits = nil
	if _, err := m.measure(cmd, report, f); err != nil || got.Ratio != 0 || got.Goal != 0 || got.Limit != "" {
		t.Errorf("without a limit: %+v, %v", got, err)
	}
	f.call = func() error { return errors.New("broken") }
	if _, err := m.measure(cmd, report, f); err == nil || err.Error() != "broken" {
		t.Errorf("%v", err)
	}
}

// Every suite is named where a person looks for it, once.
func TestSuites(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range suites {
		if s.name == "" || s.doc == "" || s.run == nil || seen[s.name] {
			t.Errorf("suite %q (%q)", s.name, s.doc)
		}
		seen[s.name] = true
	}
	if got := suiteNames(); got != "start, steps, rounds, kernels, train, es, noise, gpu or workbench" {
		t.Error(got)
	}
}

// The suite of the workbench makes sessions with the writer of logs, lists them all and draws their curves.
func TestBenchWorkbench(t *testing.T) {
	var out, errs bytes.Buffer
	if code := Run(t.Context(), []string{"bench", "workbench", "--runs", "20", "--json"}, streams{out: &out, err: &errs}); code != 0 {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	for _, want := range []string{"made 20 sessions", "first paint, no cache", "first paint, cache", "16 runs of 64, p95, cache"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not tell of %q:\n%s", want, &out)
		}
	}
	if !strings.HasPrefix(errs.String(), "brood: writing 20 sessions to ") {
		t.Errorf("it begins with %q", &errs)
	}
	if code := Run(t.Context(), []string{"bench", "workbench", "--runs", "3"}, streams{out: &out, err: &errs}); code != exitUsage || !strings.Contains(errs.String(), "--runs 3") {
		t.Errorf("exit %d: %s", code, &errs)
	}
}

// The shortest suite prints one object a line, each a number above zero.
func TestBenchNoise(t *testing.T) {
	var out, errs bytes.Buffer
	if code := Run(t.Context(), []string{"bench", "noise", "--json", "--each", "10ms"}, streams{out: &out, err: &errs}); code != 0 {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) < 3 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, l := range lines {
		var m measurement
		if err := json.Unmarshal([]byte(l), &m); err != nil || m.Suite != "noise" || m.Name == "" || !(m.Value > 0) || math.IsInf(m.Value, 0) {
			t.Errorf("%s: %v", l, err)
		}
	}
}

// TestRelay: the lines of another process are handed on, and what it said last is why it failed.
func TestRelay(t *testing.T) {
	var got []string
	err := relay(exec.Command("sh", "-c", `echo '{"name":"a","value":2,"unit":"s"}'; echo no line; echo one >&2; echo brood: two >&2; exit 3`), func(m measurement) { got = append(got, m.text()) })
	if err == nil || err.Error() != "two" || len(got) != 1 || !strings.Contains(got[0], "2.000 s") {
		t.Errorf("%q, %v", got, err)
	}
	if err := relay(exec.Command("sh", "-c", "exit 3"), func(measurement) {}); err == nil || err.Error() != "exit status 3" {
		t.Error(err)
	}
}
