package timeline

import (
	"math"
	"strings"
	"testing"

	"brood/optim"
)

var eta = optim.Knob{Name: "eta", Min: 0, Max: 10, Default: 0.5}

func TestSchedules(t *testing.T) {
	r := func(n uint64) Position { return Position{Round: n} }
	e := func(x float64) Position { return Position{Round: 1000, Epochs: x} }
	s := func(n uint64) Position { return Position{Round: 1000, Steps: n} }
	for _, c := range []struct {
		text      string
		first, at Position
		want      float64
	}{
		{"0.25", r(3), r(7), 0.25},
		{" 0.25 ", r(3), r(7), 0.25},

		{"linear:1..3@20", r(0), r(0), 1},
		{"linear:1..3@20", r(0), r(5), 1.5},
		{"linear:1..3@20", r(0), r(20), 3},
		{"linear:1..3@20", r(0), r(999), 3},
		{"linear:1..3@20", r(10), r(10), 1}, // from its own first round on
		{"linear:1..3@20", r(10), r(15), 2},
		{"linear:1..3@20", r(30), r(31), 3}, // its position was past when it took effect
		{"linear:1..3@2e", e(1), e(1.5), 2},
		{"linear:1..3@2.5e", e(0), e(2.5), 3},
		{"linear:1..3@100s", s(0), s(50), 2},
		{"linear:1..3@0", r(0), r(0), 3},

		{"cosine:1..3@20", r(0), r(0), 1},
		{"cosine:1..3@20", r(0), r(10), 2},
		{"cosine:1..3@20", r(0), r(5), 3 - 2*0.5*(1+math.Cos(math.Pi/4))},
		{"cosine:1..3@20", r(0), r(20), 3},
		{"cosine:4..2@4e", e(2), e(3), 3},

		{"warmup:4@10..2@30", r(0), r(0), 0},
		{"warmup:4@10..2@30", r(0), r(5), 2},
		{"warmup:4@10..2@30", r(0), r(10), 4},
		{"warmup:4@10..2@30", r(0), r(20), 3},
		{"warmup:4@10..2@30", r(0), r(15), 2 + 2*0.5*(1+math.Cos(math.Pi/4))},
		{"warmup:4@10..2@30", r(0), r(30), 2},
		{"warmup:4@10..2@30", r(0), r(999), 2},
		{"warmup:4@10..2@30", r(5), r(5), 0}, // from its own first round on
		{"warmup:4@10..2@30", r(5), r(9), 3.2},
		{"warmup:4@10..2@30", r(20), r(20), 4}, // the peak was past when it took effect
		{"warmup:4@10..2@30", r(20), r(25), 3},
		{"warmup:4@1e..2@3e", e(0), e(2), 3},
		{"warmup:4@100s..2@300s", s(0), s(50), 2},
		{"warmup:4@0..2@20", r(0), r(0), 4},

		{"exp:8*0.5/round", r(0), r(3), 1},
		{"exp:8*0.5/round", r(2), r(3), 4},
		{"exp:8*0.5/epoch", e(1), e(2), 4},
		{"exp:8*0.5/round..3", r(0), r(1), 4},
		{"exp:8*0.5/round..3", r(0), r(2), 3},
		{"exp:8*0.5/round..3", r(0), r(900), 3},
		{"exp:1*2/round..5", r(0), r(3), 5},
		{"exp:8*0.5/step", s(10), s(12), 2},

		{"step:1,60=2,120=4", r(0), r(59), 1},
		{"step:1,60=2,120=4", r(0), r(60), 2},
		{"step:1,60=2,120=4", r(100), r(119), 2}, // positions are the run's
		{"step:1,60=2,120=4", r(0), r(120), 4},
		{"step:1,2e=2", e(0), e(1.99), 1},
		{"step:1,2e=2", e(0), e(2), 2},

		{"piecewise:0=1,10=3,20=2", r(0), r(5), 2},
		{"piecewise:0=1,10=3,20=2", r(0), r(10), 3},
		{"piecewise:0=1,10=3,20=2", r(0), r(15), 2.5},
		{"piecewise:5=1,10=3", r(0), r(2), 1},
		{"piecewise:5=1,10=3", r(0), r(12), 3},
		{"piecewise:0s=1,100s=2", s(0), s(25), 1.25},
	} {
		sched, err := Parse(eta, c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := sched.At(c.at, c.first); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s from %+v at %+v: %g, want %g", c.text, c.first, c.at, got, c.want)
		}
		if sched.String() != strings.TrimSpace(c.text) {
			t.Errorf("%q is shown as %q", c.text, sched)
		}
		if sched.Constant() != !strings.Contains(c.text, ":") {
			t.Errorf("%q: constant is %v", c.text, sched.Constant())
		}
	}
}

