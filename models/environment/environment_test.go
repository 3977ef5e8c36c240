package environment

import (
	"bufio"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// golden maps the names of testdata/golden.txt to their lines: reward, end and state.
func golden(t *testing.T) map[string][][6]float64 {
	t.Helper()
	f, err := os.Open("testdata/golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string][][6]float64{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text())
		var x [6]float64
		for i := range x {
			if x[i], err = strconv.ParseFloat(words[i+1], 64); err != nil {
				t.Fatal(err)
			}
		}
		out[words[0]] = append(out[words[0]], x)
	}
	return out
}

// TestGolden compares trajectories with the output of testdata/golden.py, which has the formulas of Gymnasium.
func TestGolden(t *testing.T) {
	fixed := func(actions ...float64) func(int, State) float64 {
		return func(i int, _ State) float64 { return actions[i%len(actions)] }
	}
	cases := []struct {
		name   string
		env    *Environment
		action func(step int, s State) float64
	}{
		{"cartpole", cartpole, fixed(1, 0, 0, 1, 1, 0, 1)},
		{"pendulum", pendulum, fixed(2, -1.5, 0.3, -2, 1)},
		{"acrobot", acrobot, fixed(0, 2, 2, 1, 0)},
		{"mountaincar", mountaincar, fixed(1, 0.5, -1, -0.7)},
		{"mountaincar-pumped", mountaincar, func(_ int, s State) float64 {
			if s[1] >= 0 {
				return 1
			}
			return -1
		}},
	}
	all := golden(t)
	if len(all) != len(cases) {
		t.Errorf("%d trajectories, want %d", len(all), len(cases))
	}
	for _, c := range cases {
		lines := all[c.name]
		p := c.env.NewEpisode()
		p.Reset(0)
		p.state = State(lines[0][2:])
		for i, want := range lines[1:] {
			before := p.Return()
			p.Step(c.action(i, p.State()))
			s := p.State()
			got := [6]float64{p.Return() - before, 0, s[0], s[1], s[2], s[3]}
			if p.Done() {
				got[1] = 1
			}
			for k := range got {
				if !(math.Abs(got[k]-want[k]) <= 1e-9) {
					t.Fatalf("%s, step %d: %v, want %v", c.name, i, got, want)
				}
			}
		}
	}
}

// Initial states are within their bounds and depend on the seed alone; an episode ends at its limit.
func TestReset(t *testing.T) {
	bounds := map[string]State{
		"cartpole":    {0.05, 0.05, 0.05, 0.05},
		"pendulum":    {math.Pi, 1, 0, 0},
		"acrobot":     {0.1, 0.1, 0.1, 0.1},
		"mountaincar": {0.1, 0, 0, 0}, // about -0.5
	}
	for _, name := range Names() {
		e, err := Named(name)
		if err != nil {
			t.Fatal(err)
		}
		p, again := e.NewEpisode(), e.NewEpisode()
		seen := map[State]bool{}
		for seed := range uint64(100) {
			p.Reset(seed)
			again.Reset(seed)
			s := p.State()
			if s != again.State() {
				t.Errorf("%s: seed %d begins at %v and at %v", name, seed, s, again.State())
			}
			seen[s] = true
			if name == "mountaincar" {
				s[0] += 0.5
			}
			for i, x := range s {
				if math.Abs(x) > bounds[name][i] {
					t.Errorf("%s: seed %d begins at %v", name, seed, s)
				}
			}
		}
		if len(seen) != 100 {
			t.Errorf("%s: %d initial states of 100 seeds", name, len(seen))
		}
		for p.Reset(1); !p.Done(); {
			p.Step(0)
		}
		if p.Steps() > e.Limit || name != "cartpole" && name != "acrobot" && p.Steps() != e.Limit {
			t.Errorf("%s: %d steps, the limit is %d", name, p.Steps(), e.Limit)
		}
	}
}

func TestAct(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		env  *Environment
		out  []float32
		want float64
	}{
		{cartpole, []float32{0, 0}, 0}, {cartpole, []float32{-1, 2}, 1}, {cartpole, []float32{nan, 1}, 0},
		{acrobot, []float32{1, 3, 3}, 1}, {pendulum, []float32{100}, 2}, {pendulum, []float32{-100}, -2},
		{mountaincar, []float32{0}, 0},
	} {
		if got := c.env.Act(c.out); got != c.want {
			t.Errorf("%s: outputs %v are the action %v, want %v", c.env.Name, c.out, got, c.want)
		}
	}
}

func TestNamedRefuses(t *testing.T) {
	_, err := Named("pong")
	if want := `env "pong": choose acrobot, cartpole, mountaincar or pendulum`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
