package coupled

import (
	"math"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
)

// Knobs and series shared by the algorithms of local entropy, Entropy-SGD and Parle; Elastic-SGD uses the ones of rho.
var (
	knobEll = optim.Knob{
		Name:    "ell",
		Label:   "ℓ",
		Title:   "inner steps",
		Unit:    "steps",
		Doc:     "inner steps of a cycle (L in the papers)",
		Min:     1,
		Max:     10000,
		Default: 25,
		Integer: true,
		Scale:   optim.Log,
	}
	knobGamma = optim.Knob{
		Name:    "gamma",
		Label:   "γ",
		Title:   "scope",
		Unit:    "divisor",
		Doc:     "divisor of the attraction of y to x: larger is looser",
		Min:     1e-9,
		Max:     1e12,
		Default: 100,
		Scale:   optim.Log,
	}
	knobRho = optim.Knob{
		Name:    "rho",
		Label:   "ρ",
		Title:   "coupling",
		Unit:    "divisor",
		Doc:     "divisor of the attraction of a replica to the mean: larger is looser",
		Min:     1e-9,
		Max:     1e12,
		Default: 1,
		Scale:   optim.Log,
	}
	knobAlpha = optim.Knob{
		Name:    "alpha",
		Label:   "α",
		Title:   "averaging",
		Doc:     "weight of the past in the running average z",
		Min:     0,
		Max:     1,
		Default: 0.75,
	}
	knobThermal = optim.Knob{
		Name:  "thermal",
		Title: "thermal noise",
		Unit:  "epsilon",
		Doc:   "Langevin noise of the inner steps: each adds N(0, 2*eta_in*thermal^2) to every parameter",
		Min:   0,
		Max:   100,
		Scale: optim.Log,
	}
	knobInner = optim.Knob{
		Name:    "inner",
		Title:   "inner momentum",
		Doc:     "whether the momentum of the inner steps is kept from cycle to cycle or starts at zero",
		Choices: []string{"kept", "zeroed"},
	}

	seriesGamma = optim.Series{
		Name:  "gamma.inverse",
		Title: "1/gamma",
		Unit:  "coefficient",
		Doc:   "strength of the attraction of y to x",
	}
	seriesRho = optim.Series{
		Name:  "rho.inverse",
		Title: "1/rho",
		Unit:  "coefficient",
		Doc:   "strength of the attraction of a replica to the mean",
	}
)

// innerCycle is the state of a cycle of ell inner steps, for one or more replicas.
type innerCycle struct {
	rows        []engine.Row // 0..n-1: the rows of the matrices below
	x, y, z     engine.Mat   // a row for each replica
	m           engine.Mat   // momentum if the optimiser is sgd, else empty
	eta         float32      // learning rate of the inner steps
	pullOutside bool         // the pull of y to x is not part of the momentum
	wholeSums   bool         // sgd takes the step of wholeSum
	momentRow   engine.Row   // row of the first replica in the blocks of optim.Moments
}

// part returns the cycle of the replicas in rows [lo, hi). y may be from Env.CohortScratch; then row at of y is their
// first row.
func (c innerCycle) part(lo, hi int, at engine.Row) innerCycle {
	of := func(m engine.Mat) engine.Mat { return m.Sub(engine.Row(lo), hi-lo) }
	p := innerCycle{
		rows:        engine.Rows(hi - lo),
		x:           of(c.x),
		z:           of(c.z),
		eta:         c.eta,
		pullOutside: c.pullOutside,
		wholeSums:   c.wholeSums,
		momentRow:   c.momentRow + engine.Row(lo),
	}
	if c.m.Rows > 0 {
		p.m = of(c.m)
	}
	if p.y = c.y.Sub(at, hi-lo); c.y.Rows == c.x.Rows {
		p.y = of(c.y)
	}
	return p
}

// begin returns the tasks that start a cycle. With the knob inner at zeroed they reset the momentum m, or all moments
// of another optimiser. With fresh they set y = z = x.
func (c innerCycle) begin(e *optim.Env, k optim.Values, fresh bool) (tasks []engine.Task) {
	switch zeroed := k.Is("inner", "zeroed"); {
	case zeroed && !k.Adapts():
		tasks = append(tasks, engine.Fill{Dst: engine.All(c.m)})
	case zeroed:
		for _, r := range c.rows {
			tasks = append(tasks, e.ResetOptimiser(k, c.momentRow+r)...)
		}
	}
	if fresh {
		tasks = append(tasks, engine.Update{
			Rows: c.rows,
			Prog: []engine.Lin{optim.Assign(c.y, optim.T(1, c.x)), optim.Assign(c.z, optim.T(1, c.x))},
		})
	}
	return tasks
}

