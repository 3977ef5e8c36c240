package optim

import (
	"context"
	"slices"

	"brood/models/engine"
)

// LocalSGD averages replicas every h steps, after an optional data-parallel start.
var LocalSGD = &Algorithm{
	Name:  "localsgd",
	Title: "Local SGD",
	Paper: "Stich: Local SGD converges fast and communicates little (2018); post-local: Lin, Stich, Patel, Jaggi: Don't use large mini-batches, use local SGD (2018)",
	Doc: `Replicas start equal, take h steps each and are averaged:

    x^a <- x^a - eta*Nes(m^a, grad f(x^a))      h times, on mini-batches of the replica's own
    x^a <- mean_b x^b

Post-local SGD: in the first warmup rounds, counted in the block warm, every step is data-parallel instead:

    g = mean_a grad f(x^a);  x^a <- x^a - eta*Nes(m^a, g)      one step a round

optimiser adam, adamw or muon takes its step in place of Nes's; moments, like momentum, stay with the replica.

A round is h steps and an averaging while h is at most slice, else slice steps; the phase block counts. Momentum stays with
the replica. The centre is mean_a x.
Series: loss.
Bytes: an all-reduce of M values a warm-up round or an averaging: data-parallel SGD's, divided by h after the warm-up.

Deviations: replicas draw from streams of their own in the warm-up too. A warmup that is raised while the run trains takes
effect at the next averaging, and momenta that went apart stay apart.
Reductions: h 1 without momentum is data-parallel SGD on the same mini-batches, and so is the warm-up with any momentum; h 1
with momentum is too while all replicas have been there from the start, since averaging is linear.`,
	Needs: Gradients,
	Knobs: slices.Concat([]Knob{KnobEta}, OptimiserKnobs, []Knob{knobH.With(8),
		{Name: "warmup", Title: "warm-up", Unit: "rounds", Doc: "data-parallel steps before the replicas go their own way", Min: 0, Max: 1e9, Integer: true, Scale: Log},
		KnobSlice,
	}, MemberStream),
	Series: []Series{SeriesLoss},
	Blocks: func(k Values, l engine.Layout) []Block {
		return slices.Concat([]Block{Params(BlockX, false, EnterCentre, l)}, Moments(k, false, l),
			[]Block{Counter(BlockCursor, false), Counter(BlockPhase, true), Counter(BlockWarm, true), Stats(false, l)})
	},
	Cycle: cycleOf("h"),
	Bytes: func(s Shape) map[Op]int64 {
		all := s.AllReduceBytes(s.Roster, s.Layout.Params)
		switch {
		case localSGDWarm(s):
			return map[Op]int64{"gradient": all}
		case s.ends("h"):
			return map[Op]int64{"average": all}
		}
		return nil
	},
	Program: localSGD{},
}

type localSGD struct{}

func (localSGD) Round(ctx context.Context, e *Env, k Values, _ uint64) (Report, error) {
	n, M, shape, steps := len(e.Mine), e.Layout.Params, e.Shape(k), 1
	x, r, loss := e.Block(BlockX), e.Scratch(1, M), make([]*float32, n)
	if !localSGDWarm(shape) {
		steps = shape.sliceSteps("h")
		if err := localSteps(ctx, e, k, engine.Rows(n), steps, e.cohortScratch(n), loss); err != nil {
			return Report{}, err
		}
	} else if err := localSGDWarmStep(ctx, e, k, e.Scratch(n, M), r, loss); err != nil {
		return Report{}, err
	}
	rep := e.memberSteps(k, int64(len(e.Roster.Members)*steps))
	rep.Points = e.latePoints("loss", loss)
	if !localSGDWarm(shape) && !shape.ends("h") {
		e.Record(BlockPhase).U[0] += uint64(steps)
		return rep, nil
	}
	if localSGDWarm(shape) {
		e.Record(BlockWarm).U[0]++
		return rep, nil
	}
	e.Record(BlockPhase).U[0] = 0
	if err := e.Comm.AllReduce(ctx, "average", e.Roster, x, r, true); err != nil {
		return rep, err
	}
	return rep, e.Engine.Do(ctx, engine.Update{Rows: engine.Rows(n), Prog: []engine.Lin{Assign(x, T(1, r))}})
}

// localSGDWarm says whether the next round is one of the warm-up.
func localSGDWarm(s Shape) bool { return s.Phase == 0 && s.Warm < uint64(s.K.I("warmup")) }

// localSGDWarmStep is the data-parallel step: every replica follows the mean gradient.
func localSGDWarmStep(ctx context.Context, e *Env, k Values, g, mean engine.Mat, last []*float32) error {
	x, rows := e.Block(BlockX), engine.Rows(len(e.Mine))
	loss := make([]float32, len(rows))
	copy(last, pointers(loss))
	if err := MemberGradients(ctx, e, e.step(k, x, rows, g, loss)); err != nil {
		return err
	}
	if err := e.Comm.AllReduce(ctx, "gradient", e.Roster, g, mean, true); err != nil {
		return err
	}
	if !k.adapts() { // all rows at once
		return e.Engine.Do(ctx, engine.Update{Rows: rows, Prog: Nesterov(x, e.Block(BlockM), mean, k.F("eta"), k.F("momentum"))})
	}
	var tasks []engine.Task
	d := k.descent("eta", "momentum")
	for _, r := range rows {
		tasks = append(tasks, e.follow(d, x.Sub(r, 1), r, mean)...)
	}
	return e.Engine.Do(ctx, tasks...)
}

func (localSGD) Centre(ctx context.Context, e *Env, _ Values, dst engine.Mat) error {
	return MeanX(ctx, e, dst)
}
