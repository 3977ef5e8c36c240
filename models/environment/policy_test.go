package environment

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"brood/models/noise"
)

// params returns normal parameters of a policy.
func params(p Policy, e *Environment, seed uint64) []float32 {
	n := 0
	for _, t := range p.Tensors(e) {
		size := 1
		for _, d := range t.Shape {
			size *= d
		}
		n += size
	}
	out := make([]float32, n)
	noise.Key{Seed: seed, Purpose: noise.Init}.Each(0, n, n, func(at int, eps []float32) {
		for i, x := range eps {
			out[at+i] = x / 2
		}
	})
	return out
}

// The outputs equal the outputs of a naive policy in float64.
func TestForward(t *testing.T) {
	for _, text := range []string{"linear", "mlp:1", "mlp:16", "mlp:64,64", "mlp:5,9,3"} {
		p, err := ParsePolicy(text)
		if err != nil {
			t.Fatal(err)
		}
		if p.String() != text {
			t.Errorf("%s is written as %s", text, p)
		}
		for _, e := range all {
			x := params(p, e, 3)
			in := make([]float32, len(e.Scale))
			for i := range in {
				in[i] = float32(i)/3 - 0.4
			}
			got := p.forward(x, in, make([]float32, 64), make([]float32, 64), e.Actions)
			values := make([]float64, len(in))
			for i, v := range in {
				values[i] = float64(v)
			}
			tensors, at := p.Tensors(e), 0
			for k := 0; k < len(tensors); k += 2 {
				rows, cols := tensors[k].Shape[0], tensors[k].Shape[1]
				next := make([]float64, rows)
				for r := range next {
					next[r] = float64(x[at+rows*cols+r])
					for c := range cols {
						next[r] += float64(x[at+r*cols+c]) * values[c]
					}
					if k+2 < len(tensors) {
						next[r] = math.Tanh(next[r])
					}
				}
				values, at = next, at+rows*cols+rows
			}
			if at != len(x) || len(got) != len(values) {
				t.Fatalf("%s: %d of %d parameters, %d outputs", text, at, len(x), len(got))
			}
			for i := range got {
				if math.Abs(float64(got[i])-values[i]) > 2e-5 {
					t.Errorf("%s in %s: output %d is %v, want %v", text, e.Name, i, got[i], values[i])
				}
			}
		}
	}
}

func TestTanh(t *testing.T) {
	for i := -40000; i <= 40000; i++ {
		x := float32(i) / 4000
		if y := tanh(x); math.Abs(float64(y)-math.Tanh(float64(x))) > 5e-7 || y > 1 || y < -1 {
			t.Fatalf("tanh(%v) = %v", x, y)
		}
	}
	if y := tanh(float32(math.Inf(1))); y != 1 {
		t.Errorf("tanh of infinity is %v", y)
	}
	if y := tanh(float32(math.NaN())); y == y {
		t.Errorf("tanh of NaN is %v", y)
	}
}

