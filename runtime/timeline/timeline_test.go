package timeline

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"brood/optim"
	"brood/runtime/event"
)

var alg = &optim.Algorithm{Name: "mine", Knobs: []optim.Knob{
	eta, {Name: "ell", Min: 1, Max: 50, Default: 5, Integer: true},
	{Name: "variant", Choices: []string{"paper", "arxiv"}},
}}

func edit(at uint64, knob, expr string) event.Edit {
	return event.Edit{At: at, Algorithm: "mine", Knob: knob, Expr: expr}
}

func mustNew(t *testing.T, edits ...event.Edit) *Timeline {
	t.Helper()
	tl, err := New(alg, edits)
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

func TestValues(t *testing.T) {
	tl := mustNew(t, edit(0, "eta", "1"), edit(5, "eta", "2"), edit(5, "ell", "linear:1..10@9"),
		edit(7, "variant", "arxiv"), edit(20, "eta", "3"), edit(18, "eta", "4"))
	for _, c := range []struct {
		round             uint64
		eta, ell, variant float64
	}{
		{0, 1, 5, 0}, {4, 1, 5, 0},
		{5, 2, 1, 0}, // an edit governs from its round on
		{6, 2, 3, 0}, // 3.25 is no whole number of steps
		{7, 2, 6, 1}, // 5.5 rounds
		{9, 2, 10, 1}, {17, 2, 10, 1},
		{18, 4, 10, 1}, {20, 4, 10, 1}, {30, 4, 10, 1}, // the last in the list rules, though it names an earlier round
	} {
		want := alg.Values(map[string]float64{"eta": c.eta, "ell": c.ell, "variant": c.variant})
		if got := tl.Values(Position{Round: c.round}); !reflect.DeepEqual(got, want) {
			t.Errorf("round %d: %v, want %v", c.round, got, want)
		}
	}
	// The memory of resolved values does not outlive what it was made for.
	if got := tl.Values(Position{Round: 2}); got.Get("eta") != 1 {
		t.Errorf("back at round 2 eta is %g", got.Get("eta"))
	}
	if err := tl.Add(edit(31, "eta", "5")); err != nil {
		t.Fatal(err)
	}
	if a, b := tl.Values(Position{Round: 30}).Get("eta"), tl.Values(Position{Round: 31}).Get("eta"); a != 4 || b != 5 {
		t.Errorf("before and after another edit eta is %g and %g", a, b)
	}
}

// TestBounds: exp is clamped to the bounds of the knob, since it has no last breakpoint.
func TestBounds(t *testing.T) {
	tl := mustNew(t, edit(0, "eta", "exp:1*2/round"), edit(0, "ell", "exp:50*0.1/round"))
	v := tl.Values(Position{Round: 60})
	if v.Get("eta") != 10 || v.Get("ell") != 1 {
		t.Errorf("far on the knobs are %v", v)
	}
}

// TestForeign: edits of other algorithms are kept for a swap back, and ignored meanwhile.
func TestForeign(t *testing.T) {
	other := event.Edit{At: 3, Algorithm: "theirs", Knob: "nobody knows", Expr: "?"}
	tl := mustNew(t, edit(0, "eta", "1"), other, edit(9, "eta", "2"))
	if got := tl.Values(Position{Round: 5}); got.Get("eta") != 1 {
		t.Errorf("%v", got)
	}
	if e := tl.Edits(); len(e) != 3 || e[1] != other {
		t.Errorf("edits are %v", e)
	}
	if b := tl.Breakpoints(1); !slices.Equal(b, []uint64{9}) {
		t.Errorf("breakpoints are %v", b)
	}
}

func TestRefused(t *testing.T) {
	_, err := New(alg, []event.Edit{edit(0, "rho", "1")})
	if err == nil || !strings.Contains(err.Error(), `mine has no knob "rho": it has members and ell, eta, variant`) {
		t.Errorf("%v", err)
	}
	own := *alg
	own.NoOptimiser = "has a rule of its own"
	if _, err := New(&own, []event.Edit{edit(0, "optimiser", "adam")}); err == nil ||
		err.Error() != `mine has no knob "optimiser": it has a rule of its own` {
		t.Errorf("%v", err)
	}
	if _, err := New(alg, []event.Edit{edit(0, "eta", "99")}); err == nil {
		t.Error("a value out of bounds is admitted")
	}
	tl := mustNew(t, edit(0, "eta", "1"))
	if tl.Add(edit(1, "eta", "x")) == nil || tl.Len() != 1 {
		t.Error("a bad edit is kept")
	}
	if tl.Truncate(2) == nil {
		t.Error("two of one edit are kept")
	}
}

// TestReach: a schedule in epochs starts at the position of the run at its first round.
func TestReach(t *testing.T) {
	tl := mustNew(t, edit(10, "eta", "linear:1..3@4e"))
	tl.Reach(Position{Round: 9, Epochs: 1.9, Steps: 90})
	tl.Reach(Position{Round: 10, Epochs: 2, Steps: 100})
	tl.Reach(Position{Round: 11, Epochs: 2.1, Steps: 110})
	if e := tl.Edits()[0]; e.Epochs != 2 || e.Steps != 100 {
		t.Errorf("it remembers %+v", e)
	}
	if x := tl.Values(Position{Round: 20, Epochs: 3}).Get("eta"); x != 2 {
		t.Errorf("half-way eta is %g", x)
	}
}

func TestTruncate(t *testing.T) {
	tl := mustNew(t, edit(0, "eta", "1"), edit(5, "eta", "2"))
	if x := tl.Values(Position{Round: 6}).Get("eta"); x != 2 {
		t.Fatalf("eta is %g", x)
	}
	if err := tl.Truncate(1); err != nil {
		t.Fatal(err)
	}
	if x := tl.Values(Position{Round: 6}).Get("eta"); x != 1 || tl.Len() != 1 {
		t.Errorf("after going back eta is %g of %d edits", x, tl.Len())
	}
}

func TestBreakpoints(t *testing.T) {
	tl := mustNew(t, edit(3, "eta", "linear:1..3@20"), edit(5, "ell", "step:1,8=2,30=3"), edit(7, "eta", "cosine:1..2@4e"),
		edit(7, "ell", "2"))
	if got := tl.Breakpoints(6); !slices.Equal(got, []uint64{7, 8, 20, 30}) {
		t.Errorf("from round 6 on: %v", got)
	}
}

func TestRuling(t *testing.T) {
	tl := mustNew(t, edit(3, "eta", "1"), edit(9, "eta", "2"))
	if _, _, ok := tl.Ruling("eta", 2); ok {
		t.Error("before its round an edit rules")
	}
	if s, e, ok := tl.Ruling("eta", 9); !ok || s.String() != "2" || e.At != 9 {
		t.Errorf("at 9 rules %v of %+v", s, e)
	}
}

// TestAhead: Ahead returns the later breakpoints of schedules whose rounds are not known.
func TestAhead(t *testing.T) {
	for _, c := range []struct {
		expr string
		at   Position
		want []float64
	}{
		{"7", Position{}, nil},
		{"linear:1..9@20", Position{}, nil}, // breakpoints say it
		{"linear:1..9@4e", Position{Epochs: 2}, []float64{5, 9}},
		{"linear:1..9@4e", Position{Epochs: 5}, []float64{9, 9}},
		{"step:1,2e=7,3e=4", Position{Epochs: 2.5}, []float64{7, 4}},
		{"piecewise:0s=1,10s=7,20s=3", Position{Steps: 15}, []float64{5, 3}},
		{"exp:4*2/round", Position{Round: 1}, []float64{8, 50}},
		{"exp:4*0.5/epoch", Position{Epochs: 1}, []float64{2, 1}},
		{"exp:4*2/round..20", Position{Round: 1}, []float64{8, 20}},
	} {
		tl := mustNew(t, edit(0, "ell", c.expr))
		if got := tl.Ahead("ell", c.at); !slices.Equal(got, c.want) {
			t.Errorf("%s at %+v: %v, want %v", c.expr, c.at, got, c.want)
		}
	}
}
