package evolution

import (
	"context"
	"math"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
)

// HybridES evaluates steps along shifted copies of the last gradient between full gradient steps.
var HybridES = &optim.Algorithm{
	Name:  "hybrid-es",
	Title: "Hybrid-ES",
	Paper: "Bartolo: Backprop considered harmful? Hybrid-evolution strategies for supervised learning training (poster)",
	Doc: `Every r-th iteration is a full gradient step, whose direction d is stored. In the other iterations each of N
groups evaluates K shifts of d and sends the seed and the cost of its best one; every worker regenerates the winner
from its seed and applies it:

    i mod r = 0:          d = 1/n sum_a grad f_a(theta);  theta <- theta - eta*d
    else, and if r = 1:   theta_g,k = theta - eta*(d + s*eps_g,k), eps ~ N(0, I);  theta <- argmin_g,k f(theta_g,k)

A round is one iteration; with r = 1 ("assisted") the candidates follow the full step in it. The gradient is over a
global batch of members*batch samples, as in data-parallel SGD. Candidates share the next judges samples of the same
stream. A candidate with a non-finite cost never wins. combine softmax averages the groups' best with weights
exp(-cost/temperature). unit gradient gives s in units of the root mean square of d's components, so that it adapts to
the gradient (the source finds its optimum there and asks for an adaptive variance); unit absolute uses s itself. shape
selects the distribution of shifts with the same variance: a normal shift times a random length makes components
Laplace or Student t (3 degrees of freedom). components is the share of the parameters that an iteration shifts, drawn
again for each iteration. With optimiser adam, adamw or muon, its step is the full step, and d is the change of theta
divided by -eta. The centre is theta.
Series: loss of full steps, cost of the winner, norm and mean square component of d, variance of the shifts, and
memory: that of an iteration relative to a full gradient step, 1 or 1/3 according to the source; its
mean is (1 + (r-1)/3)/r.
Bytes: an all-reduce of M values per full step, hence 1/r of a gradient per step; 12 per group to every other worker in
each iteration with candidates (8 for the seed, 4 for the cost).

Deviations: the source's N worker nodes are the knob groups, assigned to members in contiguous ranges. The source does
not say how winners are combined, and its costs are over the whole training set.
Reductions: s = 0 is gradient descent that uses each gradient r times.`,
	Needs: optim.Gradients | optim.Evaluations,
	Knobs: slices.Concat(
		[]optim.Knob{optim.KnobEta, optim.KnobB, optim.KnobWD, optim.KnobClip},
		hybridESOptimiser,
		[]optim.Knob{
			{
				Name:    "r",
				Title:   "interval",
				Unit:    "iterations",
				Doc:     "every r-th iteration is a full gradient step",
				Min:     1,
				Max:     1000,
				Default: 2,
				Integer: true,
				Scale:   optim.Log,
			},
			{
				Name:    "groups",
				Title:   "groups",
				Doc:     "groups that evaluate shifts in parallel (N in the source)",
				Min:     1,
				Max:     1 << 16,
				Default: 8,
				Integer: true,
				Scale:   optim.Log,
			},
			{
				Name:    "tries",
				Title:   "tries",
				Doc:     "shifts that each group evaluates (K in the source)",
				Min:     1,
				Max:     1 << 12,
				Default: 4,
				Integer: true,
				Scale:   optim.Log,
			},
			{
				Name:    "judges",
				Title:   "judges",
				Unit:    "samples",
				Doc:     "number of training samples on which a candidate's cost is measured",
				Min:     1,
				Max:     1 << 20,
				Default: 512,
				Integer: true,
				Scale:   optim.Log,
			},
			{
				Name:    "s",
				Title:   "shift s",
				Doc:     "standard deviation of the shifts of the direction",
				Min:     0,
				Max:     1000,
				Default: 1,
				Scale:   optim.Log,
			},
			{
				Name:    "unit",
				Title:   "unit of s",
				Doc:     "s in units of the root mean square component of the last gradient, or absolute",
				Choices: []string{"gradient", "absolute"},
			},
			{
				Name:    "shape",
				Title:   "shape of shifts",
				Doc:     "distribution of a shift's components",
				Choices: []string{"normal", "laplace", "student"},
			},
			{
				Name:    "components",
				Title:   "components",
				Doc:     "share of the parameters that an iteration shifts",
				Min:     0.0001,
				Max:     1,
				Default: 1,
				Scale:   optim.Log,
			},
			{
				Name:    "combine",
				Title:   "combine",
				Doc:     "step: the best of all groups' winners, or their average weighted by the softmax of minus the cost",
				Choices: []string{"argmin", "softmax"},
			},
			{
				Name:    "temperature",
				Title:   "temperature",
				Unit:    "nats",
				Doc:     "of combine softmax: temperature of the weights",
				Min:     1e-9,
				Max:     1e6,
				Default: 0.01,
				Scale:   optim.Log,
			},
			optim.KnobWire,
		},
	),
	Series: []optim.Series{
		optim.SeriesLoss,
		{
			Name:  "cost",
			Title: "cost",
			Unit:  "nats",
			Doc:   "loss of the best candidate on the evaluation subset",
		},
		{Name: "gradient.norm", Title: "gradient norm", Doc: "Euclidean norm of the last full gradient"},
		{Name: "gradient.variance", Title: "gradient variance", Doc: "mean square of its components"},
		{Name: "shift.variance", Title: "shift variance", Doc: "variance of the shifts' components"},
		{
			Name:  "memory",
			Title: "memory",
			Unit:  "gradient steps",
			Doc:   "memory of an iteration, relative to a full gradient step",
		},
	},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		out := []optim.Block{
			optim.Residual(k, l),
			optim.Params(optim.BlockX, true, optim.EnterCentre, l),
			optim.Params(optim.BlockD, true, optim.EnterZero, l),
			optim.Counter(optim.BlockCursor, true),
			optim.Counter(optim.BlockPhase, true),
			optim.Stats(false, l),
		}
		if k.Adapts() {
			out = append(out, optim.Moments(k, true, l)...)
		}
		return out
	},
	Cycle: func(s optim.Shape) int { return s.K.I("r") },
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		b, full := map[collective.Op]int64{}, hybridESFull(s)
		if full {
			b["gradient"] = s.AllReduceMeanBytes()
		}
		if !full || s.K.I("r") == 1 {
			b["winner"] = 12 * int64(s.K.I("groups")) * int64(len(s.Roster.Workers())-1)
		}
		return b
	},
	Program: hybridES{},
}

