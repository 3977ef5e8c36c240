package averaging

import (
	"context"
	"math"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
)

// DeMo lets momenta drift apart, and shares of each what moves fastest.
var DeMo = &optim.Algorithm{
	Name:  "demo",
	Title: "DeMo",
	Paper: "Peng, Quesnelle, Kingma: DeMo: Decoupled momentum optimization (2024), algorithm 1",
	Doc: `One model x, and of every member a momentum of its own. A step adds a gradient to it, writes chunks of it as cosines,
shares the few largest of these, takes them out of the momentum, and follows the sign of their mean:

    m^a <- beta*m^a + grad f(x) on a mini-batch of the member's own
    q^a = the keep largest of DCT(m^a) in each chunk;  m^a <- m^a - DCT'(q^a)
    x <- (1 - eta*decay)*x - eta*sign(DCT'(mean_a q^a))

DCT is the orthonormal cosine transform of type II of chunk consecutive elements of a tensor, and DCT' its inverse; a shorter
chunk has one of its length and sends its share, at least one. In float64, rounded to float32. step mean leaves the sign
out. values 2bit writes a value as sparseloco does. A round is a step. The centre is x.
Series: loss.
Bytes: a step sends each member's message to every other worker: keep times 32 bits and those of a place below chunk (6 of
64) for each chunk, ended at 64 bits. With the chunks of 64 and a keep of 4 that is 2/27 of the model.

Deviations: the source transforms matrices in blocks of 64 x 64 and keeps 32 of a block; here chunks are rows of 64, so that
the default keep of 4 sends more. It takes the mean of a value over those who sent it; the sign is that of the mean over
all. Messages are made by the processor, so that on a device rows of m cross in each step.
Reductions: with keep = chunk nothing stays in m: it is the sign of the mean gradient for any beta, signSGD by all, and with step
mean data-parallel SGD without momentum on streams of the members' own.`,
	Needs: optim.Gradients,
	Knobs: slices.Concat([]optim.Knob{
		optim.KnobEta.With(0.001),
		{Name: "beta", Label: "β", Title: "memory", Doc: "what a member's momentum keeps in a step", Min: 0, Max: 1, Default: 0.999},
		{Name: "chunk", Title: "chunk", Unit: "values", Doc: "consecutive values of a tensor that are transformed together", Min: 2, Max: 256, Default: 64, Integer: true, Scale: optim.Log},
		{Name: "keep", Title: "values of a chunk", Unit: "values", Doc: "how many cosines of a whole chunk are sent; of a shorter one its share", Min: 1, Max: 256, Default: 4, Integer: true, Scale: optim.Log},
		{Name: "values", Title: "values", Doc: "how a value is written: exactly, or in two bits", Choices: []string{"float32", "2bit"}, Max: 1},
		{Name: "step", Title: "step", Doc: "what is followed: the sign of each element, or the element", Choices: []string{"sign", "mean"}, Max: 1},
		{Name: "decay", Title: "weight decay", Unit: "coefficient", Doc: "decoupled: every step shrinks x by eta*decay*x", Min: 0, Max: 1, Scale: optim.Log},
		optim.KnobB, optim.KnobClip, optim.KnobSplit, optim.KnobParts,
	}),
	Series:      []optim.Series{optim.SeriesLoss},
	NoOptimiser: "shares what moves fastest in momenta of its own and follows its sign, which is the whole of its rule; for Adam or Muon with few bytes take sparseloco",
	Blocks: func(_ optim.Values, l engine.Layout) []optim.Block {
		return []optim.Block{optim.Params(optim.BlockX, true, optim.EnterCentre, l), optim.Params(optim.BlockM, false, optim.EnterZero, l), optim.Counter(optim.BlockCursor, false), optim.Stats(false, l)}
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
	more := engine.Update{Rows: engine.Rows(n), Prog: []engine.Lin{optim.Assign(m, optim.T(k.F("beta"), m), optim.T(1, s.G))}}
	if err := e.Engine.Do(ctx, more); err != nil {
		return rep, err
	}
	d, eta := e.Scratch(1, e.Layout.Params), k.F("eta")
	if err := sparseMean(ctx, e, "gather", demoCode(k, e.Layout), demoForm(k, e.Layout), m, d); err != nil {
		return rep, err
	}
	return rep, e.Engine.Do(ctx, engine.Update{Rows: engine.Rows(1), Prog: []engine.Lin{optim.Assign(x, optim.T(1-float32(eta*k.F("decay")), x), optim.T(-eta, d))}})
}

func demoCode(k optim.Values, l engine.Layout) sparseCode {
	return sparseOf(l, k.I("chunk"), k.I("keep"), k.Is("values", "float32"))
}

// demoForm is chunks as cosines, and the mean as itself again, or its signs.
func demoForm(k optim.Values, l engine.Layout) sparseForm {
	c, bases, sign := demoCode(k, l), map[int][]float64{}, k.Is("step", "sign")
	back := func(v []float32) { c.transform(v, true, bases) }
	return sparseForm{
		into: func(v []float32) { c.transform(v, false, bases) },
		back: back,
		mean: func(v []float32) {
			back(v)
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
