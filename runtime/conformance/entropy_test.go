package conformance

import (
	"fmt"
	"testing"
)

// TestEntropySGDAgainstNaive compares with the inner and the outer step, each with momentum, and the pull to x inside
// or outside of the inner momentum: y -= eta_in*Nes(m, grad f(y) + (y-x)/gamma) or eta_in*(Nes(m, grad f(y)) +
// (y-x)/gamma), z = alpha z + (1-alpha) y, m = 0 at each start; x -= eta*Nes(mx, x-z). A momentum_out below 0 means
// that of the inner step.
func TestEntropySGDAgainstNaive(t *testing.T) {
	for _, c := range []struct {
		pull, out string
		outside   bool
		mu        float64 // of the outer step
	}{
		{"inside", "-1", false, 0.6},
		{"inside", "0.3", false, 0.3},
		{"outside", "0", true, 0},
		{"outside", "-0.5", true, 0.6},
	} {
		for _, slice := range []string{"32", "2"} {
			t.Run(fmt.Sprintf("%s %s %s", c.pull, c.out, slice), func(t *testing.T) {
				r := Rig{Algorithm: "entropy-sgd", Members: 1, Seed: 5}.With("batch", "4").With("ell", "3").With("eta",
					"0.7").With("eta_in", "0.1").
					With("gamma", "7").With("momentum", "0.6").With("alpha", "0.7").With("thermal", "0").With("slice",
					slice).With("pull", c.pull).With("momentum_out", c.out)
				toy, step, blocks := r.alone(t)
				M := toy.Layout().Params
				row := make([]float32, M)
				toy.Init(r.Seed)(t.Context(), 0, row)
				x, mx, cursor := f64(row), make([]float64, M), uint64(0)
				for range 4 {
					y, z, m := append([]float64(nil), x...), append([]float64(nil), x...), make([]float64, M)
					for range 3 {
						g := gradient(t, toy, y, r.stream(toy, 0, cursor, 4))
						cursor += 4
						pull := make([]float64, M)
						for i := range g {
							if pull[i] = (y[i] - x[i]) / 7; !c.outside {
								g[i], pull[i] = g[i]+pull[i], 0
							}
						}
						for i, d := range nes(m, g, 0.6) {
							y[i] -= 0.1 * (d + pull[i])
							z[i] = 0.7*z[i] + 0.3*y[i]
						}
					}
					far := make([]float64, M)
					for i := range far {
						far[i] = x[i] - z[i]
					}
					for i, d := range nes(mx, far, c.mu) {
						x[i] -= 0.7 * d
					}
				}
				step(map[string]uint64{"32": 4, "2": 8}[slice])
				near(t, "x", blocks()["x/shared"].F, x, 2e-4)
			})
		}
	}
}
