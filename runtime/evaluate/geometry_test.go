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
	"brood/models/longtest"
	"brood/optim"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/geometry"
	"brood/runtime/host"
)

// TestGeometry: lengths, distances and overlaps equal those of the rows of the checkpoint in float64. The ends of the
// line have the losses that probes recorded for their members, and its middle the loss of the model between them.
func TestGeometry(t *testing.T) {
	for _, model := range []string{"mlp-small", "lenets"} { // the second has batch-norm
		t.Run(model, func(t *testing.T) { measuresGeometry(t, model) })
	}
}

func measuresGeometry(t *testing.T, model string) {
	dir, ctx := filepath.Join(t.TempDir(), "s"), context.Background()
	j := prepare(t, host.Options{Model: model, Data: fewImages, Algorithm: "parle", Members: 4, Workers: 2, Seed: 5,
		Limit: event.Limit{Rounds: 4}, By: "test", Probe: 2,
		Set: []event.Setting{{Knob: "batch", Expr: "32"}, {Knob: "ell", Expr: "2"}}})
	fitness := map[engine.Member]float64{}
	train(t, dir, j, nil, func(_ *host.Run, r event.Record) {
		if r.Points != nil && r.Points.Series == event.SeriesFitness && r.Points.Round == 4 {
			for i, m := range r.Points.Members {
				fitness[m] = r.Points.Values[i]
			}
		}
	})
	g, err := MeasureGeometry(ctx, nil, dir, geometry.Wanted{Points: 3, Threads: 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if g.Round != 4 || g.Population != 4 || g.Algorithm != "parle" || len(g.Members) != 4 || len(g.Line) != 3 {
		t.Fatalf("round %d of %s, %d of %d members, %d points", g.Round, g.Algorithm, len(g.Members), g.Population,
			len(g.Line))
	}
	rows := membersOf(t, dir)
	x := func(m engine.Member) []float32 { return rows[m] }
	centre, err := Export(ctx, nil, dir, 0, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	var far float64
	var pair [2]engine.Member
	for i, a := range g.Members {
		near(t, "length", g.Length[i], distanceOf(x(a), nil), 1e-12)
		near(t, "spread", g.Spread[i], distanceOf(x(a), centre.Params), 1e-12)
		for k, b := range g.Members {
			d := distanceOf(x(a), x(b))
			near(t, "distance", g.Distance[i][k], d, 1e-12)
			near(t, "overlap", g.Overlap(i, k), cosine(x(a), x(b)), 1e-9)
			if d > far {
				far, pair = d, [2]engine.Member{a, b}
			}
		}
	}
	if g.From != pair[0] || g.To != pair[1] {
		t.Errorf("the line goes from %d to %d, furthest apart are %v", g.From, g.To, pair)
	}
	if model == "mlp-small" { // probes evaluate members with batch-norm with the members' own statistics
		near(t, "loss of the first", g.Line[0].Mean(), -fitness[g.From], 1e-6)
		near(t, "loss of the second", g.Line[2].Mean(), -fitness[g.To], 1e-6)
	}
	middle := make([]float32, len(x(g.From)))
	for i := range middle {
		middle[i] = 0.5*x(g.From)[i] + 0.5*x(g.To)[i]
	}
	want, at := g.Barrier()
	straight := (g.Line[0].Mean() + g.Line[2].Mean()) / 2
	near(t, "barrier", want, max(0, g.Line[1].Mean()-straight), 1e-12)
	if want > 0 && at != 0.5 {
		t.Errorf("the barrier is at %v", at)
	}
	near(t, "loss of the middle", g.Line[1].Mean(), naiveLoss(t, j, middle), 1e-6)

	back, err := MeasureGeometry(ctx, nil, dir, geometry.Wanted{At: 3, Pair: true, From: 2, To: 0}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if back.Round != 3 || back.From != 2 || back.To != 0 || len(back.Line) != linePoints {
		t.Errorf("round %d, from %d to %d in %d points", back.Round, back.From, back.To, len(back.Line))
	}
	for _, c := range []struct {
		want geometry.Wanted
		err  string
	}{
		{geometry.Wanted{Pair: true, From: 0, To: 4}, "there is no member 4 in round 4 of s: choose among 0 to 3"},
		{geometry.Wanted{Pair: true, From: 1, To: 1}, "member 1 is one point: name two members"},
		{geometry.Wanted{At: 5}, "round 5 is after the last committed round 4"},
	} {
		if _, err := MeasureGeometry(ctx, nil, dir, c.want, nil); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: %v, want %s", c.want, err, c.err)
		}
	}
}

// TestGeometryOfCandidates: an algorithm whose members are candidates has no replicas to compare, but an estimate of
// the gradient. Its mean cosine is nearly the optimum for as many directions: 128 of 7,850 parameters.
func TestGeometryOfCandidates(t *testing.T) {
	longtest.Need(t, longtest.Studies, "averages many generations")
	ctx, home := context.Background(), t.TempDir()
	for _, a := range []string{"openai-es", "snes", "hybrid-es"} {
		train(t, filepath.Join(home, a), prepare(t, host.Options{
			Model:     "softmax",
			Data:      "glyphs",
			Algorithm: a,
			Members:   256,
			Seed:      5,
			Limit:     event.Limit{Rounds: 2},
			By:        "test",
		}), nil, nil)
	}
	for _, a := range []string{"openai-es", "snes"} {
		g, err := MeasureGeometry(ctx, nil, filepath.Join(home, a), geometry.Wanted{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		batch, _, along, _ := g.Cosines()
		if len(g.Slopes) != generations || g.Params != 7850 || g.Samples != 4096 || g.Round != 2 || g.Population != 256 {
			t.Errorf("%s: %d generations of %d parameters, %d samples, round %d", a, len(g.Slopes), g.Params, g.Samples, g.Round)
		}
		if bound := g.Bound(); batch > 1.1*bound || batch < 0.5*bound || along > batch || along < 0.2*bound {
			t.Errorf("%s: cosines %v and %v, at most %v", a, batch, along, bound)
		}
	}
	for _, c := range []struct {
		name string
		want geometry.Wanted
		err  string
	}{
		{"hybrid-es", geometry.Wanted{}, "hybrid-es has one model in round 2: hybrid-es gives its members no parameters of their own"},
		{"openai-es", geometry.Wanted{Pair: true, To: 1}, "openai-es has one model in round 2: openai-es gives its members no parameters of their own"},
	} {
		if _, err := MeasureGeometry(ctx, nil, filepath.Join(home, c.name), c.want, nil); err == nil || err.Error() != c.err {
			t.Errorf("%v, want %s", err, c.err)
		}
	}
}

// TestGenerationsDiffer: each generation has other perturbations. Its mini-batch has all training samples, so that
// slopes for equal perturbations would be equal except for rounding.
func TestGenerationsDiffer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	o := host.Options{Model: "softmax", Data: fewImages, Algorithm: "openai-es", Members: 8, Seed: 5, By: "test"}
	o.Limit.Rounds = 1
	all := len(prepare(t, o).Samples.Train())
	o.Set = []event.Setting{{Knob: "batch", Expr: fmt.Sprint(all)}}
	train(t, dir, prepare(t, o), nil, nil)
	g, err := MeasureGeometry(context.Background(), nil, dir, geometry.Wanted{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range g.Slopes[1:] {
		if math.Abs(s.Batch-g.Slopes[0].Batch) < 1e-4 {
			t.Errorf("generations 0 and %d: %v and %v", i+1, g.Slopes[0].Batch, s.Batch)
		}
	}
}

// TestCompared: of many members some are compared, with the requested pair among them.
func TestCompared(t *testing.T) {
	all := collective.IDs(1000)
	some := compared(all, geometry.Wanted{Pair: true, From: 1, To: 999})
	if len(some) != geometryMembers+2 || some[0] != 0 || some[1] != 1 || some[len(some)-1] != 999 {
		t.Errorf("%d: %v", len(some), some)
	}
	if got := compared(all[:geometryMembers], geometry.Wanted{}); len(got) != geometryMembers {
		t.Errorf("%d of %d", len(got), geometryMembers)
	}
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within*max(1, math.Abs(want))) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// distanceOf returns the RMS distance of x from y, or from zero if y is nil.
func distanceOf(x, y []float32) float64 {
	var sum float64
	for i := range x {
		d := float64(x[i])
		if y != nil {
			d -= float64(y[i])
		}
		sum += d * d
	}
	return math.Sqrt(sum / float64(len(x)))
}

func cosine(x, y []float32) float64 {
	var xy, xx, yy float64
	for i := range x {
		a, b := float64(x[i]), float64(y[i])
		xy, xx, yy = xy+a*b, xx+a*a, yy+b*b
	}
	return xy / math.Sqrt(xx*yy)
}

// naiveLoss returns the mean loss of parameters on the first 500 validation samples, computed by another engine;
// batch-norm uses statistics of whole batches of 128 training samples.
func naiveLoss(t *testing.T, j *host.Job, params []float32) float64 {
	t.Helper()
	ctx := context.Background()
	eng, err := host.NewEngine("", "", nil, j.Net, j.Samples, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer host.Release(eng)
	x, err := engine.Upload(ctx, eng, engine.Host{Rows: 1, Cols: len(params), F: params})
	if err != nil {
		t.Fatal(err)
	}
	var stats engine.Mat
	if wide := j.Net.Layout.Stats; wide > 0 {
		if stats, err = eng.Alloc(1, wide); err != nil {
			t.Fatal(err)
		}
		few := slices.Collect(slices.Chunk(j.Samples.Train()[:3*128], 128))
		if err := eng.Do(ctx, engine.Statistics{X: x, Rows: engine.Rows(1), Batches: few, Stats: stats}); err != nil {
			t.Fatal(err)
		}
	}
	samples := j.Samples.Validation()
	sc, err := optim.Score(ctx, eng, x, engine.Rows(1), stats, samples[:min(len(samples), 500)])
	if err != nil {
		t.Fatal(err)
	}
	return sc[0].Mean()
}

// TestRefusedBeforeRecomputing: what a session cannot give is refused before a round is recomputed.
func TestRefusedBeforeRecomputing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	train(t, dir, prepare(t, host.Options{Model: "mlp-int8", Data: fewImages, Algorithm: "egg", Members: 4, Seed: 1,
		Limit: event.Limit{Rounds: 3}, By: "test"}), nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // fails the first round
	_, err := MeasureGeometry(ctx, nil, dir, geometry.Wanted{At: 2, Pair: true, From: 0, To: 7}, nil)
	if err == nil || !strings.Contains(err.Error(), "there is no member 7 in round 2 of s") {
		t.Errorf("the line to another member: %v", err)
	}
	if err := CheckONNX(nil, dir, 2); err == nil || !strings.Contains(err.Error(), "is not written as ONNX") {
		t.Errorf("ONNX of whole numbers: %v", err)
	}
}
