package optim

import (
	"context"
	"iter"
	"math"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
)

// cohort is how many members take their steps before the next do: what their rows hold stays in the caches from step to step, and
// gradients take memory for them alone. No bit depends on it.
const cohort = 16

// cohorts cuts n rows into runs [lo, hi) of at most cohort.
func cohorts(n int) iter.Seq2[int, int] {
	return func(yield func(lo, hi int) bool) {
		for lo := 0; lo < n; lo += cohort {
			if !yield(lo, min(n, lo+cohort)) {
				return
			}
		}
	}
}

// cohortScratch is a row for each member of the largest cohort of n.
func (e *Env) cohortScratch(n int) engine.Mat { return e.Scratch(min(n, cohort), e.Layout.Params) }

// advance takes so many steps of some members: a gradient of each, and then what update lists for a row of theirs and its
// gradient. Of s.G it needs cohortScratch.
func advance(ctx context.Context, e *Env, s Step, steps int, update func(r engine.Row, g engine.Mat) []engine.Task) error {
	for lo, hi := range cohorts(len(s.Rows)) {
		part := s
		part.Rows, part.XRows, part.Loss = s.Rows[lo:hi], s.XRows[lo:hi], s.Loss[lo:hi]
		for range steps {
			if err := MemberGradients(ctx, e, part); err != nil {
				return err
			}
			var tasks []engine.Task
			for i, r := range part.Rows {
				tasks = append(tasks, update(r, s.G.Sub(engine.Row(i), 1))...)
			}
			if err := e.Engine.Do(ctx, tasks...); err != nil {
				return err
			}
		}
	}
	return nil
}

// descend is a Nesterov step of one member's x.
func (e *Env) descend(k Values) func(r engine.Row, g engine.Mat) []engine.Task {
	x, m := e.Block(BlockX), e.Block(BlockM)
	return func(r engine.Row, g engine.Mat) []engine.Task {
		return []engine.Task{engine.Update{Rows: engine.Rows(1), Prog: Nesterov(x.Sub(r, 1), m.Sub(r, 1), g, k.F("eta"), k.F("momentum"))}}
	}
}

// localSteps takes h steps of Nesterov SGD on some members, with g as cohortScratch; last receives their last losses, by row.
func localSteps(ctx context.Context, e *Env, k Values, rows []engine.Row, h int, g engine.Mat, last []*float32) error {
	steps := make([]int, len(rows))
	for i := range steps {
		steps[i] = h
	}
	return unevenSteps(ctx, e, k, rows, steps, g, last)
}

// unevenSteps is localSteps with a number of steps for each row; those of a row with none keep their last loss.
func unevenSteps(ctx context.Context, e *Env, k Values, rows []engine.Row, steps []int, g engine.Mat, last []*float32) error {
	for lo, hi := range cohorts(len(rows)) {
		for s := range slices.Max(steps[lo:hi]) {
			var now []engine.Row
			for i, r := range rows[lo:hi] {
				if s < steps[lo+i] {
					now = append(now, r)
				}
			}
			loss := make([]float32, len(now))
			if err := advance(ctx, e, e.step(k, e.Block(BlockX), now, g, loss), 1, e.descend(k)); err != nil {
				return err
			}
			for i, r := range now {
				last[r] = &loss[i]
			}
		}
	}
	return nil
}

