package averaging

import (
	"math"
	"slices"
	"testing"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
	"brood/optim/optimtest"
)

// drawnBy returns the members that participate in a cycle, ascending: the first ones of a naive shuffle.
func drawnBy(seed, cycle uint64, n, count int) (out []int) {
	key, left := noise.Key{Seed: seed, Purpose: noise.Pair, Round: cycle}, make([]int, n)
	for i := range left {
		left[i] = i
	}
	for i := range count {
		j := i + key.Below(i, n-i)
		left[i], left[j] = left[j], left[i]
	}
	return slices.Sorted(slices.Values(left[:count]))
}

// TestFedAvg compares with algorithm 1 of FedAvg and the objective of FedProx, computed naively in float64, on members
// that have different samples.
func TestFedAvg(t *testing.T) {
	for _, c := range []struct {
		n, drawn, slice int
		share, mu       float64
		weigh           string
		momentum        float64
		parts           string
	}{
		{5, 5, 32, 1, 0, "samples", 0, "dirichlet"},
		{5, 2, 32, 0.4, 0, "samples", 0, "dirichlet"},
		{5, 2, 2, 0.4, 0.7, "samples", 0, "dirichlet"},
		{4, 1, 32, 0, 0.7, "equal", 0.6, "shards"},
		{1, 1, 32, 0.3, 0, "samples", 0, "windows"},
	} {
		set := optimtest.Set{"participation": c.share, "mu": c.mu, "weigh": c.weigh, "momentum": c.momentum, "parts": c.parts,
			"concentration": 0.5, "h": 3, "slice": c.slice, "eta": 0.05, "batch": 4}
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, FedAvg, c.n, set)
		xbar, next := optimtest.StartRow(), p.Streams()
		_, m := optimtest.StartRows(optimtest.Cols, c.n)
		const cycles = 6
		for cycle := range uint64(cycles) {
			mean, samples := make([]float64, optimtest.Cols), 0.0
			for _, a := range drawnBy(p.Seed, cycle, c.n, c.drawn) {
				x := slices.Clone(xbar)
				for range 3 {
					g := p.Bowl.Gradient(x, next(a))
					for j := range g {
						g[j] += c.mu * (x[j] - xbar[j])
					}
					optimtest.Nesterov(x, m[a], g, 0.05, c.momentum)
				}
				w := float64(p.Samples(engine.Member(a)))
				if c.weigh == "equal" {
					w = 1
				}
				samples += w
				for j := range mean {
					mean[j] += w * x[j]
				}
			}
			for j := range mean {
				xbar[j] = mean[j] / samples
			}
		}
		p.Rounds(cycles * map[int]int{32: 1, 2: 2}[c.slice])
		p.Same(optim.BlockXBar, xbar)
		p.Same(optim.BlockX, slices.Repeat([][]float64{xbar}, c.n)...)
		p.Same(optim.BlockM, m...)
	}
}

// With all members and equal parts FedAvg is LocalSGD, bit for bit.
func TestFedAvgOfAllIsLocalSGD(t *testing.T) {
	b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
	set := optimtest.Set{"h": 3, "momentum": 0, "parts": "disjoint", "batch": 4}
	fed, local := b.Populate(t, FedAvg, 4, set), b.Populate(t, LocalSGD, 4, set)
	fed.Rounds(5)
	local.Rounds(5)
	if !slices.Equal(optimtest.Flat(fed.Block(optim.BlockX)), optimtest.Flat(local.Block(optim.BlockX))) {
		t.Error("the members differ")
	}
}

// TestParticipants: a draw has max(1, round(C*n)) different members, each equally often; only they train and count
// steps; and the expected bytes are the mean of those of many draws.
func TestParticipants(t *testing.T) {
	const n, draws = 10, 4000
	r := collective.Place(collective.IDs(n), []int{0, 1, 2})
	for _, c := range []struct {
		share float64
		want  int
	}{{0, 1}, {0.04, 1}, {0.25, 3}, {0.5, 5}, {1, 10}} {
		k, times := optimtest.Set{"participation": c.share}.Of(FedAvg), make([]int, n)
		for cycle := range uint64(draws) {
			in := participants(r, k, noise.Key{Seed: 3, Purpose: noise.Pair, Round: cycle})
			if err := in.Validate(); err != nil || len(in.Members) != c.want {
				t.Fatalf("participation %g draws %v, want %d members (%v)", c.share, in.Members, c.want, err)
			}
			for _, m := range in.Members {
				times[m]++
			}
		}
		mean := float64(draws*c.want) / n
		for m, got := range times {
			if sd := math.Sqrt(mean * (1 - float64(c.want)/n)); math.Abs(float64(got)-mean) > 4*sd {
				t.Errorf("participation %g draws member %d %d times, want about %.0f", c.share, m, got, mean)
			}
		}
	}
	p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, FedAvg, n,
		optimtest.Set{"participation": 0.3, "h": 2, "batch": 4})
	s := optim.Shape{Roster: r, Layout: p.Layout, K: p.Knobs}
	expected, sum := FedAvg.Bytes(s)["average"], int64(0)
	s.Drawn = true
	for cycle := range uint64(draws) {
		s.Edges = nil
		for _, m := range drawnBy(3, cycle, n, 3) {
			s.Edges = append(s.Edges, collective.Edge{From: engine.Member(m), To: engine.Member(m), Op: "average"})
		}
		sum += FedAvg.Bytes(s)["average"]
	}
	if mean := float64(sum) / draws; math.Abs(float64(expected)/mean-1) > 0.1 {
		t.Errorf("%d bytes a cycle are expected, and their mean is %.1f", expected, mean)
	}
	rep := p.Rounds(1)
	trained := 0
	for a := range n {
		trained += int(p.Record(optim.BlockCursor).U[a])
	}
	if rep.Steps != 6 || rep.Samples != 24 || trained != 24 || len(rep.Edges) != 3 || len(rep.Points) != 3 {
		t.Errorf("3 of 10 members train: %d steps, %d samples (%d drawn), %d edges, %d losses", rep.Steps,
			rep.Samples, trained, len(rep.Edges), len(rep.Points))
	}
}