type hybridES struct{}

func (hybridES) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	full, phase, of := hybridESFull(e.Shape(k)), e.Record(optim.BlockPhase).U, int64(len(e.Data.Train()))
	rep, memory := optim.Report{Pass: optim.Pass{Of: of}}, 1.0/3
	if full {
		if err := hybridESGradient(ctx, e, k, &rep); err != nil {
			return rep, err
		}
		memory = 1
	}
	if phase[0]++; phase[0] >= uint64(k.I("r")) {
		phase[0] = 0
	}
	rep.Points = append(rep.Points, e.PopulationPoint("memory", memory)...)
	if full && k.I("r") > 1 {
		return rep, nil
	}
	t, err := newHybridESCandidates(ctx, e, k, round)
	if err != nil {
		return rep, err
	}
	best, err := t.race(ctx, e, k, &rep)
	if err != nil {
		return rep, err
	}
	return rep, t.apply(ctx, e, k, best, &rep)
}

// hybridESFull reports whether the next iteration is a full gradient step.
func hybridESFull(s optim.Shape) bool { return s.Phase == 0 }

// hybridESGradient does a full gradient step, stores its direction in the block d and adds to the report. It is
// collective.
func hybridESGradient(ctx context.Context, e *optim.Env, k optim.Values, rep *optim.Report) error {
	x, d := e.Block(optim.BlockX), e.Block(optim.BlockD)
	loss, err := optim.SharedGradient(ctx, e, k, "gradient", x, e.Scratch(len(e.Mine), e.Layout.Params), d)
	if err != nil {
		return err
	}
	rms, err := e.RMS(ctx, d)
	if err != nil {
		return err
	}
	if err := e.Engine.Do(ctx, hybridESStep(e, k, x, d)...); err != nil {
		return err
	}
	steps := e.ReportSharedSteps(k, 1)
	rep.Steps, rep.Samples, rep.Pass = steps.Steps, steps.Samples, steps.Pass
	rep.Points = slices.Concat(
		e.LatePoints("loss", loss),
		e.PopulationPoint("gradient.norm", rms*math.Sqrt(float64(d.Cols))),
		e.PopulationPoint("gradient.variance", rms*rms),
	)
	return nil
}

// hybridESOptimiser lists the knobs of the optimiser of full steps. sgd has no momentum here.
var hybridESOptimiser = append(slices.Clip(optim.OptimiserKnobsWithoutMomentum),
	optim.Knob{
		Name:    optim.KnobMu.Name,
		Title:   optim.KnobMu.Title,
		Doc:     "of muon: share of the momentum kept in a step",
		Max:     optim.KnobMu.Max,
		Default: optim.KnobMu.Default,
	},
)

// hybridESStep returns the tasks of a full step of x along the gradient in d. Unless the optimiser is sgd, they replace
// d by the change of x divided by -eta.
func hybridESStep(e *optim.Env, k optim.Values, x, d engine.Mat) []engine.Task {
	eta := k.F("eta")
	if !k.Adapts() {
		return []engine.Task{optim.Update(1, optim.Assign(x, optim.T(1, x), optim.T(-eta, d)))}
	}
	was, per := e.Scratch(1, e.Layout.Params), float32(0)
	if eta > 0 {
		per = 1 / eta
	}
	tasks := []engine.Task{optim.Update(1, optim.Assign(was, optim.T(1, x)))}
	tasks = append(tasks, e.OptimiserTasks(k.Optimiser("eta", optim.KnobMu.Name), x, 0, d)...)
	return append(
		tasks,
		optim.Update(1, optim.Assign(d, optim.T(per, was), optim.T(-per, x))),
	)
}

// hybridESResult is a group's best candidate.
type hybridESResult struct {
	id   uint64  // see hybridESCandidates
	cost float32 // NaN if missing
}

func (hybridES) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.CopyBlock(ctx, e, optim.BlockX, dst)
}