// Knobs of local entropy: Entropy-SGD and Parle.
var (
	knobEll     = Knob{Name: "ell", Title: "inner steps", Unit: "steps", Doc: "inner steps of a cycle (L in the papers)", Min: 1, Max: 10000, Default: 25, Integer: true, Scale: Log}
	knobGamma   = Knob{Name: "gamma", Title: "scope gamma", Unit: "divisor", Doc: "divisor of the attraction of y to x: larger is looser", Min: 1e-9, Max: 1e12, Default: 100, Scale: Log}
	knobRho     = Knob{Name: "rho", Title: "coupling rho", Unit: "divisor", Doc: "divisor of the attraction of a replica to the mean: larger is looser", Min: 1e-9, Max: 1e12, Default: 1, Scale: Log}
	knobAlpha   = Knob{Name: "alpha", Title: "averaging alpha", Doc: "weight of the past in the running average z", Min: 0, Max: 1, Default: 0.75}
	knobThermal = Knob{Name: "thermal", Title: "thermal noise", Unit: "epsilon", Doc: "Langevin noise of the inner steps: each adds N(0, 2*eta_in*thermal^2) to every parameter", Min: 0, Max: 100, Scale: Log}
	knobInner   = Knob{Name: "inner", Title: "inner momentum", Doc: "whether the momentum of the inner steps is kept from cycle to cycle or starts at zero", Choices: []string{"kept", "zeroed"}, Max: 1}

	seriesGamma = Series{Name: "gamma.inverse", Title: "1/gamma", Unit: "coefficient", Doc: "strength of the attraction of y to x", Combine: Last}
	seriesRho   = Series{Name: "rho.inverse", Title: "1/rho", Unit: "coefficient", Doc: "strength of the attraction of a replica to the mean", Combine: Last}
)

// inner is the cycle of ell inner steps in rows of local entropy's iterates.
type inner struct {
	rows       []engine.Row
	x, y, z, m engine.Mat
	eta        float32
}

// part is the cycle of rows [lo, hi). y may be cohortScratch.
func (c inner) part(lo, hi int) inner {
	of := func(m engine.Mat) engine.Mat { return m.Sub(engine.Row(lo), hi-lo) }
	p := inner{rows: engine.Rows(hi - lo), x: of(c.x), z: of(c.z), m: of(c.m), eta: c.eta}
	if p.y = c.y.Sub(0, hi-lo); c.y.Rows == c.x.Rows {
		p.y = of(c.y)
	}
	return p
}

// begin is the start of a cycle: m <- 0 where the knob says so, and with fresh y = z = x.
func (c inner) begin(k Values, fresh bool) (tasks []engine.Task) {
	if k.Is("inner", "zeroed") {
		tasks = append(tasks, engine.Fill{Dst: engine.All(c.m)})
	}
	if fresh {
		tasks = append(tasks, engine.Update{Rows: c.rows, Prog: []engine.Lin{Assign(c.y, T(1, c.x)), Assign(c.z, T(1, c.x))}})
	}
	return tasks
}

// step is y <- y - eta*Nes(m, g + (y-x)/gamma) + thermal*sqrt(2 eta)*N(0, 1);  z <- alpha*z + (1-alpha)*y.
func (c inner) step(k Values, g engine.Mat, keys []noise.Key) []engine.Task {
	pull, alpha := 1/k.F("gamma"), k.F("alpha")
	prog := append([]engine.Lin{Assign(g, T(1, g), T(pull, c.y), T(-pull, c.x))}, Nesterov(c.y, c.m, g, c.eta, k.F("momentum"))...)
	mean := Assign(c.z, T(alpha, c.z), T(1-alpha, c.y))
	t := k.Get("thermal")
	if t == 0 {
		return []engine.Task{engine.Update{Rows: c.rows, Prog: append(prog, mean)}}
	}
	sigma := make([]float32, len(keys))
	for i := range sigma {
		sigma[i] = float32(t * math.Sqrt(2*float64(c.eta)))
	}
	return []engine.Task{engine.Update{Rows: c.rows, Prog: prog}, engine.Perturb{X: c.y, Sigma: sigma, Keys: keys}, engine.Update{Rows: c.rows, Prog: []engine.Lin{mean}}}
}

// innerBlocks are the iterates that outlive a round: in a cycle of more than slice steps.
func innerBlocks(k Values, shared bool, l engine.Layout) []Block {
	if k.I("ell") <= k.I("slice") {
		return nil
	}
	return []Block{Params(BlockY, shared, EnterCentre, l), Params(BlockZ, shared, EnterCentre, l)}
}

// sliceSteps is how many steps of a cycle of `length` the next round takes.
func (s Shape) sliceSteps(length string) int {
	left := s.K.I(length) - int(min(s.Phase, uint64(s.K.I(length))))
	return max(1, min(left, s.K.I("slice")))
}

// ends says whether the next round ends its cycle of `length`.
func (s Shape) ends(length string) bool {
	return s.Phase+uint64(s.sliceSteps(length)) >= uint64(s.K.I(length))
}
