package cli

import (
	"os"
	"strings"
	"testing"

	"brood/presets"
	"brood/runtime/scaling"
	"brood/runtime/sweep"
)

// foretoldRows returns predictions of two runs: errors have both signs, and the bytes of one are not exact.
var foretoldRows = []scaling.Prediction{
	{Key: scaling.Key{Curve: "seeds", Workers: 8, Members: 16}, Measured: .5, MeasuredBytes: 1e3, Late: 2, Round: .53, Plain: .1, Bytes: 1e3},
	{Key: scaling.Key{Curve: "CU", Link: "10Mbit", Workers: 8, Members: 8}, Measured: 4, MeasuredBytes: 5e6, Round: 3, Plain: 1, Bytes: 4e6},
}

// TestPredictionTable: the table has a row for each run with both errors, and a summary line.
func TestPredictionTable(t *testing.T) {
	var out strings.Builder
	asJSON := false
	if err := (&scaleFlags{json: &asJSON}).printPredictions("tiny", foretoldRows, streams{out: &out}); err != nil {
		t.Fatal(err)
	}
	const want = `
curve  link    members  workers  measured  predicted    error  plain model    error  late
seeds               16        8    500 ms     530 ms   +6.0 %       100 ms  -80.0 %   2 %
CU     10Mbit        8        8       4 s        3 s  -25.0 %          1 s  -75.0 %   0 %

2 rounds predicted: 15.5 % off on average, 95 % of them by at most 25.0 %; the plain model: 77.5 % off on average, 95 % of them by at most 80.0 %; bytes of 1 are exact
`
	if out.String() != want {
		t.Errorf("%s\nwant %s", out.String(), want)
	}
}

// TestPredictionObjects: JSON has an object for each run, with the keys on the page of JSON events.
func TestPredictionObjects(t *testing.T) {
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

// TestCheckPredictable: a plan that cannot be predicted is rejected before anything runs.
func TestCheckPredictable(t *testing.T) {
	for _, c := range []struct {
		plan presets.Scaling
		want string
	}{
		{presets.Scaling{Name: "p", Workers: []int{1, 2, 8}, Target: "loss=1"}, "has a target"},
		{presets.Scaling{Name: "p", Workers: []int{2, 8}}, "needs fleets of 1 and of 2 to 4 workers"},
		{presets.Scaling{Name: "p", Workers: []int{1, 2, 4}}, "a larger one to predict"},
		{presets.Scaling{Name: "p", Workers: []int{1, 8}}, "plan p has fleets of [1 8]"},
		{presets.Scaling{Name: "p", Workers: []int{1, 2, 8}}, ""},
	} {
		err := checkPredictable(c.plan)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.plan, err, c.want)
		}
	}
	if got := scaling.Sum(nil); !strings.Contains(got, "no measured round can be predicted") {
		t.Error(got)
	}
}

// TestExcluded: excluded runs are named with the reason.
func TestExcluded(t *testing.T) {
	w := &fleetRuns{runs: runs{Batch: &sweep.Batch{}}}
	measured := scaling.Results{Of: map[scaling.Key]scaling.Figures{}}
	for i, f := range []scaling.Figures{{Commits: 4, Late: 5}, {Commits: 4, Late: 6}, {Commits: 2}} {
		r := presets.Run{Curve: presets.Curve{Name: string(rune('a' + i))}, Workers: 8, Members: 8}
		w.planned, w.Trials = append(w.planned, r), append(w.Trials, &sweep.Trial{Seed: 1, Label: r.Curve.Name + ", no limit, 8 members"})
		measured.Of[keyOf(r)] = f
	}
	const want = "b, no limit, 8 members on 8 workers: a worker was 6 % late, above the limit of 5 %\n" +
		"c, no limit, 8 members on 8 workers: 2 commits counted, but a round time needs 3 or more"
	if got := strings.Join(excluded([]*fleetRuns{w}, measured), "\n"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