// step returns the tasks of an inner step:
//
//	y <- y - eta*Nes(m, g + (y-x)/gamma) + thermal*sqrt(2 eta)*N(0, 1);  z <- alpha*z + (1-alpha)*y
//
// With pullOutside the first is y <- y - eta*(Nes(m, g) + (y-x)/gamma) + ..., with wholeSums it has Sum in place of
// Nes. If the optimiser is not sgd, its step replaces eta*Nes. g has the gradients at y, a row for each replica; the
// tasks may overwrite it. keys has the key of the thermal noise of each replica.
func (c innerCycle) step(e *optim.Env, k optim.Values, g engine.Mat, keys []noise.Key) []engine.Task {
	pull, alpha, mu := 1/k.F("gamma"), k.F("alpha"), k.F("momentum")
	prog := []engine.Lin{optim.Assign(g, optim.T(1, g), optim.T(pull, c.y), optim.T(-pull, c.x))}
	switch {
	case c.wholeSums:
		prog = append(prog, wholeSum(c.y, c.m, g, c.eta, mu)...)
	case !c.pullOutside:
		prog = append(prog, optim.Nesterov(c.y, c.m, g, c.eta, mu)...)
	default:
		prog = []engine.Lin{
			optim.Assign(c.m, optim.T(mu, c.m), optim.T(1, g)),
			optim.Assign(
				c.y,
				optim.T(1-float32(c.eta*pull), c.y),
				optim.T(c.eta*pull, c.x),
				optim.T(-c.eta, g),
				optim.T(-c.eta*mu, c.m),
			),
		}
	}
	mean := optim.Assign(c.z, optim.T(alpha, c.z), optim.T(1-alpha, c.y))
	t := k.Get("thermal")
	if t == 0 && !k.Adapts() {
		return []engine.Task{engine.Update{Rows: c.rows, Prog: append(prog, mean)}}
	}
	tasks := []engine.Task{engine.Update{Rows: c.rows, Prog: prog}}
	if k.Adapts() {
		tasks = c.optimiserStep(e, k, g, pull)
	}
	if t == 0 {
		return append(tasks, engine.Update{Rows: c.rows, Prog: []engine.Lin{mean}})
	}
	sigma := make([]float32, len(keys))
	for i := range sigma {
		sigma[i] = float32(t * math.Sqrt(2*float64(c.eta)))
	}
	return append(tasks, engine.Perturb{X: c.y, Sigma: sigma, Keys: keys},
		engine.Update{Rows: c.rows, Prog: []engine.Lin{mean}})
}

// wholeSum is buf <- mu*buf + g; x <- x - eta*(g + buf): the momentum of Parle's MPI program.
func wholeSum(x, buf, g engine.Mat, eta, mu float32) []engine.Lin {
	return []engine.Lin{
		optim.Assign(buf, optim.T(mu, buf), optim.T(1, g)),
		optim.Assign(x, optim.T(1, x), optim.T(-eta, g), optim.T(-eta, buf)),
	}
}

// optimiser returns the optimiser of the inner steps.
func (c innerCycle) optimiser(k optim.Values) optim.Optimiser {
	d := k.Optimiser("eta", "momentum")
	d.Eta = c.eta
	return d
}

// optimiserStep returns the tasks of the step of y by an optimiser other than sgd, including the pull to x.
func (c innerCycle) optimiserStep(e *optim.Env, k optim.Values, g engine.Mat, pull float32) (tasks []engine.Task) {
	d := c.optimiser(k)
	for _, r := range c.rows {
		x, y, g := c.x.Sub(r, 1), c.y.Sub(r, 1), g.Sub(r, 1)
		addPull := optim.Assign(g, optim.T(1, g), optim.T(pull, y), optim.T(-pull, x))
		if c.pullOutside {
			addPull = optim.Assign(y, optim.T(1-float32(c.eta*pull), y), optim.T(c.eta*pull, x))
		}
		tasks = append(tasks, e.OptimiserTasks(d, y, c.momentRow+r, g, addPull)...)
	}
	return tasks
}

// innerBlocks returns the blocks of the iterates y and z, which must outlive a round if a cycle has more than slice
// steps; else none, and y and z are scratch.
func innerBlocks(k optim.Values, shared bool, l engine.Layout) []optim.Block {
	if k.I("ell") <= k.I("slice") {
		return nil
	}
	return []optim.Block{
		optim.Params(optim.BlockY, shared, optim.EnterCentre, l),
		optim.Params(optim.BlockZ, shared, optim.EnterCentre, l),
	}
}
