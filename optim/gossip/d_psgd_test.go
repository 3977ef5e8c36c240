package gossip

import (
	"math"
	"slices"
	"testing"

	"brood/optim"
	"brood/optim/optimtest"
)

// mixing returns W of a graph, written out by hand from the sources: row i has the weight of each member for i.
func mixing(graph string, n, round int) [][]float64 {
	w := make([][]float64, n)
	for i := range w {
		near := map[int]bool{i: true}
		add := func(j int) { near[(j+n)%n] = true }
		switch graph {
		case "ring":
			add(i - 1)
			add(i + 1)
		case "torus": // of 12 members in 3 x 4, or 6 in 2 x 3, or a ring of a prime number
			cols := map[int]int{12: 4, 6: 3, 5: 5, 2: 2}[n]
			row, col := i/cols, i%cols
			add(row*cols + (col+1)%cols)
			add(row*cols + (col+cols-1)%cols)
			add(i + cols)
			add(i - cols)
		case "exponential":
			for hop := 1; hop < n; hop *= 2 {
				add(i - hop)
			}
		case "one-peer":
			add(i - 1<<(round%int(math.Ceil(math.Log2(float64(n))))))
		}
		w[i] = make([]float64, n)
		for j := range near {
			w[i][j] = 1 / float64(len(near))
		}
	}
	return w
}

// TestDPSGD compares with algorithm 1, computed naively in float64 with a matrix W that is doubly stochastic.
func TestDPSGD(t *testing.T) {
	for _, graph := range []string{"ring", "torus", "exponential", "one-peer"} {
		for _, n := range []int{2, 5, 6, 12} {
			p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, DPSGD, n, optimtest.Set{"graph": graph,
				"eta": 0.05, "momentum": 0.6, "decay": 0.01, "batch": 3})
			x, m := optimtest.StartRows(optimtest.Cols, n)
			next := p.Streams()
			const rounds = 7
			for round := range rounds {
				w, was := mixing(graph, n, round), make([][]float64, n)
				for i := range x {
					was[i] = slices.Clone(x[i])
				}
				for i := range x {
					g, sent, received := p.Bowl.Gradient(was[i], next(i)), 0.0, 0.0
					for j := range n {
						sent, received = sent+w[j][i], received+w[i][j]
					}
					if math.Abs(sent-1) > 1e-12 || math.Abs(received-1) > 1e-12 {
						t.Fatalf("%s of %d: row %d of W sums to %g, column to %g", graph, n, i, received, sent)
					}
					for j := range g {
						g[j] += 0.01 * was[i][j]
						x[i][j] = 0
						for from := range n {
							x[i][j] += w[i][from] * was[from][j]
						}
					}
					optimtest.Nesterov(x[i], m[i], g, 0.05, 0.6)
				}
			}
			p.Rounds(rounds)
			p.Same(optim.BlockX, x...)
			p.Same(optim.BlockM, m...)
		}
	}
}

// Without gradients, the one-peer graph of 2^k members averages exactly in k rounds (Ying et al.), and the
// distance to the mean shrinks on the others by the second eigenvalue of W or more each round.
func TestDPSGDConsensus(t *testing.T) {
	const n = 16
	for graph, want := range map[string]float64{ // the largest modulus of the other eigenvalues of W
		"ring":        (1 + 2*math.Cos(2*math.Pi/n)) / 3,
		"torus":       (1 + 2*math.Cos(2*math.Pi/4) + 2) / 5,
		"exponential": 3.0 / 5, // 1 - 2/(log2(n) + 1)
		"one-peer":    1,
	} {
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, DPSGD, n,
			optimtest.Set{"graph": graph, "eta": 0, "batch": 1})
		scatter(p)
		mean := p.CentreOf()
		distance := func() (sum float64) {
			for m := range n {
				for j, v := range p.RowOf(optim.BlockX, m) {
					sum += (v - mean[j]) * (v - mean[j])
				}
			}
			return math.Sqrt(sum)
		}
		start, before := distance(), 0.0
		for range 4 {
			before = distance()
			p.Rounds(1)
			if now := distance(); now > want*before+1e-5 {
				t.Errorf("%s: a round leaves %.3f of the distance to the mean, at most %.3f are expected", graph, now/before, want)
			}
		}
		if left := distance() / start; graph == "one-peer" && left > 1e-5 {
			t.Errorf("one-peer: four rounds of sixteen members leave %g of the distance to the mean", left)
		}
		if far := optimtest.Distance(p.CentreOf(), mean); far > 1e-5 {
			t.Errorf("%s: the mean moved by %g", graph, far)
		}
	}
}
