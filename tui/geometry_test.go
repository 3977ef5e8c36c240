package tui

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/evolution"
	"brood/runtime/geometry"
	"brood/runtime/testutil"
	"brood/tui/panel/trained"
)

// geometryLibrary is a shelf with a Geometer.
type geometryLibrary struct {
	*fakeLibrary
	measure func(ctx context.Context, dir string, want geometry.Wanted, progress func(uint64)) (*geometry.Geometry, error)
}

func (g *geometryLibrary) Geometry(ctx context.Context, dir string, want geometry.Wanted,
	progress func(uint64)) (*geometry.Geometry, error) {
	return g.measure(ctx, dir, want, progress)
}

// ring returns n members on a circle around a centre outside of it.
func ring(n int, want geometry.Wanted) *geometry.Geometry {
	g := &geometry.Geometry{Session: "ring", Algorithm: "parle", Round: max(want.At, 63), Population: n,
		From: want.From, To: want.To}
	at := make([][2]float64, n)
	for i := range n {
		a := 2 * math.Pi * float64(i) / float64(n)
		at[i] = [2]float64{3 + math.Cos(a), 1 + math.Sin(a)}
		g.Members, g.Length, g.Spread = append(g.Members, engine.Member(i)), append(g.Length,
			math.Hypot(at[i][0], at[i][1])), append(g.Spread, 1)
	}
	for i := range n {
		var row []float64
		for j := range n {
			row = append(row, math.Hypot(at[i][0]-at[j][0], at[i][1]-at[j][1]))
		}
		g.Distance = append(g.Distance, row)
	}
	if !want.Pair && n > 1 {
		g.From, g.To = g.Furthest()
	}
	for i := range 21 {
		t := float64(i) / 20
		g.Line = append(g.Line, optim.Scores{Loss: 500 * (0.2 + 0.1*t + t*(1-t)), Correct: 480, Samples: 500})
	}
	if n < 2 {
		g.Line = nil
	}
	return g
}

// openGeometry opens a live run at round 100 whose library measures rings of n members.
func openGeometry(t *testing.T, w, h, n int) (*desk, *[]geometry.Wanted) {
	d, s := openTraining(t, w, h, "")
	var asked []geometry.Wanted
	d.Opt.Library = &geometryLibrary{s, func(_ context.Context, dir string, want geometry.Wanted,
		_ func(uint64)) (*geometry.Geometry, error) {
		asked = append(asked, want)
		return ring(n, want), nil
	}}
	d.press("4", "w")
	return d, &asked
}

// TestGeometryOnRequest checks that a measurement starts only on request, for the newest checkpoint, the round of the
// cursor, or the line of a member.
func TestGeometryOnRequest(t *testing.T) {
	d, asked := openGeometry(t, 120, 36, 6)
	d.shows("enter measures the distances between the members")
	if len(*asked) > 0 {
		t.Fatalf("without a request %v is measured", *asked)
	}
	d.press("enter")
	d.shows("round 63", "loss on the line from m0 to m3", "barrier 0.2500 at 50 %", "m0 0.2000, m3 0.3000")
	d.press("]", "p")
	d.shows("loss on the line from m1 to m4")
	d.press("left", "enter")
	want := []geometry.Wanted{{}, {At: 63, Pair: true, From: 1, To: 4}, {At: 100}}
	if fmt.Sprint(*asked) != fmt.Sprint(want) {
		t.Errorf("asked for %v, want %v", *asked, want)
	}
	d.shows("round 100 ─")
	d.Update(keyMsg("enter"))
	ask := d.last
	d.Feed.Gen++ // as a seek does, while it is on its way
	d.deliver(ask())
	d.hides("measuring")
}

func TestGeometryScreens(t *testing.T) {
	for _, c := range []struct{ w, h, n int }{{60, 12, 6}, {200, 50, 64}, {80, 24, 256}} {
		t.Run(fmt.Sprintf("%dx%d of %d", c.w, c.h, c.n), func(t *testing.T) {
			d, _ := openGeometry(t, c.w, c.h, c.n)
			d.press("enter")
			golden(t, fmt.Sprintf("geometry-%d-%dx%d", c.n, c.w, c.h), d.screenText())
		})
	}
}

// slopes returns a measurement of candidates of one model.
func slopes(geometry.Wanted) *geometry.Geometry {
	g := &geometry.Geometry{Session: "es", Algorithm: "openai-es", Round: 63, Population: 256, Params: 50890,
		Samples: 4096}
	for i := range 4 {
		g.Slopes = append(g.Slopes, evolution.Slope{Batch: 0.04 + 0.001*float64(i), Train: 0.02 + 0.002*float64(i),
			Directions: 128})
	}
	return g
}

// estimatorProgram is a program whose members are candidates of one model.
type estimatorProgram struct{ optim.Program }

func (estimatorProgram) Estimate(context.Context, *optim.Env, optim.Values, uint64, engine.Mat) (int, error) {
	return 0, nil
}

// TestGeometryDescribesCandidates checks that the panel describes what it would measure for candidates of one model.
func TestGeometryDescribesCandidates(t *testing.T) {
	d, _ := openGeometry(t, 80, 24, 6)
	alg := *d.Alg
	alg.Program = estimatorProgram{alg.Program}
	d.Alg = &alg
	d.shows("estimate  cosine with the gradient", "enter measures how well a generation estimates the gradient")
	d.hides("the distances between", "loss between two members", "distance from the centre")
}

