package averaging

import (
	"context"
	"math"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
)

// DeMo trains one model with a momentum per member. Each step exchanges only the largest frequency components of the
// momenta.
var DeMo = &optim.Algorithm{
	Name:  "demo",
	Title: "DeMo",
	Paper: "Peng, Quesnelle, Kingma: DeMo: Decoupled momentum optimization (2024), algorithm 1",
	Doc: `Members share one model x; each has its own momentum. In a step a member adds its gradient to its momentum,
transforms the momentum chunk by chunk into cosines, sends the largest of these and subtracts them from the momentum.
The model follows the sign of the mean of what was sent:

    m^a <- beta*m^a + grad f(x) on a mini-batch of member a
    q^a = the keep largest of DCT(m^a) in each chunk;  m^a <- m^a - DCT'(q^a)
    x <- (1 - eta*decay)*x - eta*sign(DCT'(mean_a q^a))

DCT is the orthonormal cosine transform of type II of chunk consecutive elements of a tensor, and DCT' its inverse. A
chunk at the end of a tensor may be shorter: it is transformed at its length and sends the same fraction of its values,
at least one. Transforms are computed in float64 and rounded to float32. step mean omits the sign. values 2bit encodes a
value as sparseloco does. A round is one step. The centre is x.
Series: loss.
Bytes: a step sends each member's message to every other worker: for each chunk, keep times 32 bits and an index below
chunk (6 bits for 64), padded to a multiple of 64 bits. With chunk 64 and keep 4 that is 2/27 of the model.

Deviations: the source transforms matrices in blocks of 64 x 64 and keeps 32 values of a block; here chunks are rows of
64, so that the default keep of 4 sends more. The source averages a value over the members that sent it; here the sign
is of the mean over all members. The authors' code accumulates eta*grad f; here, as in the paper, m is free of eta,
which differs in what is sent only while eta changes. The CPU encodes messages, so that on a device the rows of m are
copied in each step.
Reductions: with keep = chunk nothing remains in m, and for any beta the step is the sign of the mean gradient (signSGD
over all members); with step mean it is data-parallel SGD without momentum on one data stream per member.`,
	Needs: optim.Gradients,
	Knobs: slices.Concat([]optim.Knob{
		optim.KnobEta.With(0.001),
		{
			Name:    "beta",
			Label:   "β",
			Title:   "memory",
			Doc:     "factor on a member's momentum in each step",
			Min:     0,
			Max:     1,
			Default: 0.999,
		},
		{
			Name:    "chunk",
			Title:   "chunk",
			Unit:    "values",
			Doc:     "consecutive values of a tensor that are transformed together",
			Min:     2,
			Max:     256,
			Default: 64,
			Integer: true,
			Scale:   optim.Log,
		},
		{
			Name:    "keep",
			Title:   "values of a chunk",
			Unit:    "values",
			Doc:     "cosines sent of a full chunk; a shorter one sends the same fraction",
			Min:     1,
			Max:     256,
			Default: 4,
			Integer: true,
			Scale:   optim.Log,
		},
		{
			Name:    "values",
			Title:   "values",
			Doc:     "encoding of a sent value: exact, or two bits",
			Choices: []string{"float32", "2bit"},
		},
		{
			Name:    "step",
			Title:   "step",
			Doc:     "direction of a step: the sign of each element of the mean, or the element",
			Choices: []string{"sign", "mean"},
		},
		{
			Name:  "decay",
			Title: "weight decay",
			Unit:  "coefficient",
			Doc:   "decoupled: every step shrinks x by eta*decay*x",
			Min:   0,
			Max:   1,
			Scale: optim.Log,
		},
	}, optim.InnerStream),
	Series: []optim.Series{optim.SeriesLoss},
	NoOptimiser: "follows the sign of the momentum components it sends, which replaces an optimiser; " +
		"for Adam or Muon with few bytes take sparseloco",
	Blocks: func(_ optim.Values, l engine.Layout) []optim.Block {
		return []optim.Block{
			optim.Params(optim.BlockX, true, optim.EnterCentre, l),
			optim.Params(optim.BlockM, false, optim.EnterZero, l),
			optim.Counter(optim.BlockCursor, false),
			optim.Stats(false, l),
		}
	},
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		return map[collective.Op]int64{"gather": s.AllGatherBytes(8 * demoCode(s.K, s.Layout).words)}
	},
	Program: demo{},
}

type demo struct{}

func (demo) Round(ctx context.Context, e *optim.Env, k optim.Values, _ uint64) (optim.Report, error) {
	n, x, m := len(e.Mine), e.Block(optim.BlockX), e.Block(optim.BlockM)
	s := e.GradientStep(k, x, engine.Rows(n), e.Scratch(n, e.Layout.Params), make([]float32, n))
	s.XRows, s.Decay = make([]engine.Row, n), 0
	if err := optim.MemberGradients(ctx, e, s); err != nil {
		return optim.Report{}, err
	}
	rep := e.ReportSteps(k, int64(len(e.Roster.Members)))
	rep.Points = e.LatePoints("loss", s.Loss)
	addGradient := optim.Update(n, optim.Assign(m, optim.T(k.F("beta"), m), optim.T(1, s.G)))
	if err := e.Engine.Do(ctx, addGradient); err != nil {
		return rep, err
	}
	d, eta := e.Scratch(1, e.Layout.Params), k.F("eta")
	if err := sparseMean(ctx, e, "gather", demoCode(k, e.Layout), demoTransform(k, e.Layout), m, d); err != nil {
		return rep, err
	}
	return rep, e.Engine.Do(ctx, optim.Update(1,
		optim.Assign(x, optim.T(1-float32(eta*k.F("decay")), x), optim.T(-eta, d)),
	))
}

func demoCode(k optim.Values, l engine.Layout) sparseCode {
	return newSparseCode(l, k.I("chunk"), k.I("keep"), k.Is("values", "float32"))
}

// demoTransform returns the cosine transform of the chunks. The mean is transformed back and, with step sign, replaced
// by its signs; zeros and NaN stay.
func demoTransform(k optim.Values, l engine.Layout) sparseTransform {
	c, bases, sign := demoCode(k, l), map[int][]float64{}, k.Is("step", "sign")
	inverse := func(v []float32) { c.dct(v, true, bases) }
	return sparseTransform{
		forward: func(v []float32) { c.dct(v, false, bases) },
		inverse: inverse,
		mean: func(v []float32) {
			inverse(v)
			for i, s := range v {
				if sign && s == s && s != 0 {
					v[i] = float32(math.Copysign(1, float64(s)))
				}
			}
		},
	}
}

func (demo) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.CopyBlock(ctx, e, optim.BlockX, dst)
}
