package optim

import (
	"context"

	"brood/models/engine"
)

// Parle couples replicas of Entropy-SGD.
var Parle = &Algorithm{
	Name:  "parle",
	Title: "Parle",
	Paper: "Chaudhari, Baldassi, Zecchina, Soatto, Talwalkar, Oberman: Parle: parallelizing stochastic gradient descent (2017)",
	Doc: `n replicas x^a take ell inner steps y^a each, attracted to x^a with strength 1/gamma, and are then coupled through
their mean with strength 1/rho. gamma and rho are divisors, as in the paper. B is mini-batches an epoch.

variant paper (SysML form, eq. 5): y, z and the momentum m carry over cycles.

    y <- y - eta*Nes(m, grad f(y) + (y - x)/gamma);  z <- alpha*z + (1-alpha)*y      every step
    x <- (1-tau)*z + tau*xbar;  xbar <- mean_a x;  tau = gamma/(rho+gamma)           every ell steps

variant arxiv (the form behind the published figures): y = z = x at the start of a cycle; m is not reset; eta_in drives
the inner steps.

    y <- y - eta_in*Nes(m, grad f(y) + (y - x)/gamma);  z <- alpha*z + (1-alpha)*y   ell times
    r = mean_a z;  x <- x - eta*Nes(mx, (x - z) + (x - r)/rho)

A round is a whole cycle while ell is at most slice, else slice steps of it; the phase block counts. With split below 1
replica a sees a contiguous window of the permuted training set. The centre is xbar (paper) or mean_a x (arxiv).
Bytes: one all-reduce of M values a cycle: data-parallel SGD's, divided by ell.

Deviations: rho's start is not in the paper; the authors' public notes set rho = gamma, and so do the defaults. Taken
literally, gamma -> infinity sends tau to 1 in variant paper, so it does not reduce to independent SGD there.`,
	Needs: Gradients,
	Knobs: []Knob{
		KnobEta, {Name: "eta_in", Title: "inner learning rate", Doc: "step size of the inner steps (variant arxiv)", Min: 0, Max: 100, Default: 0.1, Scale: Log},
		KnobMu, KnobB, KnobWD,
		{Name: "ell", Title: "inner steps", Unit: "steps", Doc: "inner steps between couplings (L in the paper)", Min: 1, Max: 10000, Default: 25, Integer: true, Scale: Log},
		{Name: "gamma", Title: "scope gamma", Unit: "divisor", Doc: "divisor of the attraction of y to x: larger is looser", Min: 1e-9, Max: 1e12, Default: 100, Scale: Log},
		{Name: "rho", Title: "coupling rho", Unit: "divisor", Doc: "divisor of the attraction of a replica to the mean: larger is looser", Min: 1e-9, Max: 1e12, Default: 1, Scale: Log},
		{Name: "alpha", Title: "averaging alpha", Doc: "weight of the past in the running average z", Min: 0, Max: 1, Default: 0.75},
		{Name: "split", Title: "data share", Doc: "share of the training set that each replica sees: a contiguous window", Min: 0.001, Max: 1, Default: 1},
		{Name: "variant", Title: "variant", Doc: "the SysML form of the rule, or that of the research code", Choices: []string{"paper", "arxiv"}, Max: 1, Default: 1},
		KnobSlice,
	},
	Series: []Series{SeriesLoss},
	Blocks: func(k Values, l engine.Layout) []Block {
		b := []Block{Params(BlockX, false, EnterCentre, l), Params(BlockM, false, EnterZero, l), Counter(BlockCursor, false), Counter(BlockPhase, true), Stats(false, l)}
		if k.I("variant") == parlePaper {
			return append(b, Params(BlockY, false, EnterCentre, l), Params(BlockZ, false, EnterCentre, l), Params(BlockXBar, true, EnterCentre, l))
		}
		b = append(b, Params(BlockMX, false, EnterZero, l))
		if k.I("ell") > k.I("slice") { // the inner iterates outlive a round only then
			b = append(b, Params(BlockY, false, EnterCentre, l), Params(BlockZ, false, EnterCentre, l))
		}
		return b
	},
	Bytes: func(s Shape) map[Op]int64 {
		if s.Phase+uint64(s.sliceSteps("ell")) < uint64(s.K.I("ell")) {
			return nil
		}
		return map[Op]int64{"couple": s.AllReduceBytes(s.Roster, s.Layout.Params)}
	},
	Program: parle{},
}

const parlePaper = 0

