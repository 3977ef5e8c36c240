package graph

import (
	"context"
	"math"
	"strings"
	"testing"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/enginetest"
	"brood/models/noise"
)

// flat returns the elements of m.
func flat(m engine.Mat) []float32 { return ram.View(m).F }

func TestNewRefusesMismatch(t *testing.T) {
	set := enginetest.Toy(t, 1, 2, 3)
	for name, m := range map[string]*models.Model{
		"shape":   enginetest.Compile(t, "[1,3,2]", "flatten", "dense out=3"),
		"flat":    enginetest.Compile(t, "[5]", "dense out=3"),
		"nothing": nil,
	} {
		if _, err := New(m, set, 1); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	glyphs, err := data.Glyphs(5, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(enginetest.Compile(t, "[784]", "dense out=3"), glyphs, 1); err == nil ||
		!strings.Contains(err.Error(), "3 classes") {
		t.Errorf("too few classes: %v", err)
	}
	e, err := New(enginetest.Compile(t, "[6]", "dense out=3"), set, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(e.Kernels(), "gorgonia/gonum/") {
		t.Errorf("kernels %q", e.Kernels())
	}
}

// TestLossIsStable: logits of hundreds neither overflow nor lose the loss or the gradient.
func TestLossIsStable(t *testing.T) {
	m := enginetest.Compile(t, "[6]", "dense out=3")
	set := enginetest.Toy(t, 1, 2, 3)
	e, err := New(m, set, 1)
	if err != nil {
		t.Fatal(err)
	}
	x, g, loss := ram.New(1, m.Layout.Params), ram.New(1, m.Layout.Params), make([]float32, 1)
	bias := m.Layout.Tensors[1].Lo
	flat(x)[bias], flat(x)[bias+1] = 500, -500
	ids := set.Train()[:6]
	var wrong int
	for _, id := range ids {
		if set.Label(id) != 0 {
			wrong++
		}
	}
	want := 0.0 // class 0 costs nothing, class 1 costs 1000, class 2 costs 500
	for _, id := range ids {
		want += []float64{0, 1000, 500}[set.Label(id)] / 6
	}
	if err := e.Do(context.Background(), engine.Gradients{
		X:       x,
		Rows:    engine.Rows(1),
		Batches: [][]int32{ids},
		G:       g,
		Loss:    loss,
	}); err != nil {
		t.Fatal(err)
	}
	near(t, "loss", float64(loss[0]), want)
	near(t, "gradient of bias 0", float64(flat(g)[bias]), float64(wrong)/6)
}

// TestGradientSurvivesALeadingFirstClass: samples whose first class leads by a hundred stay finite, whatever the other
// samples of the batch.
func TestGradientSurvivesALeadingFirstClass(t *testing.T) {
	m := enginetest.Compile(t, "[6]", "dense out=3")
	set := enginetest.Toy(t, 1, 2, 3)
	e, err := New(m, set, 1)
	if err != nil {
		t.Fatal(err)
	}
	x, g, loss := ram.New(1, m.Layout.Params), ram.New(1, m.Layout.Params), make([]float32, 1)
	for i := range 6 { // class 0 sees every input multiplied by a hundred, with either sign
		flat(x)[i] = 300
	}
	if err := e.Do(context.Background(), engine.Gradients{
		X:       x,
		Rows:    engine.Rows(1),
		Batches: [][]int32{set.Train()[:8]},
		G:       g,
		Loss:    loss,
	}); err != nil {
		t.Fatal(err)
	}
	for i, v := range flat(g) {
		if v != v || math.IsInf(float64(v), 0) {
			t.Fatalf("gradient %d is %v", i, v)
		}
	}
}

// TestEvaluateInPieces: a large batch is evaluated in pieces that add up, and the number of graphs is limited.
func TestEvaluateInPieces(t *testing.T) {
	set, err := data.Glyphs(700, 0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := models.Load("softmax")
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(m, set, 1)
	if err != nil {
		t.Fatal(err)
	}
	x, ids, one := enginetest.Start(t, m), set.Train(), engine.Rows(1)
	run := func(ids []int32) (float64, int64) {
		loss, correct := make([]float64, 1), make([]int64, 1)
		if err := e.Do(context.Background(), engine.Evaluate{
			X:       x,
			Rows:    one,
			Batches: [][]int32{ids},
			Loss:    loss,
			Correct: correct,
		}); err != nil {
			t.Fatal(err)
		}
		return loss[0], correct[0]
	}
	whole, correct := run(ids)
	var sum float64
	var n int64
	for lo := 0; lo < len(ids); lo += 37 {
		l, c := run(ids[lo:min(len(ids), lo+37)])
		sum, n = sum+l, n+c
	}
	if n != correct || math.Abs(sum-whole) > 1e-4*whole {
		t.Errorf("pieces give %v and %d, the whole %v and %d", sum, n, whole, correct)
	}
	for size := 1; size <= 2*keep; size++ {
		run(ids[:size])
	}
	if len(e.workers[0].nets) > keep {
		t.Errorf("%d graphs are kept", len(e.workers[0].nets))
	}
}

// TestDropoutMasks: the same key drops the same units, another key others, and the share equals the rate.
func TestDropoutMasks(t *testing.T) {
	l := &models.Layer{Kind: models.Dropout, In: []int{50}, Out: []int{50}, Rate: 0.3}
	draw := func(round uint64) []float32 {
		v := make([]float32, 40*50)
		drop(v, 40, l, noise.Key{Seed: 1, Purpose: noise.Dropout, Round: round}, 4)
		return v
	}
	a, again, b := draw(1), draw(1), draw(2)
	zero, differ := 0, 0
	for i := range a {
		if a[i] != again[i] {
			t.Fatal("a mask is not a function of its key")
		}
		switch a[i] {
		case 0:
			zero++
		case 1 / (1 - float32(0.3)):
		default:
			t.Fatalf("mask value %v", a[i])
		}
		if a[i] != b[i] {
			differ++
		}
	}
	if zero < 500 || zero > 700 || differ < 600 {
		t.Errorf("%d of 2000 dropped, %d differ under another key", zero, differ)
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-5*max(1, math.Abs(want))) {
		t.Errorf("%s: %.8g, want %.8g", what, got, want)
	}
}
