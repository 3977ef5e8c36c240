package optim

import (
	"context"
	"slices"

	"brood/models/engine"
)

// Elastic couples replicas of SGD through their mean at every step.
var Elastic = &Algorithm{
	Name:  "elastic",
	Title: "Elastic-SGD",
	Paper: "Zhang, Choromanska, LeCun: Deep learning with elastic averaging SGD (2015), in the synchronous form of Chaudhari et al., Parle (2017), eq. 1",
	Doc: `Every replica takes SGD steps on its own mini-batches and is attracted to the mean of all with strength 1/rho:

    r = mean_a x^a;  x^a <- x^a - eta*Nes(m, grad f(x^a) + (x^a - r)/rho)

which is Nesterov SGD on sum_a f(x^a) + 1/(2 rho) ||x^a - r||^2 (eq. 1); optimiser puts Adam, AdamW or Muon on the same
objective in its place, for which the source has no figures. rho is a divisor: larger is looser. A round is one
step of every replica. With split below 1, or parts disjoint, a replica sees only its part of the data. The centre is mean_a x.
Series: loss, and the coefficient 1/rho.
Bytes: one all-reduce of M values a step, as data-parallel SGD.

Deviations: none in the rule. rho's default of 1 is the source's alpha = eta/rho = 0.9/n at eta = 0.1 and about nine replicas.
Reductions: rho -> infinity makes n independent SGDs; with equal replicas on equal batches it is SGD for any rho.`,
	Needs:  Gradients,
	Knobs:  slices.Concat([]Knob{KnobEta}, OptimiserKnobs, []Knob{knobRho, KnobWire}, MemberStream),
	Series: []Series{SeriesLoss, seriesRho},
	Blocks: func(k Values, l engine.Layout) []Block {
		return slices.Concat([]Block{Params(BlockX, false, EnterCentre, l)}, Moments(k, false, l), []Block{Counter(BlockCursor, false), Stats(false, l), residual(k, l)})
	},
	Bytes: func(s Shape) map[Op]int64 {
		return map[Op]int64{"couple": s.meanBytes()}
	},
	Program: elastic{},
}

type elastic struct{}

func (elastic) Round(ctx context.Context, e *Env, k Values, _ uint64) (Report, error) {
	n, x := len(e.Mine), e.Block(BlockX)
	g, r, loss := e.cohortScratch(n), e.Scratch(1, e.Layout.Params), make([]float32, n)
	if err := e.mean(ctx, k, "couple", x, r); err != nil {
		return Report{}, err
	}
	pull, d := 1/k.F("rho"), k.descent("eta", "momentum")
	err := advance(ctx, e, e.step(k, x, engine.Rows(n), g, loss), 1, func(e *Env, row engine.Row, g engine.Mat) []engine.Task {
		x := x.Sub(row, 1)
		return e.follow(d, x, row, g, Assign(g, T(1, g), T(pull, x), T(-pull, r)))
	})
	if err != nil {
		return Report{}, err
	}
	rep := e.memberSteps(k, int64(len(e.Roster.Members)))
	rep.Points = append(e.LatePoints("loss", loss), e.populationPoint(seriesRho.Name, 1/k.Get("rho"))...)
	return rep, nil
}

func (elastic) Centre(ctx context.Context, e *Env, _ Values, dst engine.Mat) error {
	return MeanX(ctx, e, dst)
}
