package conformance

import (
	"context"
	"fmt"
	"math"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/transport/local"
)

// alone plans a rig's first epoch on one worker. It returns the worker's toy, a function that executes rounds, and one
// that returns the state.
func (r Rig) alone(t *testing.T) (*Toy, func(to uint64) message.Done, func() map[string]engine.Host) {
	t.Helper()
	toy, err := r.toy()
	if err != nil {
		t.Fatal(err)
	}
	store := &Memory{}
	w := r.worker(0, toy, (&local.Hub{}).Link(0), store, false)
	p := event.Plan{
		Epoch:     1,
		From:      event.Fresh,
		New:       collective.Place(collective.IDs(r.Members), []int{0}),
		Algorithm: r.Algorithm,
		Timeline:  r.edits(),
	}
	ctx := context.Background()
	if reply, ok := w.Handle(ctx, message.Plan{Plan: p}).(message.Ready); !ok {
		t.Fatalf("plan: %+v", reply)
	}
	var at uint64
	step := func(to uint64) message.Done {
		t.Helper()
		d, ok := w.Handle(ctx, message.Grant{Epoch: 1, From: at, To: to, Committed: at}).(message.Done)
		if !ok {
			t.Fatalf("rounds %d to %d failed", at, to)
		}
		at = to
		return d
	}
	blocks := func() map[string]engine.Host {
		t.Helper()
		s, ok := w.Handle(ctx, message.Save{Epoch: 1, At: at}).(message.Saved)
		if !ok || s.Err != "" {
			t.Fatalf("save: %+v", s)
		}
		rows, err := store.Load(event.Checkpoint{Files: s.Files}, func(string) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	return toy, step, blocks
}

func near(t *testing.T, what string, got []float32, want []float64, tol float64) {
	t.Helper()
	for i := range want {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= tol*max(1, math.Abs(want[i]))) {
			t.Fatalf("%s: element %d is %v, the naive reference has %v", what, i, got[i], want[i])
		}
	}
}

func f64(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}

// stream draws the toy's next mini-batch of a member as the interface defines it.
func (r Rig) stream(toy *Toy, m uint32, cursor uint64, n int) []int32 {
	env := &optim.Env{Seed: r.Seed, Data: toy, Roster: collective.Place(collective.IDs(r.Members), []int{0})}
	return env.Stream(engine.Member(m), cursor, n)
}

// gradient returns the toy's gradient in float32 at one point: the loops are those of the engine, the update rules are
// those of the reference.
func gradient(t *testing.T, toy *Toy, x []float64, batch []int32) []float64 {
	t.Helper()
	n := len(x)
	m := engine.NewHost(1, n, engine.F32)
	for i := range x {
		m.F[i] = float32(x[i])
	}
	g := engine.NewHost(1, n, engine.F32)
	err := toy.Do(context.Background(), engine.Gradients{
		X:       ram.Of(m),
		Rows:    engine.Rows(1),
		Batches: [][]int32{batch},
		Masks:   make([]noise.Key, 1),
		G:       ram.Of(g),
		Loss:    make([]float32, 1),
	})
	if err != nil {
		t.Fatal(err)
	}
	return f64(g.F)
}

// nes computes buf <- mu*buf + g and returns g + mu*buf.
func nes(buf, g []float64, mu float64) []float64 {
	out := make([]float64, len(g))
	for i := range g {
		buf[i] = mu*buf[i] + g[i]
		out[i] = g[i] + mu*buf[i]
	}
	return out
}

// TestParleArxivAgainstNaive compares with the outer and inner step of the research form: y = z = x; ell times y -=
// eta_in*Nes(m, grad f(y) + (y-x)/gamma), z = alpha z + (1-alpha) y; r = mean z; x -= eta*Nes(mx, (x-z) + (x-r)/rho).
func TestParleArxivAgainstNaive(t *testing.T) {
	r := Rig{
		Algorithm: "parle",
		Members:   3,
		Seed:      5,
		Rounds:    4,
	}.With("batch", "4").With("ell", "3").With("eta", "0.3").With("eta_in", "0.1").With("gamma", "7").With("rho",
		"2").With("momentum", "0.6").With("alpha", "0.7")
	toy, step, blocks := r.alone(t)
	M := toy.Layout().Params
	x, m, mx, cursor := make([][]float64, 3), make([][]float64, 3), make([][]float64, 3), uint64(0)
	for a := range x {
		row := make([]float32, M)
		toy.Init(r.Seed)(t.Context(), 0, row)
		x[a], m[a], mx[a] = f64(row), make([]float64, M), make([]float64, M)
	}
	for round := range 4 {
		z, mean := make([][]float64, 3), make([]float64, M)
		for a := range x {
			y := append([]float64(nil), x[a]...)
			z[a] = append([]float64(nil), x[a]...)
			for l := range 3 {
				g := gradient(t, toy, y, r.stream(toy, uint32(a), cursor+uint64(4*l), 4))
				for i := range g {
					g[i] += (y[i] - x[a][i]) / 7
				}
				for i, d := range nes(m[a], g, 0.6) {
					y[i] -= 0.1 * d
					z[a][i] = 0.7*z[a][i] + 0.3*y[i]
				}
			}
			for i := range mean {
				mean[i] += z[a][i] / 3
			}
		}
		cursor += 12
		for a := range x {
			g := make([]float64, M)
			for i := range g {
				g[i] = (x[a][i] - z[a][i]) + (x[a][i]-mean[i])/2
			}
			for i, d := range nes(mx[a], g, 0.6) {
				x[a][i] -= 0.3 * d
			}
		}
		step(uint64(round + 1))
	}
	rows := blocks()
	for a := range x {
		near(t, fmt.Sprintf("x of replica %d", a), rows[fmt.Sprintf("x/%d", a)].F, x[a], 2e-4)
	}
}

// TestParlePaperAgainstNaive compares with eq. 5 of the SysML form: y -= eta*Nes(m, grad f(y) + (y-x)/gamma), z = alpha
// z + (1-alpha) y; every ell steps x = (1-tau) z + tau*xbar, xbar = mean x, tau = gamma/(rho+gamma).
func TestParlePaperAgainstNaive(t *testing.T) {
	r := Rig{
		Algorithm: "parle",
		Members:   2,
		Seed:      6,
		Rounds:    3,
	}.With("variant", "paper").With("batch", "4").With("ell", "3").With("eta", "0.1").With("gamma", "7").With("rho",
		"2").With("momentum", "0.6").With("alpha", "0.7")
	toy, step, blocks := r.alone(t)
	M := toy.Layout().Params
	row := make([]float32, M)
	toy.Init(r.Seed)(t.Context(), 0, row)
	clone := func() [][]float64 { return [][]float64{f64(row), f64(row)} }
	x, y, z, m, xbar, tau := clone(), clone(), clone(), [][]float64{make([]float64, M), make([]float64, M)},
		f64(row), 7.0/9
	for round := range 3 {
		for a := range x {
			for l := range 3 {
				g := gradient(t, toy, y[a], r.stream(toy, uint32(a), uint64(12*round+4*l), 4))
				for i := range g {
					g[i] += (y[a][i] - x[a][i]) / 7
				}
				for i, d := range nes(m[a], g, 0.6) {
					y[a][i] -= 0.1 * d
					z[a][i] = 0.7*z[a][i] + 0.3*y[a][i]
				}
			}
			for i := range x[a] {
				x[a][i] = (1-tau)*z[a][i] + tau*xbar[i]
			}
		}
		for i := range xbar {
			xbar[i] = (x[0][i] + x[1][i]) / 2
		}
		step(uint64(round + 1))
	}
	rows := blocks()
	near(t, "xbar", rows["xbar/shared"].F, xbar, 2e-4)
	near(t, "y of replica 1", rows["y/1"].F, y[1], 2e-4)
}

// TestDPSGDAgainstNaive: g = mean_a g_a; m = mu m + g; x -= eta (g + mu m), on consecutive parts of one stream.
func TestDPSGDAgainstNaive(t *testing.T) {
	r := Rig{
		Algorithm: "dp-sgd",
		Members:   3,
		Seed:      7,
		Rounds:    6,
	}.With("batch", "4").With("eta", "0.2").With("momentum", "0.5").With("decay", "0.01")
	toy, step, blocks := r.alone(t)
	M := toy.Layout().Params
	row := make([]float32, M)
	toy.Init(r.Seed)(t.Context(), 0, row)
	x, buf := f64(row), make([]float64, M)
	for round := range 6 {
		mean := make([]float64, M)
		for a := range 3 {
			g := gradient(t, toy, x, r.stream(toy, 0, uint64(12*round+4*a), 4))
			for i := range g {
				mean[i] += (g[i] + 0.01*x[i]) / 3
			}
		}
		for i, d := range nes(buf, mean, 0.5) {
			x[i] -= 0.2 * d
		}
		step(uint64(round + 1))
	}
	near(t, "x", blocks()["x/shared"].F, x, 2e-4)
}

// TestSeedEqualsChromosome: the distribution of the update does not change its bits, for any number of workers, also if
// it does not divide M. Bytes are 4P(N-1) per generation, and 4M(N-1) per row in slices.
func TestSeedEqualsChromosome(t *testing.T) {
	M := int64(base0(t).Layout().Params)
	for name, rows := range map[string]int64{"openai-es": 1, "snes": 2} {
		base := Rig{Algorithm: name, Members: 30, Seed: 4, Rounds: 10}.With("batch", "8")
		want := ""
		for _, workers := range []int{1, 2, 3, 7, 8} {
			for _, d := range []string{"seed", "chromosome"} {
				r := base.With("distribution", d)
				r.Workers = workers
				o := run(t, r)
				if want == "" {
					want = o.Hash()
				}
				if o.Hash() != want {
					t.Errorf("%s, %s on %d workers: hash %s, seed on one worker %s", name, d, workers, o.Hash(), want)
				}
				sent, _ := o.Bytes()
				P, N := int64(30), int64(workers)
				if wantBytes := 10 * 4 * P * (N - 1); sent["fitness"] != wantBytes {
					t.Errorf("%s, %s on %d workers: fitness took %d bytes, 4P(N-1) per generation is %d", name, d, workers,
						sent["fitness"], wantBytes)
				}
				if wantBytes := 10 * rows * 4 * M * (N - 1); d == "chromosome" && sent["slices"] != wantBytes {
					t.Errorf("%s, %d workers: slices took %d bytes, want %d", name, workers, sent["slices"], wantBytes)
				}
			}
		}
	}
}

// TestSemiUpdates: with one group per worker an update costs 8M(N-1) bytes over N workers, twice that of slices, and no
// fitness is sent. The result depends on the groups and not on the workers.
func TestSemiUpdates(t *testing.T) {
	M, hashes := int64(base0(t).Layout().Params), map[string]bool{}
	for _, groups := range []int64{1, 2, 4} {
		r := Rig{
			Algorithm: "openai-es",
			Members:   16,
			Seed:      4,
			Rounds:    10,
		}.With("batch", "8").With("distribution", "semi").With("groups", fmt.Sprint(groups))
		hash := ""
		for _, N := range []int64{4, 1, 3, groups} {
			r.Workers = int(N)
			o := run(t, r)
			if hash == "" {
				hash = o.Hash()
			}
			if o.Hash() != hash {
				t.Errorf("%d groups on %d workers: hash %s, on 4 workers %s", groups, N, o.Hash(), hash)
			}
			sent, _ := o.Bytes()
			if want := 10 * 8 * M * (N - 1); N == groups && (sent["gradient"] != want || sent["fitness"] != 0) {
				t.Errorf("%d groups on as many workers: %v, want only %d for the gradient", groups, sent, want)
			}
		}
		hashes[hash] = true
	}
	if len(hashes) != 3 {
		t.Error("1, 2 and 4 groups have the same hash: results are not shaped by group")
	}
}

func base0(t *testing.T) *Toy {
	toy, err := NewToy(false)
	if err != nil {
		t.Fatal(err)
	}
	return toy
}

// TestAllReduceBytes: with one member each on n workers an all-reduce costs 2(n-1)/n*4M per worker. Parle costs that
// divided by ell.
func TestAllReduceBytes(t *testing.T) {
	M := int64(base0(t).Layout().Params)
	for _, n := range []int64{2, 3, 6} {
		r := Rig{Algorithm: "dp-sgd", Members: int(n), Workers: int(n), Seed: 1, Rounds: 9}.With("batch", "2")
		sent, _ := run(t, r).Bytes()
		if want := 9 * 2 * (n - 1) * 4 * M; sent["gradient"] != want {
			t.Errorf("dp-sgd, n = %d: %d bytes, want %d", n, sent["gradient"], want)
		}
		p := Rig{Algorithm: "parle", Members: int(n), Workers: int(n), Seed: 1, Rounds: 3}.With("batch", "2").With("ell", "3")
		sent, _ = run(t, p).Bytes()
		if want := 9 * 2 * (n - 1) * 4 * M / 3; sent["couple"] != want {
			t.Errorf("parle, n = %d: %d bytes in 9 steps, want %d", n, sent["couple"], want)
		}
	}
}

// TestPopSGDContraction: without gradients E[Gamma'] = Gamma (1 - 1/(n-1)) per meeting, so (1-1/(n-1))^(n/2) per round,
// Gamma = sum ||x_i - mean||^2, for members initialised independently. Averaged over 1,000 seeds, within 4 standard
// errors.
func TestPopSGDContraction(t *testing.T) {
	const n, seeds = 8, 1000
	var sum, square float64
	for seed := range uint64(seeds) {
		r := Rig{
			Algorithm: "popsgd",
			Members:   n,
			Seed:      seed,
			Rounds:    1,
		}.With("start", "own").With("eta", "0").With("batch", "1")
		_, step, blocks := r.alone(t)
		before := gamma(blocks(), n)
		step(1)
		q := gamma(blocks(), n) / before
		sum, square = sum+q, square+q*q
	}
	mean := sum / seeds
	se := math.Sqrt((square/seeds - mean*mean) / seeds)
	law := math.Pow(1-1.0/(n-1), n/2)
	t.Logf("ratio per round %.4f ± %.4f, law %.4f; a perfect matching would give %.4f", mean, se, law,
		1-float64(n/2)/(n-1))
	if math.Abs(mean-law) > 4*se {
		t.Errorf("spread falls by %.4f ± %.4f per round, the law gives %.4f", mean, se, law)
	}
}

func gamma(rows map[string]engine.Host, n int) (g float64) {
	M := rows["x/0"].Cols
	for j := range M {
		var mean float64
		for a := range n {
			mean += float64(rows[fmt.Sprintf("x/%d", a)].F[j]) / float64(n)
		}
		for a := range n {
			d := float64(rows[fmt.Sprintf("x/%d", a)].F[j]) - mean
			g += d * d
		}
	}
	return g
}

// TestPESGDBestNeverFalls: with back-off and an elite the best fitness never falls, for every selection and crossover.
func TestPESGDBestNeverFalls(t *testing.T) {
	for _, selection := range []string{"truncation", "tournament", "roulette", "random"} {
		for _, crossover := range []string{"uniform", "tensor", "mean", "none"} {
			r := quick(Rig{
				Algorithm: "pesgd",
				Members:   6,
				Workers:   2,
				Seed:      9,
				Rounds:    60,
			}).With("selection", selection).With("crossover", crossover).With("eta", "0.5").With("mutation", "0.3").With("vary",
				"2").With("parents", "3")
			o := run(t, r)
			best, seen := math.Inf(-1), 0
			for _, rec := range o.Log.Records {
				if p := rec.Points; p != nil && p.Series == "fitness" {
					now := math.Inf(-1)
					for _, v := range p.Values {
						now = max(now, v)
					}
					if now < best {
						t.Errorf("%s, %s: best fell from %v to %v at round %d", selection, crossover, best, now, p.Round)
					}
					best = now
					seen++
				}
			}
			if seen < 5 {
				t.Errorf("%s, %s: %d evolutions", selection, crossover, seen)
			}
		}
	}
}
