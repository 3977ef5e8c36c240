package cli

import (
	"strings"
	"testing"

	"brood/presets"
	"brood/runtime/archive"
	"brood/runtime/event"
	"brood/runtime/host"
)

// rivals returns two sides with these test errors of the seeds 1, 2, ..., which had these numbers of samples.
func rivals(samples [2]uint64, of ...[]float64) *duel {
	w := &duel{budget: "gradients"}
	for i := range w.sides {
		w.sides[i] = &side{name: []string{"a", "b"}[i], runs: map[int]judged{}}
		for k, x := range of[i] {
			t := archive.NewTally()
			t.Record(event.Record{Config: &event.Config{Data: "mnist"}})
			t.Record(event.Record{Evaluation: &event.Evaluation{TestError: x}})
			t.Sum.Samples = samples[i]
			w.sides[i].runs[k+1] = judged{tally: t}
		}
	}
	return w
}

// TestRuling: the side with the lower error is better if the differences decide, and neither if they do not, or if the
// budgets are further apart than 5 %. The first side counts as tuned by the test set.
func TestRuling(t *testing.T) {
	level, lower := []float64{2, 3, 4}, []float64{1, 2.1, 2.9} // the differences are 1, 0.9 and 1.1
	for _, c := range []struct {
		samples [2]uint64
		a, b    []float64
		want    string
	}{
		{[2]uint64{100, 100}, lower, level, "a is better"},
		{[2]uint64{100, 104}, level, lower, "b is better"},
		{[2]uint64{100, 100}, level, []float64{3, 2, 4}, "not decided: over 1000 seeds could decide it"},
		{[2]uint64{300, 100}, lower, level, "not judged: a has 3 × the gradients of b"},
		{[2]uint64{100, 100}, lower[:1], level[:1], "not decided"},
	} {
		w := rivals(c.samples, c.a, c.b)
		w.sides[0].tuned = &presets.Tuned{By: "test_error", Trials: 3}
		f, err := w.compare()
		if err != nil || f.verdict != c.want || w.metric != "test_error" {
			t.Errorf("%v beside %v: %q, %v; want %q", c.a, c.b, f.verdict, err, c.want)
		}
		if notes := strings.Join(f.notes, "; "); notes != "tuned by test_error" {
			t.Errorf("the notes are %q", notes)
		}
	}
}

// TestRulingRefused: runs on different data, and a metric that a side does not have, are rejected.
func TestRulingRefused(t *testing.T) {
	w := rivals([2]uint64{1, 1}, []float64{1, 2}, []float64{1, 2})
	w.metric = "test_bits"
	if _, err := w.compare(); err == nil || !strings.Contains(err.Error(), "a has no test_bits") {
		t.Errorf("without the metric: %v", err)
	}
	w.sides[1].runs = map[int]judged{1: {tally: archive.NewTally()}}
	if _, err := w.compare(); err == nil || !strings.Contains(err.Error(), "compare runs on the same data") {
		t.Errorf("other data: %v", err)
	}
	w.sides = [2]*side{
		{name: "a", options: &host.Options{Data: "glyphs"}},
		{name: "b", options: &host.Options{Data: "mnist"}},
	}
	if err := w.checkData(); err == nil || !strings.Contains(err.Error(), "a has the data glyphs and b has mnist") {
		t.Errorf("before training: %v", err)
	}
	if w.sides[1].options.Data = "glyphs"; w.checkData() != nil {
		t.Errorf("the same data: %v", w.checkData())
	}
}
