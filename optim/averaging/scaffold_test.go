package averaging

import (
	"slices"
	"testing"

	"brood/optim"
	"brood/optim/optimtest"
)

// TestSCAFFOLD compares with algorithm 1 and option II, computed naively in float64 as the source writes it, on members
// that have different samples.
func TestSCAFFOLD(t *testing.T) {
	for _, c := range []struct {
		n, drawn, h, slice int
		share, global      float64
		parts              string
	}{
		{5, 5, 3, 32, 1, 1, "dirichlet"},
		{5, 2, 4, 2, 0.4, 0.8, "dirichlet"},
		{4, 1, 3, 32, 0, 1.5, "shards"},
	} {
		set := optimtest.Set{"participation": c.share, "eta_g": c.global, "parts": c.parts, "concentration": 0.3, "h": c.h,
			"slice": c.slice, "eta": 0.05, "decay": 0.01, "batch": 4}
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, SCAFFOLD, c.n, set)
		xbar, mean, next := optimtest.StartRow(), make([]float64, optimtest.Cols), p.Streams()
		_, control := optimtest.StartRows(optimtest.Cols, c.n)
		const cycles = 7
		for cycle := range uint64(cycles) {
			dx, dc := make([]float64, optimtest.Cols), make([]float64, optimtest.Cols)
			for _, a := range drawnBy(p.Seed, cycle, c.n, c.drawn) {
				y := slices.Clone(xbar)
				for range c.h {
					g := p.Bowl.Gradient(y, next(a))
					for j := range y {
						y[j] -= 0.05 * (g[j] + 0.01*y[j] - control[a][j] + mean[j])
					}
				}
				for j := range y {
					after := control[a][j] - mean[j] + (xbar[j]-y[j])/(float64(c.h)*0.05)
					dx[j] += (y[j] - xbar[j]) / float64(c.drawn)
					dc[j] += (after - control[a][j]) / float64(c.drawn)
					control[a][j] = after
				}
			}
			for j := range xbar {
				xbar[j] += c.global * dx[j]
				mean[j] += float64(c.drawn) / float64(c.n) * dc[j]
			}
		}
		p.Rounds(cycles * ((c.h + c.slice - 1) / c.slice))
		p.Same(optim.BlockXBar, xbar)
		p.Same(optim.BlockX, slices.Repeat([][]float64{xbar}, c.n)...)
		p.Same(optim.BlockControl, control...)
		p.Same(optim.BlockCBar, mean)
	}
}

// With all members and one step, the control variates cancel in the mean: data-parallel SGD.
func TestSCAFFOLDOfOneStepIsDataParallel(t *testing.T) {
	b := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples)
	set := optimtest.Set{"h": 1, "parts": "disjoint", "eta": 0.05, "batch": 4}
	scaffold := b.Populate(t, SCAFFOLD, 4, set)
	parallel := b.Populate(t, LocalSGD, 4, optimtest.Merge(set, optimtest.Set{"momentum": 0}))
	scaffold.Rounds(9)
	parallel.Rounds(9)
	if far := optimtest.Distance(scaffold.CentreOf(), parallel.CentreOf()); far > 1e-5 {
		t.Errorf("the centres are %g apart", far)
	}
	if c := scaffold.RowOf(optim.BlockControl, 0); optimtest.Distance(c, scaffold.RowOf(optim.BlockControl, 1)) < 1e-3 {
		t.Error("the members have equal control variates: their data do not differ")
	}
}

// On members whose data differ, with half of them in a cycle, FedAvg moves between the minima of those that are drawn,
// and SCAFFOLD reaches the minimum of the mean loss.
func TestSCAFFOLDReachesTheMinimum(t *testing.T) {
	b := optimtest.NewBowl(t, optimtest.Cols, 4) // a sample each
	set := optimtest.Set{"participation": 0.5, "parts": "disjoint", "batch": 1, "h": 20, "eta": 0.1}
	gap := func(alg *optim.Algorithm) float64 {
		p := b.Populate(t, alg, 4, set)
		p.Rounds(200)
		return optimtest.Distance(p.CentreOf(), optimtest.Average(b.E))
	}
	fed, scaffold := gap(FedAvg), gap(SCAFFOLD)
	if fed < 0.1 || scaffold > 1e-4 {
		t.Errorf("fedavg is %g from the minimum, scaffold %g", fed, scaffold)
	}
}