func TestParsePolicyRefuses(t *testing.T) {
	for _, text := range []string{"", "mlp", "mlp:", "mlp:0", "mlp:-3", "mlp:16,", "mlp:16,x", "mlp:5000", "cnn:3",
		"linear:3", "mlp:1,1,1,1,1,1,1,1,1"} {
		if _, err := ParsePolicy(text); err == nil || !strings.Contains(err.Error(), "write linear, or mlp:") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// An episode takes no memory once a player is warm, and has the result of a repetition.
func TestPlay(t *testing.T) {
	for _, e := range all {
		p := Policy{Hidden: []int{16}}
		x, l := params(p, e, 5), NewPlayer(e, p)
		total, steps := l.Play(x, 9)
		if steps < 1 || steps > e.Limit {
			t.Errorf("%s: %d steps", e.Name, steps)
		}
		if n := testing.AllocsPerRun(5, func() {
			if again, _ := l.Play(x, 9); again != total {
				t.Errorf("%s: returns %v and %v", e.Name, total, again)
			}
		}); n >= 1 {
			t.Errorf("%s: %v allocations per episode", e.Name, n)
		}
	}
}

// A recording has the result of Play, the first and the last state, and no more states than asked for.
func TestRecord(t *testing.T) {
	for _, e := range all {
		p := Policy{Hidden: []int{4}}
		x, l := params(p, e, 2), NewPlayer(e, p)
		states, total, steps := l.Record(x, 3, 30)
		wantTotal, wantSteps := l.Play(x, 3)
		first := e.NewEpisode()
		first.Reset(3)
		if total != wantTotal || steps != wantSteps || len(states) < 2 || len(states) > 31 || states[0] != first.State() {
			t.Errorf("%s: %d states of %d steps, return %v, want %d and %v", e.Name, len(states), steps, total, wantSteps,
				wantTotal)
		}
	}
}

// Returns are frozen: a change of any of them needs another version of the environment.
func TestReturnsAreFrozen(t *testing.T) {
	want := map[string][3]float64{
		"acrobot":     {-500, -500, -500},
		"cartpole":    {10, 10, 10},
		"mountaincar": {-0x1.868ed58c2e9c7p+06, 0x1.85af107d329dcp+06, -0x1.16d441618669fp+06},
		"pendulum":    {-0x1.6cf69e346c842p+10, -0x1.78c2fc1df202dp+10, -0x1.846c1059749fdp+10},
	}
	for _, e := range all {
		p := Policy{Hidden: []int{7}}
		l := NewPlayer(e, p)
		var got [3]float64
		for seed := range got {
			got[seed], _ = l.Play(params(p, e, uint64(seed)), uint64(seed))
		}
		if got != want[e.Name] {
			t.Errorf("%s: returns %x, want %x", e.Name, got, want[e.Name])
		}
	}
}

// BenchmarkEpisode plays episodes of cart-pole that last 500 steps, since their pole is held by a good policy.
func BenchmarkEpisode(b *testing.B) {
	for _, text := range []string{"linear", "mlp:16", "mlp:64,64"} {
		b.Run(text, func(b *testing.B) {
			p, err := ParsePolicy(text)
			if err != nil {
				b.Fatal(err)
			}
			l, x := NewPlayer(cartpole, p), balancing(p)
			steps := 0
			for i := 0; b.Loop(); i++ {
				_, n := l.Play(x, uint64(i))
				steps += n
			}
			b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
			b.ReportMetric(float64(steps)/float64(b.N), "steps/episode")
		})
	}
}

// balancing returns parameters that hold the pole of cart-pole: the first unit of each hidden layer passes on a small
// multiple of what a linear policy decides by.
func balancing(p Policy) []float32 {
	tensors := p.Tensors(cartpole)
	var x []float32
	for k := 0; k < len(tensors); k += 2 {
		rows, cols := tensors[k].Shape[0], tensors[k].Shape[1]
		w := make([]float32, rows*cols+rows)
		row := 0
		if k+2 == len(tensors) {
			row = 1 // to the right
		}
		if k == 0 {
			copy(w[row*cols:], []float32{0.1, 0.2, 0.8, 0.6})
		} else {
			w[row*cols] = 1
		}
		x = append(x, w...)
	}
	return x
}

func TestBalancing(t *testing.T) {
	for _, text := range []string{"linear", "mlp:16", "mlp:64,64"} {
		p, err := ParsePolicy(text)
		if err != nil {
			t.Fatal(err)
		}
		if total, steps := NewPlayer(cartpole, p).Play(balancing(p), 1); total != 500 || steps != 500 {
			t.Errorf("%s holds the pole for %d steps", text, steps)
		}
	}
}

func ExamplePlayer() {
	e, _ := Named("cartpole")
	p, _ := ParsePolicy("linear")
	total, steps := NewPlayer(e, p).Play([]float32{0, 0, 0, 0, 0.1, 0.2, 0.8, 0.6, 0, 0}, 7)
	fmt.Println(total, steps)
	// Output: 500 500
}
