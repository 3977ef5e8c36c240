package averaging

import (
	"context"
	"errors"
	"slices"

	"brood/models/engine"
	"brood/optim"
	"brood/optim/collective"
)

// LocalSGD averages replicas every h steps, after an optional data-parallel start.
var LocalSGD = &optim.Algorithm{
	Name:  "localsgd",
	Title: "Local SGD",
	Paper: "Stich: Local SGD converges fast and communicates little (2018); post-local: Lin, Stich, Patel, Jaggi: " +
		"Don't use large mini-batches, use local SGD (2018)",
	Doc: `Replicas start equal, take h steps each and are averaged:

    x^a <- x^a - eta*Nes(m^a, grad f(x^a))      h times, on the replica's own mini-batches
    x^a <- mean_b x^b

Post-local SGD: in the first warmup rounds, which the block warm counts, every step is data-parallel instead:

    g = mean_a grad f(x^a);  x^a <- x^a - eta*Nes(m^a, g)      one step a round

optimiser adam, adamw or muon replaces the step of Nes; moments, like momentum, stay with the replica and are not
averaged.

A round is h steps and an averaging if h is at most slice, else slice steps; the phase block counts the steps. The
centre is mean_a x.
Series: loss.
Bytes: an all-reduce of M values a warm-up round or an averaging: those of data-parallel SGD, after the warm-up divided
by h.

Deviations: each replica draws from its own data stream in the warm-up too. If warmup is raised during a run, it takes
effect at the next averaging; momenta that differ by then continue to differ.
Reductions: h 1 without momentum is data-parallel SGD on the same mini-batches, and so is the warm-up with any momentum;
h 1 with momentum is too if all replicas have been present from the start, since averaging is linear.`,
	Needs: optim.Gradients,
	Knobs: slices.Concat([]optim.Knob{optim.KnobEta}, optim.OrProgram(optim.OptimiserKnobs),
		[]optim.Knob{optim.KnobH.With(8),
			{
				Name:    "warmup",
				Title:   "warm-up",
				Unit:    "rounds",
				Doc:     "data-parallel steps before the replicas train independently",
				Min:     0,
				Max:     1e9,
				Integer: true,
				Scale:   optim.Log,
			},
			optim.KnobSlice,
		}, optim.MemberStream),
	Series: []optim.Series{optim.SeriesLoss},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return optim.StepBlocks(k, l, optim.Params(optim.BlockX, false, optim.EnterCentre, l),
			optim.Counter(optim.BlockCursor, false),
			optim.Counter(optim.BlockPhase, true),
			optim.Counter(optim.BlockWarm, true),
			optim.Stats(false, l))
	},
	Check: func(s optim.Shape) error {
		if s.K.ByProgram() && s.K.I("warmup") > 0 {
			return errors.New("the optimiser of a program takes no data-parallel steps: set warmup to 0, or choose another")
		}
		return nil
	},
	Cycle: optim.CycleOf("h"),
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		all := s.AllReduceBytes(s.Roster, s.Layout.Params)
		switch {
		case localSGDWarm(s):
			return map[collective.Op]int64{"gradient": all}
		case s.EndsCycle("h"):
			return map[collective.Op]int64{"average": all}
		}
		return nil
	},
	Program: localSGD{},
}

type localSGD struct{}

func (localSGD) Round(ctx context.Context, e *optim.Env, k optim.Values, _ uint64) (optim.Report, error) {
	n, M, shape, steps := len(e.Mine), e.Layout.Params, e.Shape(k), 1
	x, r, loss := e.Block(optim.BlockX), e.Scratch(1, M), make([]*float32, n)
	if !localSGDWarm(shape) {
		steps = shape.SliceSteps("h")
		if err := optim.LocalSteps(ctx, e, k, engine.Rows(n), steps, e.CohortScratch(n), loss); err != nil {
			return optim.Report{}, err
		}
	} else if err := localSGDWarmStep(ctx, e, k, e.Scratch(n, M), r, loss); err != nil {
		return optim.Report{}, err
	}
	rep := e.ReportSteps(k, int64(len(e.Roster.Members)*steps))
	rep.Points = e.LatePointsOf("loss", loss)
	if localSGDWarm(shape) {
		e.Record(optim.BlockWarm).U[0]++
		return rep, nil
	}
	if !e.AdvanceCycle(k, "h", steps) {
		return rep, nil
	}
	if err := e.Comm.AllReduce(ctx, "average", e.Roster, x, r, true); err != nil {
		return rep, err
	}
	return rep, e.Engine.Do(ctx, optim.Update(n, optim.Assign(x, optim.T(1, r))))
}

// localSGDWarm reports whether the next round belongs to the warm-up.
func localSGDWarm(s optim.Shape) bool { return s.Phase == 0 && s.Warm < uint64(s.K.I("warmup")) }

// localSGDWarmStep takes a data-parallel step: every replica follows the mean gradient. g is scratch with a row for
// each hosted member, mean scratch with one row. last receives the losses, by row of the members.
func localSGDWarmStep(
	ctx context.Context, e *optim.Env, k optim.Values, g, mean engine.Mat, last []*float32,
) error {
	x, rows := e.Block(optim.BlockX), engine.Rows(len(e.Mine))
	loss := make([]float32, len(rows))
	copy(last, optim.Pointers(loss))
	if err := optim.MemberGradients(ctx, e, e.GradientStep(k, x, rows, g, loss)); err != nil {
		return err
	}
	if err := e.Comm.AllReduce(ctx, "gradient", e.Roster, g, mean, true); err != nil {
		return err
	}
	if !k.Adapts() { // SGD: one task updates all rows
		step := optim.Nesterov(x, e.Block(optim.BlockM), mean, k.F("eta"), k.F("momentum"))
		return e.Engine.Do(ctx, engine.Update{Rows: rows, Prog: step})
	}
	var tasks []engine.Task
	d := k.Optimiser("eta", "momentum")
	for _, r := range rows {
		tasks = append(tasks, e.OptimiserTasks(d, x.Sub(r, 1), r, mean)...)
	}
	return e.Engine.Do(ctx, tasks...)
}

func (localSGD) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.MeanX(ctx, e, dst)
}
