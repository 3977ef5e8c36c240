package cli

import (
	"math"
	"strings"
	"testing"

	"brood/presets"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/scaling"
	"brood/runtime/simulate"
)

// TestFit: from the rounds of two and four workers whose frames cost more, wait longer and fill their links for longer
// than those of one process, the rounds of eight are foretold.
func TestFit(t *testing.T) {
	line := func(seconds float64) *simulate.Line {
		return &simulate.Line{Bytes: []float64{1, 1e6}, Seconds: []float64{1e-3, seconds}, Processor: []float64{1e-4, .02}}
	}
	truth := machines{plan: presets.Scaling{Slow: 8, Rounds: 8}, scale: 8, prices: host.Prices{Gradient: 2e-4, Term: 1e-5, Digest: 1e-5},
		links:  map[string]simulate.Link{"": {Line: line(.03)}, "100Mbit": {Rate: 12.5e6, Line: line(.1)}},
		fitted: fitted{dear: .5, crowded: -.3, stretched: .4}}
	var few, held []measuredRun
	for _, link := range []string{"", "100Mbit"} {
		for _, n := range []int{2, 4, 8} {
			j, err := host.Prepare(host.Options{Algorithm: "dp-sgd", Model: "mlp-small", Data: "glyphs", Members: n, Workers: n, Wait: n, Seed: 1, Threads: 1, Unattended: true, Evaluate: event.NoTest, Probe: never})
			if err != nil {
				t.Fatal(err)
			}
			r := measuredRun{Run: presets.Run{Curve: presets.Curve{Name: "dp-sgd"}, Link: link, Workers: n, Members: n}, job: j}
			x, err := truth.simulate(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if r.was.Round = x.Round; n <= most {
				few = append(few, r)
			} else {
				held = append(held, r)
			}
		}
	}
	m := truth
	m.fitted = fitted{}
	worst := func() (off float64) {
		for _, r := range held {
			x, err := m.simulate(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			off = max(off, math.Abs(x.Error()))
		}
		return off
	}
	before := worst()
	if err := m.fit(t.Context(), few); err != nil {
		t.Fatal(err)
	}
	after := worst()
	t.Logf("off by %.3g without what small fleets say, and by %.3g with it: %.3v", before, after, m.fitted)
	if after > .03 || before < 3*after {
		t.Errorf("off by %.3g, and by %.3g without what small fleets say: want at most 0.03, and a third", after, before)
	}
	if m.fitted[noisy] != 0 {
		t.Errorf("no noise is added up, but its cost was fitted: %v", m.fitted)
	}
}

// TestForetellable: a plan of which nothing can be foretold is refused before anything runs.
func TestForetellable(t *testing.T) {
	for _, c := range []struct {
		plan presets.Scaling
		want string
	}{
		{presets.Scaling{Name: "p", Workers: []int{1, 2, 8}, Target: "loss=1"}, "has a target"},
		{presets.Scaling{Name: "p", Workers: []int{2, 8}}, "a single worker"},
		{presets.Scaling{Name: "p", Workers: []int{1, 2, 4}}, "and foretells more"},
		{presets.Scaling{Name: "p", Workers: []int{1, 8}}, "and by 2 to 4"},
		{presets.Scaling{Name: "p", Workers: []int{1, 2, 8}}, ""},
	} {
		err := foretellable(c.plan)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.plan, err, c.want)
		}
	}
	if got := scaling.Sum(nil); !strings.Contains(got, "nothing was measured") {
		t.Error(got)
	}
}