// TestGeometryOfCandidates checks that candidates of one model have an estimate and no line.
func TestGeometryOfCandidates(t *testing.T) {
	d, _ := openGeometry(t, 80, 24, 6)
	d.Opt.Library.(*geometryLibrary).measure = func(_ context.Context, _ string, want geometry.Wanted,
		_ func(uint64)) (*geometry.Geometry, error) {
		return slopes(want), nil
	}
	d.press("enter")
	golden(t, "geometry-candidates-80x24", d.screenText())
	d.shows("estimate  cosine with the gradient", "0.0415 ± 0.0006", "0.0230 ± 0.0013", "0.0501",
		"4 096 samples of training")
	if d.press("p"); !strings.Contains(d.Toast.Text, "no line between them") {
		t.Errorf("p says %q", d.Toast.Text)
	}
	text := trained.GeometryText(slopes(geometry.Wanted{}), 100, false)
	for _, want := range []string{"es, openai-es after round 63: 256 members\n",
		"128 independent isotropic directions among 50 890 parameters", "0.0415 ± 0.0006"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestGeometryProgressAndCancel checks the progress of a measurement and its cancelation; a failed one shows the error
// and keeps the last result.
func TestGeometryProgressAndCancel(t *testing.T) {
	d, _ := openGeometry(t, 120, 36, 6)
	lib := d.Opt.Library.(*geometryLibrary)
	reached := make(chan func(uint64))
	lib.measure = func(ctx context.Context, _ string, _ geometry.Wanted, progress func(uint64)) (*geometry.Geometry,
		error) {
		reached <- progress
		<-ctx.Done()
		return nil, ctx.Err()
	}
	d.Update(keyMsg("enter"))
	wait, end := d.last, make(chan tea.Msg, 1)
	go func() { end <- wait() }()
	progress := testutil.Receive(t, reached, "measurement")
	d.shows("measuring the distances", "esc cancels")
	progress(70)
	d.shows("recomputing round 70")
	if d.press("enter"); !strings.Contains(d.Toast.Text, "a measurement is running") {
		t.Errorf("a second one: %q", d.Toast.Text)
	}
	d.press("esc")
	d.Update(testutil.Receive(t, end, "end of the measurement"))
	d.shows("was canceled", "enter measures")

	lib.measure = func(context.Context, string, geometry.Wanted, func(uint64)) (*geometry.Geometry, error) {
		return nil, errors.New("es has one model in round 63")
	}
	d.press("enter")
	d.shows("es has one model in round 63")
	d.Opt.Library = lib.fakeLibrary
	d.press("enter")
	d.shows("run `brood geometry` where it is")
}

// TestGeometryText checks that the text has the same content as the panels, with digits that distinguish the members.
func TestGeometryText(t *testing.T) {
	g := ring(4, geometry.Wanted{})
	text := trained.GeometryText(g, 100, false)
	for _, want := range []string{"ring, parle after round 63: 4 members", " m0        1 ", ".976",
		"loss on the line from m0 to m2", "barrier 0.2500 at 50 %", "spread"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	g.Measured = true
	if text := trained.GeometryText(g, 100, true); !strings.Contains(text, "fitness on the line from m0 to m2") ||
		!strings.Contains(text, "m0 -0.2000, m2 -0.3000") {
		t.Errorf("of an objective:\n%s", text)
	}
	if text := trained.GeometryText(ring(1, geometry.Wanted{}), 100, false); !strings.Contains(text,
		"there is one member in round 63") {
		t.Errorf("of one member:\n%s", text)
	}
	near := &geometry.Geometry{Members: []engine.Member{0, 1, 2}, Length: []float64{1, 1, 1}, Population: 3,
		Distance: [][]float64{{0, 1e-3, 2e-3}, {1e-3, 0, 1e-3}, {2e-3, 1e-3, 0}}, Spread: []float64{0, 0, 0}}
	if text := trained.GeometryText(near, 100, false); !strings.Contains(text, ".9999995") ||
		!strings.Contains(text, ".9999980") {
		t.Errorf("overlaps that differ look alike:\n%s", text)
	}
}

// TestGeometryEdgeCases checks that equal members have no barrier and no direction, and that a truncated table says so.
func TestGeometryEdgeCases(t *testing.T) {
	flat := &geometry.Geometry{Line: []optim.Scores{{Samples: 1}, {Samples: 1}, {Samples: 1}}, Measured: true}
	if text := trained.BarrierText(flat); text != "no barrier;  m0 0, m0 0" {
		t.Errorf("a flat line: %q", text)
	}
	alike := slopes(geometry.Wanted{})
	for i := range alike.Slopes {
		alike.Slopes[i].Batch, alike.Slopes[i].Train = math.NaN(), math.NaN()
	}
	if text := trained.GeometryText(alike, 60, false); !strings.Contains(text, "no direction") ||
		strings.Contains(text, "each candidate has a different one") {
		t.Errorf("equal results:\n%s", text)
	}
	if text := trained.GeometryText(ring(20, geometry.Wanted{}), 100, false); !strings.Contains(text,
		"; 4 more with --json") {
		t.Errorf("twenty members:\n%s", text)
	}
	close := func(d, length float64) string {
		return trained.GeometryText(&geometry.Geometry{Members: []engine.Member{0, 1, 2},
			Length: []float64{1, 1, length}, Population: 3,
			Distance: [][]float64{{0, d, 2 * d}, {d, 0, d}, {2 * d, d, 0}}, Spread: []float64{0, 0, 0}}, 100, false)
	}
	if text := close(1e-6, 1); !strings.Contains(text, "all equal to 8 digits") || strings.ContainsAny(text, "▒▓█") {
		t.Errorf("overlaps that no figure tells apart:\n%s", text)
	}
	if text := close(0, 1); !strings.Contains(text, "all equal\n") {
		t.Errorf("equal members:\n%s", text)
	}
	if text := close(1, 0); !strings.Contains(text, "? for a member whose parameters are all zero") ||
		!strings.Contains(text, "nan") {
		t.Errorf("a member at zero:\n%s", text)
	}
}
