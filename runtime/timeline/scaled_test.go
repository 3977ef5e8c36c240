package timeline

import (
	"strings"
	"testing"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
	"brood/optim/coupled"
	"brood/runtime/event"
)

// TestScaledSchedule: *F continues the schedule from where it began, with every later value times F to the last bit,
// and the recorded expression alone says so: it is read without the edit that it scales.
func TestScaledSchedule(t *testing.T) {
	base := event.Edit{At: 40, Epochs: 1.375, Steps: 163, Algorithm: "mine", Knob: "eta"}
	for expr, want := range map[string]string{
		"linear:1..3@200":                 "linear:1..3@200,from40,x0.5",
		"cosine:0.1..0.001@7e":            "cosine:0.1..0.001@7e,from1.375e,x0.5",
		"warmup:4@50..2@300":              "warmup:4@50..2@300,from40,x0.5",
		"exp:8*0.97/round":                "exp:8*0.97/round,from40,x0.5",
		"exp:8*0.97/3rounds..0.3":         "exp:8*0.97/3rounds..0.3,from40,x0.5",
		"exp:8*0.9995/step":               "exp:8*0.9995/step,from163s,x0.5",
		"step:1,60=0.3,120=0.1":           "step:1,60=0.3,120=0.1,x0.5",
		"piecewise:0=1,200=0.1":           "piecewise:0=1,200=0.1,x0.5",
		"linear:1..3@200,x0.3":            "linear:1..3@200,from40,x0.15",
		"linear:1..3@200,from10,x0.8":     "linear:1..3@200,from10,x0.4",
		"exp:8*0.9/epoch,from0.7e,x0.001": "exp:8*0.9/epoch,from0.7e,x0.0005",
	} {
		base.Expr = expr
		tl := mustNew(t, base)
		at := Position{Round: 55, Epochs: 1.8125, Steps: 221}
		e, err := tl.Scale(edit(0, "eta", "*0.5"), at)
		if err != nil || e.Expr != want {
			t.Errorf("%s: *0.5 gives %s, %v; want %s", expr, e.Expr, err, want)
			continue
		}
		alone := mustNew(t, Begin(e, at.Round))
		for n := range uint64(300) {
			p := Position{Round: 55 + n, Epochs: 1.8125 + float64(n)/32, Steps: 221 + 4*n}
			was, got := tl.Values(p).Get("eta"), alone.Values(p).Get("eta")
			if got != was*0.5 { // halving is exact
				t.Fatalf("%s at round %d: %v, want half of %v", want, p.Round, got, was)
			}
		}
		later := Position{Round: 60, Epochs: 2, Steps: 240}
		if up, err := alone.Scale(edit(0, "eta", "/0.5"), later); err != nil {
			t.Error(err)
		} else if back := mustNew(t, Begin(up, 60)); back.Values(later).Get("eta") != tl.Values(later).Get("eta") {
			t.Errorf("%s and /0.5 is %s", want, up.Expr)
		}
	}
}

// TestScaleWithoutSchedule: without a schedule in effect *F gives a number.
func TestScaleWithoutSchedule(t *testing.T) {
	tl := mustNew(t, edit(0, "eta", "linear:1..3@20"), edit(0, "ell", "7"))
	for _, c := range []struct {
		knob, expr string
		round      uint64
		want       string
	}{
		{"eta", "*0.5", 30, "1.5"}, // the schedule has ended
		{"eta", "*0.5", 0, "linear:1..3@20,x0.5"},
		{"ell", "*0.5", 3, "4"},
		{"ell", " / 7", 3, "1"},
		{"eta", "0.3", 3, "0.3"},
	} {
		if e, err := tl.Scale(edit(0, c.knob, c.expr), Position{Round: c.round}); err != nil || e.Expr != c.want {
			t.Errorf("%s %s at round %d: %s, %v; want %s", c.knob, c.expr, c.round, e.Expr, err, c.want)
		}
	}
	none, err := mustNew(t).Scale(edit(0, "eta", "*4"), Position{Round: 3})
	if err != nil || none.Expr != "2" {
		t.Errorf("*4 of the default 0.5: %s, %v", none.Expr, err)
	}
}

