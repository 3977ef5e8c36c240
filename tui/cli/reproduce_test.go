package cli

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"brood/models/engine"
	"brood/optim"
	"brood/presets"
	"brood/runtime/coordinator"
	"brood/runtime/event"
)

// tallied is a tally of a run whose numbers can be followed by hand.
func tallied() *tally {
	t := newTally()
	for _, r := range []event.Record{
		{Plan: &event.Plan{Algorithm: "parle", New: optim.Place(optim.IDs(2), []int{0})}},
		{Commit: &event.Commit{Progress: event.Progress{Rounds: 5, Steps: 10, Samples: 200}, Sent: map[optim.Op]int64{"couple": 300, "other": 100}}},
		{Points: &event.Points{Series: "loss", Members: []engine.Member{0, 1}, Values: []float64{0.1, 0.3}}},
		{Points: &event.Points{Series: "fitness", Members: []engine.Member{0, 1}, Values: []float64{-0.5, -0.7}}},
		{Points: &event.Points{Series: "centre.loss", Members: []engine.Member{engine.None}, Values: []float64{0.4}}},
		{Evaluation: &event.Evaluation{TestError: 2.5}},
	} {
		t.record(r)
	}
	t.finish(coordinator.Exit{Phase: event.Finished})
	return t
}

func TestMetrics(t *testing.T) {
	m := tallied()
	for name, want := range map[string]float64{"test_error": 2.5, "train_loss": 0.2, "bytes_per_sample": 2, "centre_loss": 0.4, "centre_advance": 0.2} {
		if x, ok := m.metric(name); !ok || math.Abs(x-want) > 1e-12 {
			t.Errorf("%s = %g, %v, want %g", name, x, ok, want)
		}
	}
	if _, ok := m.metric("bytes_per_eval"); ok {
		t.Error("bytes for each of no evaluations")
	}
	for name := range presets.Metrics {
		if x, ok := newTally().metric(name); ok && name != "samples_per_s" {
			t.Errorf("%s of nothing is %g", name, x)
		}
	}
}

// TestJudged: the table has a row for each claim, says what is missing, and is Markdown for a document.
func TestJudged(t *testing.T) {
	at := func(x float64) *float64 { return &x }
	all := map[string]*trials{
		"a": {preset: presets.Preset{Claims: []presets.Claim{{Source: "Table 1", Metric: "test_error", Published: at(0.44), AtMost: at(3), Below: "b"}, {Source: "Fig. 2", Metric: "bytes_per_eval", AtMost: at(1)}}},
			seconds: 7, metrics: map[string]presets.Sample{"test_error": {2, 2.1, 1.9}}},
		"b": {metrics: map[string]presets.Sample{"test_error": {3, 3.1, 2.9}}},
	}
	var out bytes.Buffer
	table := judged([]string{"a", "b"}, all)
	table.write(&out)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[1], "0.44") || !strings.Contains(lines[1], "0.058") || !strings.HasSuffix(lines[1], "at most 3, below b  holds") || !strings.HasSuffix(lines[2], "not measured") {
		t.Errorf("the table is\n%s", out.String())
	}
	if md := table.markdown(); strings.Count(md, "\n") != 4 || !strings.Contains(md, "---:") || !strings.Contains(md, "| holds |") {
		t.Errorf("as Markdown it is\n%s", md)
	}
	out.Reset()
	claimed(&out, "quickstart", tallied().metric)
	if text := out.String(); !strings.Contains(text, "measured 2.5 %") || !strings.Contains(text, "brood reproduce quickstart") {
		t.Errorf("a run says %q", text)
	}
}