// KnobSlice bounds the steps of a round of a method whose cycle may be long.
var KnobSlice = Knob{Name: "slice", Title: "steps a round", Unit: "steps", Doc: "a cycle of more steps than this takes several rounds, so that knobs and pauses need not wait for it", Min: 1, Max: 10000, Default: 32, Integer: true, Scale: Log}

// sliceSteps is how many steps of a cycle of `length` the next round takes.
func (s Shape) sliceSteps(length string) int {
	left := s.K.I(length) - int(min(s.Phase, uint64(s.K.I(length))))
	return max(1, min(left, s.K.I("slice")))
}

type parle struct{}

func (parle) Round(ctx context.Context, e *Env, k Values, _ uint64) (Report, error) {
	n, M := len(e.Mine), e.Layout.Params
	rows, loss, g := engine.Rows(n), make([]float32, n), e.Scratch(n, M)
	x, m, phase := e.Block(BlockX), e.Block(BlockM), e.Block(BlockPhase).U
	paper := k.I("variant") == parlePaper
	y, z, eta := e.Block(BlockY), e.Block(BlockZ), k.F("eta")
	if !paper {
		eta = k.F("eta_in")
		if y.Rows == 0 && n > 0 {
			y, z = e.Scratch(n, M), e.Scratch(n, M)
		}
	}
	steps := e.Shape(k).sliceSteps("ell")
	if !paper && phase[0] == 0 {
		if err := e.Engine.Do(ctx, engine.Update{Rows: rows, Prog: []engine.Lin{Assign(y, T(1, x)), Assign(z, T(1, x))}}); err != nil {
			return Report{}, err
		}
	}
	alpha, pull := k.F("alpha"), 1/k.F("gamma")
	for range steps {
		s := Step{X: y, XRows: rows, Rows: rows, G: g, Loss: loss, Batch: k.I("batch"), Frac: k.Get("split"), Decay: k.F("decay")}
		if err := MemberGradients(ctx, e, s); err != nil {
			return Report{}, err
		}
		prog := []engine.Lin{Assign(g, T(1, g), T(pull, y), T(-pull, x))}
		prog = append(prog, Nesterov(y, m, g, eta, k.F("momentum"))...)
		prog = append(prog, Assign(z, T(alpha, z), T(1-alpha, y)))
		if err := e.Engine.Do(ctx, engine.Update{Rows: rows, Prog: prog}); err != nil {
			return Report{}, err
		}
	}
	if phase[0] += uint64(steps); phase[0] >= uint64(k.I("ell")) {
		phase[0] = 0
		if err := couple(ctx, e, k, x, z, g, paper); err != nil {
			return Report{}, err
		}
	}
	all := int64(len(e.Roster.Members)) * int64(steps)
	b := int64(k.I("batch"))
	window := int64(e.window(e.Roster.Members[0], k.Get("split")).Len)
	return Report{Steps: all, Samples: all * b, Pass: Pass{all * b, window * int64(len(e.Roster.Members))}, Points: e.MemberPoints("loss", loss)}, nil
}

// couple is the outer step of a cycle.
func couple(ctx context.Context, e *Env, k Values, x, z, g engine.Mat, paper bool) error {
	rows := engine.Rows(len(e.Mine))
	if paper {
		xbar, tau := e.Block(BlockXBar), k.F("gamma")/(k.F("rho")+k.F("gamma"))
		if err := e.Engine.Do(ctx, engine.Update{Rows: rows, Prog: []engine.Lin{Assign(x, T(1-tau, z), T(tau, xbar))}}); err != nil {
			return err
		}
		return e.Comm.AllReduce(ctx, "couple", e.Roster, x, xbar, true)
	}
	r, pull := e.Scratch(1, e.Layout.Params), 1/k.F("rho")
	if err := e.Comm.AllReduce(ctx, "couple", e.Roster, z, r, true); err != nil {
		return err
	}
	prog := []engine.Lin{Assign(g, T(1+pull, x), T(-1, z), T(-pull, r))}
	return e.Engine.Do(ctx, engine.Update{Rows: rows, Prog: append(prog, Nesterov(x, e.Block(BlockMX), g, k.F("eta"), k.F("momentum"))...)})
}

func (parle) Centre(ctx context.Context, e *Env, k Values, dst engine.Mat) error {
	if k.I("variant") == parlePaper {
		return CopyBlock(ctx, e, BlockXBar, dst)
	}
	return MeanX(ctx, e, dst)
}
