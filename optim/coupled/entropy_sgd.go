package coupled

import (
	"context"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// EntropySGD minimises the negative local entropy of the loss with one model.
var EntropySGD = &optim.Algorithm{
	Name:  "entropy-sgd",
	Title: "Entropy-SGD",
	Paper: "Chaudhari, Choromanska, Soatto, LeCun, Baldassi, Borgs, Chayes, Sagun, Zecchina: Entropy-SGD: " +
		"biasing gradient descent into wide valleys (2016), algorithm 1",
	Doc: `One model x follows the gradient (x - <y>)/gamma of the local entropy of f, whose mean <y> is estimated by ell
steps of Langevin dynamics around x:

    y = z = x;  m = 0                                                                         start of a cycle
    y <- y - eta_in*Nes(m, grad f(y) + (y - x)/gamma) + thermal*sqrt(2*eta_in)*N(0, 1)        ell times, pull inside
    y <- y - eta_in*(Nes(m, grad f(y)) + (y - x)/gamma) + thermal*sqrt(2*eta_in)*N(0, 1)      ell times, pull outside
    z <- alpha*z + (1-alpha)*y                                                                after each
    x <- x - eta*Nes(mx, x - z)                                                               end of a cycle

The inner momentum is the knob momentum, the outer momentum the knob momentum_out; if that is below 0, it equals
momentum. gamma is a divisor: a larger one attracts more weakly. thermal*sqrt(2*eta_in) is the source's
eta_in*eps/sqrt(0.5*eta_in).
The authors published two codes. The Lua code is pull outside, momentum_out 0, eta 1 and later 0.1 with eta_in 0.1, and
a scope 1/gamma that starts at 1e-4 (LeNet) or 0.03 (CIFAR) and grows by 0.1% a cycle:
gamma=exp:10000*0.999001/round; the presets have these settings. Their PyTorch code, which they call identical, has
Nesterov momentum in the outer step too, momentum_out -1. At rest a pull inside is 1/(1-momentum) times as strong as a
pull outside.
Members share the model: the gradient of an inner step is the mean over members, each of its part of a global batch of
members*batch samples. One member is thus the source's single replica, and more are data-parallel Entropy-SGD. A round
is a whole cycle if ell is at most slice, else slice steps of it; the phase block counts the steps.
Series: loss, and the coefficient 1/gamma.
Bytes: an all-reduce of the gradient for each inner step, as data-parallel SGD.

optimiser adam, adamw or muon replaces the step of Nes in the inner steps. These are then no Langevin dynamics: the
noise of thermal is not scaled like such a step, and <y> is a mean along a descent. As published it is sgd.

Deviations: by default the pull is inside the momentum, the outer momentum equals the inner one, as in Parle, and gamma
is constant; the settings above give the rule of the Lua code. That code adds weight decay outside the inner momentum,
here it is part of the gradient; the PyTorch code never advances its scope, and its outer momentum starts at the first
gradient. momentum_out 0 and eta 1 give the x <- z of algorithm 1.
Reductions: with ell 1, alpha 0, momentum 0 and thermal 0 a cycle is x <- x - eta*eta_in*grad f(x), for any gamma: SGD.
With momentum mu on both steps and inner zeroed it is Nesterov SGD with the gradient scaled by eta_in*(1+mu).`,
	Needs: optim.Gradients,
	Knobs: slices.Concat([]optim.Knob{
		optim.KnobEta,
		{
			Group:   optim.GroupStep,
			Name:    "eta_in",
			Label:   "η_in",
			Title:   "inner learning rate",
			Doc:     "step size of the inner steps",
			Min:     0,
			Max:     100,
			Default: 0.1,
			Scale:   optim.Log,
		},
		optim.KnobMu,
	}, optim.OptimiserKnobsWithoutMomentum, []optim.Knob{
		{
			Name:    "momentum_out",
			Title:   "outer momentum",
			Doc:     "Nesterov momentum of the outer step (0 as published); below 0: equal to the inner momentum",
			Min:     -1,
			Max:     0.9999,
			Default: -1,
		},
		{
			Name:    "pull",
			Title:   "pull",
			Doc:     "whether the inner momentum includes the attraction of y to x: inside, or outside as published",
			Choices: []string{"inside", "outside"},
		},
		knobEll.With(20), knobGamma.With(33), knobAlpha, knobThermal.With(1e-4), knobInner.Choosing("zeroed"),
		optim.KnobSlice, optim.KnobB, optim.KnobWD, optim.KnobClip, optim.KnobWire,
	}),
	Series: []optim.Series{optim.SeriesLoss, seriesGamma},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		b := optim.StepBlocks(k, l, optim.Params(optim.BlockX, true, optim.EnterCentre, l),
			optim.Params(optim.BlockMX, true, optim.EnterZero, l),
			optim.Counter(optim.BlockCursor, true),
			optim.Counter(optim.BlockPhase, true),
			optim.Stats(false, l),
			optim.Residual(k, l))
		return append(b, innerBlocks(k, true, l)...)
	},
	Cycle: optim.CycleOf("ell"),
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		return map[collective.Op]int64{"gradient": int64(s.SliceSteps("ell")) * s.AllReduceMeanBytes()}
	},
	Program: entropySGD{},
}

type entropySGD struct{}

func (entropySGD) Round(ctx context.Context, e *optim.Env, k optim.Values, _ uint64) (optim.Report, error) {
	M, shape := e.Layout.Params, e.Shape(k)
	c := innerCycle{
		rows:        engine.Rows(1),
		x:           e.Block(optim.BlockX),
		y:           e.Block(optim.BlockY),
		z:           e.Block(optim.BlockZ),
		m:           e.Block(optim.BlockM),
		eta:         k.F("eta_in"),
		pullOutside: k.Is("pull", "outside"),
	}
	if c.y.Rows == 0 {
		c.y, c.z = e.Scratch(1, M), e.Scratch(1, M)
	}
	if shape.Phase == 0 {
		if err := e.Engine.Do(ctx, c.begin(e, k, true)...); err != nil {
			return optim.Report{}, err
		}
	}
	steps, memberGrads, g := shape.SliceSteps("ell"), e.Scratch(len(e.Mine), M), e.Scratch(1, M)
	var loss []float32
	for range steps {
		var err error
		if loss, err = optim.SharedGradient(ctx, e, k, "gradient", c.y, memberGrads, g); err != nil {
			return optim.Report{}, err
		}
		key := e.Rand(noise.Thermal, e.Record(optim.BlockCursor).U[0], 0)
		if err := e.Engine.Do(ctx, c.step(e, k, g, []noise.Key{key})...); err != nil {
			return optim.Report{}, err
		}
	}
	rep := e.ReportSharedSteps(k, int64(steps))
	rep.Points = append(e.LatePoints("loss", loss), e.PopulationPoint(seriesGamma.Name, 1/k.Get("gamma"))...)
	if !e.AdvanceCycle(k, "ell", steps) {
		return rep, nil
	}
	mu := k.F("momentum_out")
	if mu < 0 {
		mu = k.F("momentum")
	}
	outer := []engine.Lin{optim.Assign(g, optim.T(1, c.x), optim.T(-1, c.z))}
	outer = append(outer, optim.Nesterov(c.x, e.Block(optim.BlockMX), g, k.F("eta"), mu)...)
	return rep, e.Engine.Do(ctx, optim.Update(1, outer...))
}

func (entropySGD) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.CopyBlock(ctx, e, optim.BlockX, dst)
}
