package cli

import (
	"math"
	"os"
	"strings"
	"testing"

	"brood/models/longtest"
	"brood/presets"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/option"
	"brood/runtime/scaling"
	"brood/runtime/simulate"
	"brood/runtime/sweep"
)

// TestFit: from the rounds of two and four workers whose frames cost less when empty, and more by their bytes, than
// those of one process, and who compute the more slowly the more they are, the rounds of eight are foretold.
func TestFit(t *testing.T) {
	longtest.Need(t, longtest.Studies, "simulates 30 fleets")
	line := func(seconds float64) *simulate.Line {
		return &simulate.Line{Bytes: []float64{1, 1e6}, Seconds: []float64{1e-3, seconds}, Processor: []float64{1e-4, .02}}
	}
	truth := curveModel{plan: presets.Scaling{Slow: 8, Rounds: 8}, scale: 8, prices: host.Prices{Gradient: 2e-4, Term: 1e-5, Digest: 1e-5},
		links:  map[string]simulate.Link{"": {Line: line(.03)}, "100Mbit": {Rate: 12.5e6, Line: line(.1)}},
		fitted: fitted{frameCost: -.4, byteCost: .5, contention: .6}}
	var few, held []measuredRun
	for _, link := range []string{"", "100Mbit"} {
		for _, n := range []int{2, 4, 8} {
			j, err := host.Prepare(host.Options{Algorithm: "dp-sgd", Model: "mlp-small", Data: "glyphs", Members: n, Workers: n, Wait: n, Seed: 1, Threads: 1, Unattended: true, Evaluate: event.NoTest, Probe: neverRound})
			if err != nil {
				t.Fatal(err)
			}
			r := measuredRun{Run: presets.Run{Curve: presets.Curve{Name: "dp-sgd"}, Link: link, Workers: n, Members: n}, job: j}
			x, err := truth.simulate(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if r.measured.Round = x.Round; n <= maxCalibrated {
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

// foretoldRows are of two runs, so that errors have both signs and one has no exact bytes.
var foretoldRows = []scaling.Foretold{
	{Key: scaling.Key{Curve: "seeds", Workers: 8, Members: 16}, Measured: .5, MeasuredBytes: 1e3, Late: 2, Round: .53, Plain: .1, Bytes: 1e3},
	{Key: scaling.Key{Curve: "CU", Link: "10Mbit", Workers: 8, Members: 8}, Measured: 4, MeasuredBytes: 5e6, Round: 3, Plain: 1, Bytes: 4e6},
}

// TestForetoldTable: a row for each run with both errors, and a line for all of them.
func TestForetoldTable(t *testing.T) {
	var out strings.Builder
	asJSON := false
	if err := (&scaleFlags{json: &asJSON}).printPredictions("tiny", foretoldRows, streams{out: &out}); err != nil {
		t.Fatal(err)
	}
	const want = `
curve  link    members  workers  measured  foretold    error  plain model    error  late
seeds               16        8    500 ms    530 ms   +6.0 %       100 ms  -80.0 %   2 %
CU     10Mbit        8        8       4 s       3 s  -25.0 %          1 s  -75.0 %   0 %

2 rounds foretold: 15.5 % off on average, 95 % of them by at most 25.0 %; the plain model: 77.5 % off on average, 95 % of them by at most 80.0 %; bytes of 1 are exact
`
	if out.String() != want {
		t.Errorf("%s\nwant %s", out.String(), want)
	}
}

// TestForetoldObjects: an object for each run, with the keys that the page of JSON names.
func TestForetoldObjects(t *testing.T) {
	var out strings.Builder
	asJSON := true
	if err := (&scaleFlags{json: &asJSON}).printPredictions("tiny", foretoldRows, streams{out: &out}); err != nil {
		t.Fatal(err)
	}
	const want = `{"curve":"seeds","error":0.06000000000000005,"event":"foretold","foretold_round_bytes":1000,"foretold_round_seconds":0.53,"late_percent":2,"link":"","members":16,"plain_error":-0.8,"plain_round_seconds":0.1,"plan":"tiny","round_bytes":1000,"round_seconds":0.5,"workers":8}
{"curve":"CU","error":-0.25,"event":"foretold","foretold_round_bytes":4000000,"foretold_round_seconds":3,"late_percent":0,"link":"10Mbit","members":8,"plain_error":-0.75,"plain_round_seconds":1,"plan":"tiny","round_bytes":5000000,"round_seconds":4,"workers":8}
`
	if out.String() != want {
		t.Errorf("%s\nwant %s", out.String(), want)
	}
	page, err := os.ReadFile("../../docs/json-events.md")
	if err != nil {
		t.Fatal(err)
	}
	for key := range foretoldRows[0].JSON("") {
		if !strings.Contains(string(page), "`"+key+"`") {
			t.Errorf("json-events.md does not name %s", key)
		}
	}
}

// TestForetoldRuns: of a plan's runs those on more than four workers are foretold, and those on fewer say how; a run
// whose workers were late is neither, and without one on a single worker nothing is.
func TestForetoldRuns(t *testing.T) {
	longtest.Need(t, longtest.Studies, "simulates 4 fleets many times over")
	plan := presets.Scaling{Name: "tiny", Workers: []int{1, 2, 8}, Slow: 2, Rounds: 40, Links: []string{""}, Each: []int{1}, Curves: []presets.Curve{{Name: "SGD"}}}
	line := simulate.Line{Bytes: []float64{1, 1e6}, Seconds: []float64{1e-3, .03}, Processor: []float64{1e-4, .01}}
	links := map[string]simulate.Link{"": {Line: &line}}
	var all []*fleetRuns
	measured := emptyResults(plan)
	for _, n := range plan.Workers {
		w := &fleetRuns{planned: plan.Runs(n)}
		w.Batch = &sweep.Batch{}
		for _, r := range w.planned {
			o := option.Options{Algorithm: "dp-sgd", Model: "softmax", Data: "glyphs", Members: r.Members, Seed: 1, Evaluate: event.NoTest, Probe: neverRound}
			w.Trials = append(w.Trials, &sweep.Trial{Label: r.Curve.Name, Options: o})
			measured.Of[keyOf(r)] = scaling.Figures{Round: .1, Low: .09, High: .12, Bytes: 7, Commits: 6}
		}
		all = append(all, w)
	}
	out, err := predictAll(t.Context(), plan, all, measured, links)
	if err != nil {
		t.Fatal(err)
	}
	if len(out) != 1 || out[0].Workers != 8 || out[0].Measured != .1 || out[0].MeasuredBytes != 7 || !(out[0].Round > 0 && out[0].Plain > 0 && out[0].Bytes > 7) {
		t.Errorf("%+v", out)
	}
	late := func(r presets.Run) {
		x := measured.Of[keyOf(r)]
		x.Late = scaling.TooLate + 1
		measured.Of[keyOf(r)] = x
	}
	late(all[2].planned[0])
	if out, err = predictAll(t.Context(), plan, all, measured, links); err != nil || len(out) != 0 {
		t.Errorf("of a run whose workers were late %+v was foretold (%v)", out, err)
	}
	late(all[0].planned[0])
	if _, err = predictAll(t.Context(), plan, all, measured, links); err == nil || !strings.Contains(err.Error(), "no run on one worker") {
		t.Errorf("without a single worker: %v", err)
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
		err := checkPredictable(c.plan)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.plan, err, c.want)
		}
	}
	if got := scaling.Sum(nil); !strings.Contains(got, "nothing was measured") {
		t.Error(got)
	}
}

// Runs that are left out are named, with what they lack.
func TestLeftOut(t *testing.T) {
	w := &fleetRuns{runs: runs{Batch: &sweep.Batch{}}}
	measured := scaling.Results{Of: map[scaling.Key]scaling.Figures{}}
	for i, f := range []scaling.Figures{{Commits: 4, Late: 5}, {Commits: 4, Late: 6}, {Commits: 2}} {
		r := presets.Run{Curve: presets.Curve{Name: string(rune('a' + i))}, Workers: 8, Members: 8}
		w.planned, w.Trials = append(w.planned, r), append(w.Trials, &sweep.Trial{Seed: 1, Label: r.Curve.Name + ", no limit, 8 members"})
		measured.Of[keyOf(r)] = f
	}
	const want = "b, no limit, 8 members on 8 workers: a worker was 6 % late, and 5 % is the most that counts\n" +
		"c, no limit, 8 members on 8 workers: 2 commits that count, and a round's time is of 3 or more"
	if got := strings.Join(leftOut([]*fleetRuns{w}, measured), "\n"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
