package evaluate

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brood/models/engine"
	"brood/runtime/checkpoint"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/modelfile"
	"brood/runtime/option"
	"brood/runtime/worker"
)

// membersOf returns the parameters of the members in the newest checkpoint, in the order of their numbers.
func membersOf(t *testing.T, dir string) (x [][]float32) {
	t.Helper()
	from, err := host.Restore(t.Context(), dir, 0, nil, 1, nil)
	if err != nil || from.Executed > 0 {
		t.Fatalf("no checkpoint of the last round: %v", err)
	}
	rows, err := (&checkpoint.Files{Dir: dir}).Load(from.Checkpoint, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	for m := range from.Checkpoint.Roster.Members {
		x = append(x, rows[fmt.Sprintf("x/%d", m)].F)
	}
	return x
}

// naiveSoup is recipe 1 of the source. It scores models one by one, like brood eval.
func naiveSoup(t *testing.T, model *Model, x [][]float32) (out []worker.Ingredient) {
	t.Helper()
	set, err := model.Load(model.Data)
	if err != nil {
		t.Fatal(err)
	}
	score := func(of []engine.Member) float64 {
		sum := make([]float64, len(x[0]))
		for _, m := range of {
			for i, v := range x[m] {
				sum[i] += float64(v) / float64(len(of))
			}
		}
		one := *model
		one.Params = make([]float32, len(sum))
		for i, v := range sum {
			one.Params[i] = float32(v)
		}
		sc, err := one.Score(context.Background(), set, validationSplit, 1)
		if err != nil {
			t.Fatal(err)
		}
		return sc.Error()
	}
	for m := range x {
		out = append(out, worker.Ingredient{Member: engine.Member(m), Alone: score([]engine.Member{engine.Member(m)})})
	}
	for i := range out { // a selection sort
		for k := i + 1; k < len(out); k++ {
			if a, b := out[i], out[k]; b.Alone < a.Alone || b.Alone == a.Alone && b.Member < a.Member {
				out[i], out[k] = b, a
			}
		}
	}
	var soup []engine.Member
	now := math.Inf(1)
	for i := range out {
		if out[i].With = score(append(slices.Clone(soup), out[i].Member)); out[i].With <= now {
			out[i].In, now, soup = true, out[i].With, append(soup, out[i].Member)
		}
	}
	return out
}

// TestBaselines: the best member, the mean and the greedy soup of independent replicas equal those of naiveSoup and
// have the requested order. The mean of all members equals the centre bit for bit.
func TestBaselines(t *testing.T) {
	dir, ctx := filepath.Join(t.TempDir(), "s"), context.Background()
	train(t, dir, prepare(t, host.Options{Model: "mlp-small", Data: fewImages, Algorithm: "wash", Members: 6, Workers: 2,
		Seed: 5, Limit: event.Limit{Rounds: 80}, By: "test",
		Set: []event.Setting{{Knob: "share", Expr: "0"}, {Knob: "batch", Expr: "16"}, {Knob: "eta", Expr: "0.05"}}}),
		nil, nil)
	asked, err := ParseOf("soup,centre,best,mean")
	if err != nil {
		t.Fatal(err)
	}
	all, err := ExportModels(ctx, nil, dir, 0, asked, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 4 {
		t.Fatalf("%d models", len(all))
	}
	for i, m := range all {
		if m.Of != asked[i] || m.Round != 80 {
			t.Errorf("model %d is %s after round %d", i, m.Of, m.Round)
		}
	}
	soup, centre, best, mean := all[0], all[1], all[2], all[3]
	x := membersOf(t, dir)
	want := naiveSoup(t, centre, x)
	if !slices.Equal(soup.Soup, want) {
		t.Errorf("the soup is\n%+v, want\n%+v", soup.Soup, want)
	}
	if in := worker.Chosen(want); !slices.Equal(soup.Members, in) || len(in) == 0 || len(in) == len(x) {
		t.Errorf("the soup has members %v, want %v, and neither none nor all", soup.Members, in)
	}
	if !slices.Equal(best.Params, x[want[0].Member]) || !slices.Equal(best.Members, []engine.Member{want[0].Member}) {
		t.Errorf("the best is %v, want %d", best.Members, want[0].Member)
	}
	if !slices.Equal(mean.Params, centre.Params) || len(mean.Members) != len(x) {
		t.Errorf("the mean of %v is not the centre", mean.Members)
	}
	far := 0.0
	for i := range soup.Params {
		sum := 0.0
		for _, m := range soup.Members {
			sum += float64(x[m][i])
		}
		far = max(far, math.Abs(sum/float64(len(soup.Members))-float64(soup.Params[i])))
	}
	if far > 1e-6 {
		t.Errorf("the soup is %g from the mean of its members", far)
	}
	path := filepath.Join(t.TempDir(), "soup.safetensors")
	if err := soup.Save(path); err != nil {
		t.Fatal(err)
	}
	file, err := modelfile.Open(path)
	if err != nil || !strings.HasPrefix(file.Meta[modelfile.MetaOf], "soup: members ") {
		t.Errorf("its file has %q, %v", file.Meta[modelfile.MetaOf], err)
	}
}

// TestBaselineStatistics: batch-norm statistics of a soup are rebuilt for its parameters, as those of a centre.
func TestBaselineStatistics(t *testing.T) {
	dir, ctx := filepath.Join(t.TempDir(), "s"), context.Background()
	train(t, dir, prepare(t, host.Options{Model: "lenets", Data: fewImages, Algorithm: "wash", Members: 3, Workers: 1,
		Seed: 5, Limit: event.Limit{Rounds: 3}, By: "test",
		Set: []event.Setting{{Knob: "batch", Expr: "16"}}}), nil, nil)
	all, err := ExportModels(ctx, nil, dir, 0, []Of{{}, {Name: OfMean}, {Name: OfEMA}, {Name: OfBest}}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all[1:3] { // both are the centre
		if !slices.Equal(m.Params, all[0].Params) || !slices.Equal(m.Stats, all[0].Stats) || len(m.Stats) == 0 {
			t.Errorf("%s is not the centre, with %d statistics", m.Of, len(m.Stats))
		}
	}
	if slices.Equal(all[3].Stats, all[0].Stats) {
		t.Error("one member has the centre's statistics")
	}
}

// checkAverages compares averages over the rounds of a session with sums of the exported centres of the rounds.
func checkAverages(t *testing.T, dir string, first, last uint64) {
	t.Helper()
	const decay, from = 0.7, 3
	ctx := context.Background()
	all, err := ExportModels(ctx, nil, dir, last,
		[]Of{{Name: OfEMA, Decay: decay}, {Name: OfSWA, From: first + from}, {Name: OfEMA}}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	var ema, swa []float64
	var total float64
	for round := first + 1; round <= last; round++ {
		c, err := Export(ctx, nil, dir, round, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if ema == nil {
			ema, swa = make([]float64, len(c.Params)), make([]float64, len(c.Params))
		}
		weight := math.Pow(decay, float64(last-round))
		total += weight
		for i, x := range c.Params {
			ema[i] += weight * float64(x)
			if round >= first+from {
				swa[i] += float64(x) / float64(last-first-from+1)
			}
		}
		if round == last && !slices.Equal(all[2].Params, c.Params) {
			t.Error("an average with decay 0 is not the last centre")
		}
	}
	for i := range ema {
		if a, b := float64(all[0].Params[i])-ema[i]/total, float64(all[1].Params[i])-swa[i]; math.Abs(a) > 1e-6 ||
			math.Abs(b) > 1e-6 {
			t.Fatalf("parameter %d of %s is %g off, of %s %g", i, all[0].Of, a, all[1].Of, b)
		}
	}
	if all[0].Rounds != last-first || all[1].Rounds != last-first-from+1 {
		t.Errorf("%s is of %d rounds, %s of %d", all[0].Of, all[0].Rounds, all[1].Of, all[1].Rounds)
	}
}

// TestAverages: averages over all rounds of a session, up to a round within a commit, and over the rounds of a branch.
func TestAverages(t *testing.T) {
	home, ctx := t.TempDir(), context.Background()
	dir := filepath.Join(home, "s")
	train(t, dir, prepare(t, tiny(12)), nil, nil)
	checkAverages(t, dir, 0, 12)
	checkAverages(t, dir, 0, 9)
	branch := filepath.Join(home, "branch")
	from, err := host.Restore(ctx, dir, 5, &checkpoint.Files{Dir: branch}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := from.Fork("s", host.Options{Threads: 1, Limit: event.Limit{Rounds: 11}}); err != nil {
		t.Fatal(err)
	}
	train(t, branch, from.Job, from, nil)
	checkAverages(t, branch, 5, 11)
}

func TestParseOf(t *testing.T) {
	for _, text := range []string{"centre", "soup", "ema=0.999", "swa=400", "best,mean,soup", "ema=0,ema=0.5", "swa=1"} {
		all, err := ParseOf(text)
		var again []string
		for _, o := range all {
			again = append(again, o.String())
		}
		if err != nil || strings.Join(again, ",") != text {
			t.Errorf("%s is read as %q, %v", text, again, err)
		}
	}
	for _, text := range []string{"", "soups", "soup=1", "ema", "ema=", "ema=1", "ema=-0.1", "ema=NaN", "swa=0", "swa=-1",
		"swa", "mean,", "mean,mean", "=1"} {
		if all, err := ParseOf(text); err == nil {
			t.Errorf("%q is read as %v", text, all)
		}
	}
}

// TestBaselinesRefuse: the error for a model that does not exist names it and the session.
func TestBaselinesRefuse(t *testing.T) {
	home, ctx := t.TempDir(), context.Background()
	one := tiny(3)
	one.Algorithm, one.Set = "dp-sgd", []event.Setting{{Knob: "batch", Expr: "8"}}
	none := tiny(3)
	if err := option.Validation.Set(&none, "0"); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]host.Options{"one": one, "none": none} {
		train(t, filepath.Join(home, name), prepare(t, o), nil, nil)
	}
	for _, c := range []struct {
		session, of, want string
	}{
		{"one", "soup", "--of soup: one has one model in round 3: dp-sgd gives its members no parameters of their own"},
		{"one", "mean", "--of mean: one has one model in round 3: dp-sgd gives its members no parameters of their own"},
		{"one", "swa=4", "swa=4: the model of one is of round 3: give this round or an earlier one"},
		{"none", "best", "--of best: none held out no validation samples by which members could be chosen: --of mean takes all of them"},
	} {
		of, err := ParseOf(c.of)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ExportModels(ctx, nil, filepath.Join(home, c.session), 0, of, 1, nil); err == nil ||
			err.Error() != c.want {
			t.Errorf("%s of %s: %v, want %s", c.of, c.session, err, c.want)
		}
	}
	for session, of := range map[string][]Of{"one": {{Name: OfSWA, From: 4}, {Name: OfEMA}},
		"none": {{Name: OfEMA}, {Name: OfBest}}} {
		if _, err := ExportModels(ctx, nil, filepath.Join(home, session), 0, of, 1, func(c event.Commit) {
			t.Errorf("%v of %s: round %d was recomputed before the error", of, session, c.To)
		}); err == nil {
			t.Errorf("%v of %s is accepted", of, session)
		}
	}
	if _, err := ExportModels(ctx, nil, filepath.Join(home, "none"), 0, []Of{{Name: OfMean}, {Name: OfEMA, Decay: 0.5}}, 1,
		nil); err != nil {
		t.Errorf("without validation samples: %v", err)
	}
}