// TestBadScales: each refusal names the knob and what to write.
func TestBadScales(t *testing.T) {
	tl := mustNew(t, edit(0, "eta", "exp:1*0.9/round"), edit(9, "ell", "linear:1..9@4e"))
	for _, c := range []struct{ knob, expr, want string }{
		{"eta", "*x", `eta: write * and a number, as in *0.5 or /2, not "x"`},
		{"eta", "/0", "write / and a number"},
		{"eta", "*-1", "eta follows a schedule: scale it by a factor above 0, not by -1"},
		{"variant", "*2", "variant is a choice: give one of paper, arxiv"},
		{"ell", "*2", "ell: its schedule has just begun: scale it after round 10"},
	} {
		if _, err := tl.Scale(edit(0, c.knob, c.expr), Position{Round: 12}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.knob, c.expr, err, c.want)
		}
	}
	if _, err := tl.Scale(edit(0, "ell", "*2"), Position{}); err == nil || !strings.Contains(err.Error(),
		`ell: "*2" scales a value that is set: give a value, or a schedule with a factor, such as linear:0.1..0.01@200,x0.5`) {
		t.Errorf("*2 in a new run that does not set the knob: %v", err)
	}
	for text, want := range map[string]string{
		"linear:1..3@20,x0":            "with a factor above 0",
		"linear:1..3@20,x-2":           "with a factor above 0",
		"linear:1..3@20,xfast":         "with a factor above 0",
		"linear:1..3@20,from1e":        "in the unit of its other positions",
		"linear:1..3@20,from+3":        "without +",
		"warmup:1@2e..3@20e,from4":     "in the unit of its other positions",
		"step:1,20=3,from4":            "values of step do not depend on where it began: leave ,from4 out",
		"linear:1..9@20,x2":            "eta = 18 is out of bounds",
		"linear:1..3@20,x0.5,from3":    "with a factor above 0",
		"linear:1..3@20,x0.5,x0.5":     "write linear",
		"linear:1..3@20,from10,from11": "write linear",
		"0.1,x2":                       "is not a number",
		"linear:1..3@20,x":             "write linear",
		"linear:1..3@20,from":          "write linear",
		"*0.5":                         "is not a number",
	} {
		if _, err := Parse(eta, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestTypedIsKept: the log has a schedule in its units, and beside it as it was typed, also after it was scaled, ended
// and set again.
func TestTypedIsKept(t *testing.T) {
	shape := optim.Shape{Roster: collective.Place(collective.IDs(4), []int{0}), Layout: engine.Layout{Params: 10},
		Data: optim.DataSize{Train: 1000, Validation: 10}}
	var log []event.Edit
	for _, c := range []struct {
		set              string
		round            uint64
		expr, typed, say string
	}{
		{"exp:100*(1-1/(2B))/cycle", 0, "exp:100*0.9375/round", "exp:100*(1-1/(2B))/cycle", "exp:100*(1-1/(2B))/cycle"},
		{"*0.8", 30, "exp:100*0.9375/round,from0,x0.8", "exp:100*(1-1/(2B))/cycle,from0,x0.8",
			"exp:100*(1-1/(2B))/cycle x 0.8"},
		{"*0.8", 40, "exp:100*0.9375/round,from0,x0.64", "exp:100*(1-1/(2B))/cycle,from0,x0.64",
			"exp:100*(1-1/(2B))/cycle x 0.64"},
		{"/0.64", 50, "exp:100*0.9375/round,from0", "exp:100*(1-1/(2B))/cycle,from0", "exp:100*(1-1/(2B))/cycle"},
		{"7", 60, "7", "", "7"},
		{"exp:100*0.9375/round,from0", 70, "exp:100*0.9375/round,from0", "exp:100*(1-1/(2B))/cycle,from0",
			"exp:100*(1-1/(2B))/cycle"},
		{"linear:(10*2)..1@+9", 80, "linear:20..1@89", "linear:(10*2)..1@89", "linear:(10*2)..1@89"},
	} {
		set := []event.Edit{{Algorithm: "parle", Knob: "gamma", Expr: c.set}}
		if err := Count(coupled.Parle, log, set, shape, Position{Round: c.round}); err != nil {
			t.Fatal(err)
		}
		e := Begin(set[0], c.round)
		if e.Expr != c.expr || e.Typed != c.typed || Text(e) != c.say {
			t.Errorf("%s at %d: %q, typed %q, shown as %q", c.set, c.round, e.Expr, e.Typed, Text(e))
		}
		log = append(log, e)
	}
}

// TestContinued: set at any later round, the expression gives the values of the edit.
func TestContinued(t *testing.T) {
	for expr, want := range map[string]string{
		"7":                       "7",
		"step:1,60=2":             "step:1,60=2",
		"linear:1..3@200":         "linear:1..3@200,from40",
		"linear:1..3@200,x0.5":    "linear:1..3@200,from40,x0.5",
		"linear:1..3@200,from3":   "linear:1..3@200,from3",
		"exp:1*0.9/epoch":         "exp:1*0.9/epoch,from1.375e",
		"exp:1*0.9/step..0.3,x.5": "exp:1*0.9/step..0.3,from163s,x.5",
	} {
		if got := Continued(eta, event.Edit{At: 40, Epochs: 1.375, Steps: 163, Expr: expr}); got != want {
			t.Errorf("%s: %s, want %s", expr, got, want)
		}
	}
}

// TestChange: an edit is described with what it replaces, and one that only scales by its factor.
func TestChange(t *testing.T) {
	for _, c := range [][3]string{
		{"", "7", "7"},
		{"7", "8", "7→8"},
		{"7", "linear:1..3@9", "7→linear:1..3@9"},
		{"linear:1..3@9", "linear:1..3@9,from0,x0.8", "x 0.8"},
		{"linear:1..3@9,from0,x0.8", "linear:1..3@9,from0", "x 0.8→x 1"},
		{"linear:1..3@9,from0,x0.8", "7", "linear:1..3@9 x 0.8→7"},
	} {
		if got := Change(event.Edit{Knob: "eta", Expr: c[1]}, c[0]); got != c[2] {
			t.Errorf("%s to %s: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

// TestScaledText: factors multiply in requests and in schedules.
func TestScaledText(t *testing.T) {
	for _, c := range []struct {
		expr      string
		f         float64
		want, say string
	}{
		{"*0.8", 0.8, "*0.64", "x 0.64"},
		{"/4", 0.5, "*0.125", "x 0.125"},
		{"*0.8", 1.25, "*1", "x 1"},
		{"cosine:1..0@+9", 0.5, "cosine:1..0@+9,x0.5", "cosine:1..0@+9 x 0.5"},
		{"cosine:1..0@+9,x0.5", 2, "cosine:1..0@+9", "cosine:1..0@+9"},
	} {
		got := Scaled(c.expr, c.f)
		if got != c.want || Readable(got) != c.say || !Moves(got) || Scales(got) != (c.expr[0] < 'a') {
			t.Errorf("%s by %g: %s, shown as %q", c.expr, c.f, got, Readable(got))
		}
	}
	if Moves("0.3") || Inverse("*0.8") != "/0.8" || Inverse("/ 3") != "*3" || Readable("/3") != "/ 3" {
		t.Errorf("*0.8 is undone by %s, /3 by %s", Inverse("*0.8"), Inverse("/ 3"))
	}
}
