package coupled

import (
	"context"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
)

// Elastic couples replicas of SGD through their mean at every step.
var Elastic = &optim.Algorithm{
	Name:  "elastic",
	Title: "Elastic-SGD",
	Paper: "Zhang, Choromanska, LeCun: Deep learning with elastic averaging SGD (2015), in the synchronous form of " +
		"Chaudhari et al., Parle (2017), eq. 1",
	Doc: `Every replica takes SGD steps on its own mini-batches and is attracted to the mean of all with strength 1/rho:

    r = mean_a x^a;  x^a <- x^a - eta*Nes(m, grad f(x^a) + (x^a - r)/rho)

which is Nesterov SGD on sum_a f(x^a) + 1/(2 rho) ||x^a - r||^2 (eq. 1). optimiser applies Adam, AdamW or Muon to the
same objective instead, for which the source has no figures. rho is a divisor: a larger one couples more weakly. A round
is one step of every replica. With split below 1, or parts disjoint, a replica sees only its part of the data. The
centre is mean_a x.
Series: loss, and the coefficient 1/rho.
Bytes: one all-reduce of M values a step, as data-parallel SGD.

Deviations: none in the rule. rho's default of 1 is the source's alpha = eta/rho = 0.9/n at eta = 0.1 and about nine
replicas.
Reductions: rho -> infinity makes n independent SGDs; with equal replicas on equal batches it is SGD for any rho.`,
	Needs: optim.Gradients,
	Knobs: slices.Concat([]optim.Knob{optim.KnobEta}, optim.OptimiserKnobs, []optim.Knob{
		knobRho,
		optim.KnobWire,
	}, optim.MemberStream),
	Series: []optim.Series{optim.SeriesLoss, seriesRho},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return optim.StepBlocks(k, l, optim.Params(optim.BlockX, false, optim.EnterCentre, l),
			optim.Counter(optim.BlockCursor, false), optim.Stats(false, l), optim.Residual(k, l))
	},
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		return map[collective.Op]int64{"couple": s.AllReduceMeanBytes()}
	},
	Program: elastic{},
}

type elastic struct{}

func (elastic) Round(ctx context.Context, e *optim.Env, k optim.Values, _ uint64) (optim.Report, error) {
	n, x := len(e.Mine), e.Block(optim.BlockX)
	g, r, loss := e.CohortScratch(n), e.Scratch(1, e.Layout.Params), make([]float32, n)
	if err := e.AllReduceMean(ctx, k, "couple", x, r); err != nil {
		return optim.Report{}, err
	}
	pull, d := 1/k.F("rho"), k.Optimiser("eta", "momentum")
	step := func(e *optim.Env, row engine.Row, g engine.Mat) []engine.Task {
		x := x.Sub(row, 1)
		return e.OptimiserTasks(d, x, row, g, optim.Assign(g, optim.T(1, g), optim.T(pull, x), optim.T(-pull, r)))
	}
	if err := optim.TakeSteps(ctx, e, e.GradientStep(k, x, engine.Rows(n), g, loss), 1, step); err != nil {
		return optim.Report{}, err
	}
	rep := e.ReportSteps(k, int64(len(e.Roster.Members)))
	rep.Points = append(e.LatePoints("loss", loss), e.PopulationPoint(seriesRho.Name, 1/k.Get("rho"))...)
	return rep, nil
}

func (elastic) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.MeanX(ctx, e, dst)
}
