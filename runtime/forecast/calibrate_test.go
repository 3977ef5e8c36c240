package forecast

import (
	"math"
	"strings"
	"testing"

	"brood/models/longtest"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/scaling"
	"brood/runtime/simulate"
)

// neverRound is a probe period that no run reaches.
const neverRound = 1 << 40

// TestFit: the corrections are fitted to the rounds of two and four workers, whose frames cost less when empty and more
// by their bytes than those of one process, and who compute more slowly the more they are. The rounds of eight are then
// predicted.
func TestFit(t *testing.T) {
	longtest.Need(t, longtest.Studies, "simulates 30 fleets")
	line := func(seconds float64) *simulate.Line {
		return &simulate.Line{Bytes: []float64{1, 1e6}, Seconds: []float64{1e-3, seconds}, Processor: []float64{1e-4, .02}}
	}
	truth := curveModel{
		plan: Plan{
			Slow:   8,
			Rounds: 8,
			Links:  map[string]simulate.Link{"": {Line: line(.03)}, "100Mbit": {Rate: 12.5e6, Line: line(.1)}},
		},
		scale:  8,
		prices: host.Prices{Gradient: 2e-4, Term: 1e-5, Digest: 1e-5},
		fitted: fitted{frameCost: -.4, byteCost: .5, contention: .6},
	}
	var few, held []run
	for _, link := range []string{"", "100Mbit"} {
		for _, n := range []int{2, 4, 8} {
			j, err := host.Prepare(host.Options{
				Algorithm:  "dp-sgd",
				Model:      "mlp-small",
				Data:       "glyphs",
				Members:    n,
				Workers:    n,
				Wait:       n,
				Seed:       1,
				Threads:    1,
				Unattended: true,
				Evaluate:   event.NoTest,
				Probe:      neverRound,
			})
			if err != nil {
				t.Fatal(err)
			}
			r := run{Run{Key: scaling.Key{Curve: "dp-sgd", Link: link, Workers: n, Members: n}}, j}
			x, err := truth.simulate(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if r.Measured.Round = x.Round; n <= MaxCalibrated {
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
	m.calibration = few
	if err := fit(t.Context(), []*curveModel{&m}); err != nil {
		t.Fatal(err)
	}
	after := worst()
	t.Logf("off by %.3g without what small fleets say, and by %.3g with it: %.3v", before, after, m.fitted)
	if after > .03 || before < 3*after {
		t.Errorf("off by %.3g, and by %.3g without what small fleets say: want at most 0.03, and a third", after, before)
	}
	if x := m.slowdown(8); x < 1.15 || x > 1.4 { // 8 to the power .12 is 1.28
		t.Errorf("eight compute %.3g times as long as one, want about 1.28", x)
	}
	if m.fitted[noiseCost] != 0 {
		t.Errorf("no noise is added up, but its cost was fitted: %v", m.fitted)
	}
}

// TestPredict: runs on more than four workers are predicted. A run whose workers were late is ignored, and without a
// run on one worker Predict fails.
func TestPredict(t *testing.T) {
	longtest.Need(t, longtest.Studies, "simulates 4 fleets many times over")
	line := simulate.Line{Bytes: []float64{1, 1e6}, Seconds: []float64{1e-3, .03}, Processor: []float64{1e-4, .01}}
	plan := Plan{
		Curves: []string{"SGD"},
		Rates:  []string{""},
		Links:  map[string]simulate.Link{"": {Line: &line}},
		Rounds: 40,
		Slow:   2,
	}
	var runs []Run
	for _, n := range []int{1, 2, 8} {
		runs = append(runs, Run{
			Key:   scaling.Key{Curve: "SGD", Workers: n, Members: n},
			Label: "SGD",
			Options: host.Options{
				Algorithm: "dp-sgd",
				Model:     "softmax",
				Data:      "glyphs",
				Members:   n,
				Seed:      1,
				Evaluate:  event.NoTest,
				Probe:     neverRound,
			},
			Measured: scaling.Figures{Round: .1, Low: .09, High: .12, Bytes: 7, Commits: 6},
		})
	}
	out, err := plan.Predict(t.Context(), runs)
	if err != nil {
		t.Fatal(err)
	}
	if len(out) != 1 || out[0].Workers != 8 || out[0].Measured != .1 || out[0].MeasuredBytes != 7 ||
		!(out[0].Round > 0 && out[0].Plain > 0 && out[0].Bytes > 7) {
		t.Errorf("%+v", out)
	}
	runs[2].Measured.Late = scaling.TooLate + 1
	if out, err = plan.Predict(t.Context(), runs); err != nil || len(out) != 0 {
		t.Errorf("of a run whose workers were late %+v was predicted (%v)", out, err)
	}
	runs[0].Measured.Late = scaling.TooLate + 1
	if _, err = plan.Predict(t.Context(), runs); err == nil || !strings.Contains(err.Error(), "no run on one worker") {
		t.Errorf("without a single worker: %v", err)
	}
}
