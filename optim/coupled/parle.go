package coupled

import (
	"context"
	"errors"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// Parle couples replicas of Entropy-SGD.
var Parle = &optim.Algorithm{
	Name:  "parle",
	Title: "Parle",
	Paper: "Chaudhari, Baldassi, Zecchina, Soatto, Talwalkar, Oberman: Parle: parallelizing stochastic gradient descent " +
		"(2017)",
	Doc: `n replicas x^a take ell inner steps of y^a each, attracted to x^a with strength 1/gamma, and are then coupled
through their mean with strength 1/rho. gamma and rho are divisors, as in the paper. B is the number of mini-batches an
epoch.

variant paper (the printed rule): y, z and the momentum m carry over cycles.

    y <- y - eta*Nes(m, grad f(y) + (y - x)/gamma);  z <- alpha*z + (1-alpha)*y      every step (5a, 5b)
    x <- (1-tau)*z + tau*xbar;  xbar <- mean_a x;  tau = gamma/(rho+gamma)           every ell steps (5c)

variant arxiv (the authors' optimiser for several GPUs, with the alpha of the paper): y = z = x at the start of a cycle;
m is kept unless inner is zeroed; eta_in is the learning rate of the inner steps.

    y <- y - eta_in*Nes(m, grad f(y) + (y - x)/gamma);  z <- alpha*z + (1-alpha)*y   ell times
    r = mean_a z;  x <- x - eta*Nes(mx, (x - z) + (x - r)/rho)

variant code (the authors' program parle_mpi.py): momentum adds the whole buffer, Sum(m, g) = g + m after m <- mu*m + g;
z and m carry over; both rates are eta; and a replica moves on from its last y, not from x.

    y <- y - eta*Sum(m, grad f(y) + (y - x)/gamma);  z <- alpha*z + (1-alpha)*y      ell times
    r = mean_a z;  x <- y - eta*Sum(mx, (x - z) + (x - r)/rho);  y <- x

optimiser adam, adamw or muon replaces the step of Nes or Sum in the inner steps, including the pull, with moments for
each replica. The outer step is the same, and the published figures are those of sgd. thermal adds the Langevin noise of
Entropy-SGD to every inner step (0 in the paper). A round is a whole cycle if ell is at most slice, else slice steps of
it; the phase block counts the steps. With split below 1, or parts disjoint, replica a sees a contiguous window of the
permuted training set. The centre is xbar (paper) or mean_a x.
Series: loss, and the coefficients 1/gamma and 1/rho.
Bytes: one all-reduce of M values a cycle: those of data-parallel SGD divided by ell.

Scoping: gamma_k = gamma_0*(1 - 1/(2B))^floor(k/ell) with k the steps of a replica, and the same for rho (remark 2). By
default a new run uses this schedule: gamma from 100 down to 1 and rho from 1 down to 0.1, as in the optimiser for
several GPUs. They are halved after 1.4*B cycles. The program counts a step once for each parameter tensor (14 in its
LeNet), so that its scope tightens that much faster, and starts rho at 100/(ell*n), 4/n with ell 25; for n = 3:
gamma=exp:100*(1/(1+1/(2B)))/tensor..1 and rho=exp:(4/3)*(1/(1+1/(2B)))/tensor..0.1. The authors count an "epoch" of B
cycles, which is ell passes over the data: compare methods at equal cycles.

Deviations: rho's start is not in the paper; the authors' public notes set rho = gamma. As printed, (5c) sets xbar to
the mean of the x^a before they move; here it is the mean after they move, to which the next cycle is pulled. In the
source every step has the learning-rate schedule of SGD (remark 2), in arxiv that of eta_in is a knob. The program
tightens its scope within a cycle, here each cycle does so once by the same factor; it divides the rate by 10 after each
of five epochs of B cycles.
Reductions. arxiv: rho -> infinity with inner zeroed makes n independent Entropy-SGDs; with ell 1, alpha 0 and momentum
0 these are SGDs of rate eta*eta_in, for any gamma, and with rho finite it is Elastic-SGD of rate eta*eta_in and divisor
rho*eta_in except for the mean, which is over z and not over x. paper: y is never reset to x, so that with ell 1 and
gamma -> infinity y is plain SGD while tau -> 1 keeps x at xbar for ever: it reduces neither to SGD nor, contrary to
remark 3 of the source, to Elastic-SGD. code: with ell 1, alpha 0, momentum 0 and rho ->
infinity it is n SGDs of rate 2*eta*(1 + 2*eta), for any gamma.`,
	Needs: optim.Gradients,
	Knobs: slices.Concat([]optim.Knob{
		optim.KnobEta,
		{
			Group:   optim.GroupStep,
			Name:    "eta_in",
			Label:   "η_in",
			Title:   "inner learning rate",
			Doc:     "step size of the inner steps (variant arxiv)",
			Only:    optim.When{Knob: "variant", Choices: []string{"arxiv"}},
			Min:     0,
			Max:     100,
			Default: 0.1,
			Scale:   optim.Log,
		},
		optim.KnobMu,
	}, optim.OrProgram(optim.OptimiserKnobsWithoutMomentum), []optim.Knob{
		knobEll, knobGamma.Scheduled("exp:100*(1-1/(2B))/cycle..1"), knobRho.Scheduled("exp:1*(1-1/(2B))/cycle..0.1"),
		knobAlpha, knobThermal, knobInner,
		optim.Knob{
			Name:    "variant",
			Title:   "variant",
			Doc:     "rule of the paper (5a-c), of the authors' optimiser for several GPUs, or of their MPI program",
			Choices: []string{"paper", "arxiv", "code"},
		}.Choosing("arxiv"),
		optim.KnobSlice, optim.KnobWire,
	}, optim.MemberStream),
	Series: []optim.Series{optim.SeriesLoss, seriesGamma, seriesRho},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		b := optim.StepBlocks(k, l, optim.Params(optim.BlockX, false, optim.EnterCentre, l),
			optim.Counter(optim.BlockCursor, false),
			optim.Counter(optim.BlockPhase, true),
			optim.Stats(false, l),
			optim.Residual(k, l))
		mx, iterates := optim.Params(optim.BlockMX, false, optim.EnterZero, l), []optim.Block{
			optim.Params(optim.BlockY, false, optim.EnterCentre, l),
			optim.Params(optim.BlockZ, false, optim.EnterCentre, l),
		}
		switch k.Choice("variant") {
		case "paper":
			return slices.Concat(b, iterates, []optim.Block{optim.Params(optim.BlockXBar, true, optim.EnterCentre, l)})
		case "code":
			return slices.Concat(b, iterates, []optim.Block{mx})
		}
		return append(append(b, mx), innerBlocks(k, false, l)...)
	},
	Check: func(s optim.Shape) error {
		if s.K.ByProgram() && s.K.Get("thermal") > 0 {
			return errors.New("the optimiser of a program adds no thermal noise: set thermal to 0, or choose another")
		}
		return nil
	},
	Cycle: optim.CycleOf("ell"),
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		if !s.EndsCycle("ell") {
			return nil
		}
		return map[collective.Op]int64{"couple": s.AllReduceMeanBytes()}
	},
	Program: parle{},
}