func TestBadSchedules(t *testing.T) {
	choice := optim.Knob{Name: "variant", Choices: []string{"paper", "arxiv"}}
	for _, c := range []struct {
		k         optim.Knob
		text, say string
	}{
		{eta, "fast", `eta = "fast" is not a number`},
		{eta, "11", "eta = 11 is out of bounds: give a value from 0 to 10"},
		{eta, "wave:1..2@3", `eta: unknown schedule "wave": use a number, linear, cosine, warmup, exp, step or piecewise`},
		{eta, "linear:1..2", "write linear:FROM..TO@POSITION"},
		{eta, "linear:1@20", "write linear:FROM..TO@POSITION"},
		{eta, "linear:1..2@-3", "write linear:FROM..TO@POSITION"},
		{eta, "linear:1..2@3x", "write linear:FROM..TO@POSITION"},
		{eta, "linear:1..2@", "write linear:FROM..TO@POSITION"},
		{eta, "linear:1..NaN@3", "write linear:FROM..TO@POSITION"},
		{eta, "cosine:1..2", "write cosine:FROM..TO@POSITION"},
		{eta, "warmup:1..2@3", "write warmup:PEAK@POSITION..LAST@POSITION"},
		{eta, "warmup:1@3..2", "write warmup:PEAK@POSITION..LAST@POSITION"},
		{eta, "warmup:1@3..2@5e", "both positions in one unit"},
		{eta, "warmup:1@30..2@30", "positions must ascend"},
		{eta, "warmup:11@3..2@30", "eta = 11 is out of bounds"},
		{eta, "exp:1*0.9", "exp:START*FACTOR/round (or /epoch, /step, /cycle, /tensor, /replica) with a factor above 0"},
		{eta, "exp:1*0.9/year", "exp:START*FACTOR/round"},
		{eta, "exp:1*0.9/round..2", "1 never reaches 2 with this factor"},
		{eta, "exp:1*2/round..0.5", "1 never reaches 0.5 with this factor"},
		{eta, "exp:1*0.9/round..", "..LAST to end at that value"},
		{eta, "exp:1*0.9/round..-1", "out of bounds"},
		{eta, "exp:1*-1/round", "with a factor above 0"},
		{eta, "step:1", "write step:0.1,60=0.02,120=0.004"},
		{eta, "step:,60=1", "write step:0.1,60=0.02,120=0.004"},
		{eta, "step:1,60", "write step:0.1,60=0.02,120=0.004"},
		{eta, "step:1,60=2,30=1", "positions must ascend"},
		{eta, "step:1,60=2,60=1", "positions must ascend"},
		{eta, "step:1,60=2,3e=1", "write step:0.1,60=0.02,120=0.004"}, // one unit a schedule
		{eta, "piecewise:", "write piecewise:0=0.1,200=0.02"},
		{eta, "piecewise:1..2@3", "write piecewise:0=0.1,200=0.02"},
		{eta, "linear:1..20@30", "eta = 20 is out of bounds"},
		{eta, "step:1,60=-2", "eta = -2 is out of bounds"},
		{eta, "piecewise:0=1,9=99", "eta = 99 is out of bounds"},
		{eta, "exp:99*0.9/round", "eta = 99 is out of bounds"},
		{choice, "linear:0..1@3", "variant is a choice and takes no schedule: give one of paper, arxiv"},
		{choice, "sysml", `variant must be one of paper, arxiv, not "sysml"`},
	} {
		if _, err := Parse(c.k, c.text); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s = %q: %v, want %q", c.k.Name, c.text, err, c.say)
		}
	}
}

// FuzzParse: every text gives an error or a schedule with finite values.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"1", "linear:1..2@3e", "exp:1*0.9/step", "step:1,2s=3", "piecewise:0=1,2=3",
		"cosine:0..1@1e308", "linear:1..2@0s", ":", "step:1,=,", "exp:0*29/step", "exp:1*(1-1/(2B))/cycle..(B)",
		"exp:1*0.9/round,from3,x0.5", "linear:1..2@3c,x(1/3)", "step:1,3r=(2-(-1e-3))"} {
		f.Add(s, uint64(7), 0.5)
		f.Add(s, uint64(229), 142.5)
	}
	f.Fuzz(func(t *testing.T, text string, round uint64, epochs float64) {
		s, err := Parse(eta, text)
		if err != nil || math.IsNaN(epochs) || math.IsInf(epochs, 0) {
			return
		}
		if x := s.At(Position{round, epochs, round}, Position{}); math.IsNaN(x) {
			t.Errorf("%q gives %g", text, x)
		}
		s.Breakpoints()
	})
}
