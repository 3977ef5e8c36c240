package averaging

import (
	"math"
	"testing"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/optimtest"
)

// TestGradientNorm: a probed round reports the norm of each member's last gradient before clipping and decay. Other
// rounds measure nothing.
func TestGradientNorm(t *testing.T) {
	for _, a := range []*optim.Algorithm{LocalSGD, DPSGD} {
		k := optimtest.Set{"eta": 0, "clip": 0.01, "decay": 0.3, "batch": 4}
		if a == LocalSGD {
			k["h"] = 2
		}
		p := optimtest.NewBowl(t, optimtest.Cols, optimtest.Samples).Populate(t, a, 3, k)
		next := p.Streams()
		p.Rounds(1)
		if got := p.Looks(); len(got) > 0 {
			t.Errorf("%s: without a probe it reports %v", a.Name, got)
		}
		p.Probe(true)
		cursor := uint64(4 * 3)
		p.Rounds(1)
		got := p.Looks()
		if len(got) != 3 {
			t.Fatalf("%s: of three members it reports %v", a.Name, got)
		}
		for m, point := range got {
			x, _ := optimtest.StartRows(optimtest.Cols, 1)
			var g []float64
			if a == DPSGD {
				batch := make([]int32, 4)
				p.SharedBatch(batch, cursor+uint64(4*m))
				g = p.Bowl.Gradient(x[0], batch)
			} else {
				for range 4 { // two of them in the round before
					g = p.Bowl.Gradient(x[0], next(m))
				}
			}
			if want := optimtest.RMSDistance(g, make([]float64, optimtest.Cols)) *
				math.Sqrt(optimtest.Cols); point.Member != engine.Member(m) || point.Series != "gradient.norm" ||
				math.Abs(point.Value-want) > 1e-5*want || want < 0.1 {
				t.Errorf("%s: member %d reports %+v, want the norm %g", a.Name, m, point, want)
			}
		}
		p.Probe(false)
		if p.Rounds(1); len(p.Looks()) > 0 {
			t.Errorf("%s: an old measurement is reported again", a.Name)
		}
	}
}