type parle struct{}

func (parle) Round(ctx context.Context, e *optim.Env, k optim.Values, _ uint64) (optim.Report, error) {
	n, shape := len(e.Mine), e.Shape(k)
	arxiv := k.Is("variant", "arxiv")
	c := innerCycle{
		rows:      engine.Rows(n),
		x:         e.Block(optim.BlockX),
		y:         e.Block(optim.BlockY),
		z:         e.Block(optim.BlockZ),
		m:         e.Block(optim.BlockM),
		eta:       k.F("eta"),
		wholeSums: k.Is("variant", "code"),
	}
	if arxiv {
		c.eta = k.F("eta_in")
		if c.y.Rows == 0 && n > 0 {
			c.y, c.z = e.CohortScratch(n), e.Scratch(n, e.Layout.Params)
		}
	}
	steps, loss, g := shape.SliceSteps("ell"), make([]float32, n), e.CohortScratch(n)
	err := e.InCohorts(ctx, n, k.Orthogonalises(), func(e *optim.Env, lo, hi int, at engine.Row) error {
		part := c.part(lo, hi, at)
		if shape.Phase == 0 {
			if err := e.Engine.Do(ctx, part.begin(e, k, arxiv)...); err != nil {
				return err
			}
		}
		s := e.GradientStep(k, part.y, engine.Rows(n)[lo:hi], g.Sub(at, hi-lo), loss[lo:hi])
		s.XRows = part.rows
		if k.Get("thermal") == 0 && (k.Adapts() || !c.wholeSums) {
			by, pull := part.optimiser(k), optim.Anchored{Anchor: c.x, Mean: c.z, Pull: 1 / k.F("gamma"), Alpha: k.F("alpha")}
			if done, err := optim.AnchoredSteps(ctx, e, s, steps, by, pull); done {
				return err
			}
		}
		return parleSteps(ctx, e, k, part, s, steps)
	})
	if err != nil {
		return optim.Report{}, err
	}
	rep := e.ReportSteps(k, int64(len(e.Roster.Members)*steps))
	rep.Points = slices.Concat(
		e.LatePoints("loss", loss),
		e.PopulationPoint(seriesGamma.Name, 1/k.Get("gamma")),
		e.PopulationPoint(seriesRho.Name, 1/k.Get("rho")),
	)
	if !e.AdvanceCycle(k, "ell", steps) {
		return rep, nil
	}
	return rep, parleCouple(ctx, e, k, c, g)
}

// parleSteps takes inner steps of the members in s.Rows, each on its own data stream. c is their cycle. It may run
// concurrently for different members, see Env.InCohorts.
func parleSteps(
	ctx context.Context, e *optim.Env, k optim.Values, c innerCycle, s optim.Step, steps int,
) error {
	keys := make([]noise.Key, len(s.Rows))
	for range steps {
		if err := optim.MemberGradients(ctx, e, s); err != nil {
			return err
		}
		for i, r := range s.Rows {
			keys[i] = e.Rand(noise.Thermal, e.Record(optim.BlockCursor).URow(r)[0], e.Mine[r])
		}
		if err := e.Engine.Do(ctx, c.step(e, k, s.G, keys)...); err != nil {
			return err
		}
	}
	return nil
}

// parleCouple takes the outer step of a cycle for all hosted members. c is their cycle, g scratch from
// Env.CohortScratch.
func parleCouple(ctx context.Context, e *optim.Env, k optim.Values, c innerCycle, g engine.Mat) error {
	if k.Is("variant", "paper") {
		xbar, tau := e.Block(optim.BlockXBar), k.F("gamma")/(k.F("rho")+k.F("gamma"))
		mix := optim.Assign(c.x, optim.T(1-tau, c.z), optim.T(tau, xbar))
		if err := e.Engine.Do(ctx, engine.Update{Rows: c.rows, Prog: []engine.Lin{mix}}); err != nil {
			return err
		}
		return e.AllReduceMean(ctx, k, "couple", c.x, xbar)
	}
	r, pull := e.Scratch(1, e.Layout.Params), 1/k.F("rho")
	if err := e.AllReduceMean(ctx, k, "couple", c.z, r); err != nil {
		return err
	}
	var tasks []engine.Task
	for lo, hi := range optim.Cohorts(len(c.rows), g.Rows) {
		of := func(m engine.Mat) engine.Mat { return m.Sub(engine.Row(lo), hi-lo) }
		d, x, mx := g.Sub(0, hi-lo), of(c.x), of(e.Block(optim.BlockMX))
		prog := []engine.Lin{optim.Assign(d, optim.T(1+pull, x), optim.T(-1, of(c.z)), optim.T(-pull, r))}
		if eta, mu := k.F("eta"), k.F("momentum"); c.wholeSums {
			y := of(c.y)
			prog = append(append(prog, wholeSum(y, mx, d, eta, mu)...), optim.Assign(x, optim.T(1, y)))
		} else {
			prog = append(prog, optim.Nesterov(x, mx, d, eta, mu)...)
		}
		tasks = append(tasks, engine.Update{Rows: c.rows[:hi-lo], Prog: prog})
	}
	return e.Engine.Do(ctx, tasks...)
}

func (parle) Centre(ctx context.Context, e *optim.Env, k optim.Values, dst engine.Mat) error {
	if k.Is("variant", "paper") {
		return optim.CopyBlock(ctx, e, optim.BlockXBar, dst)
	}
	return optim.MeanX(ctx, e, dst)
}
