package averaging

import (
	"context"
	"math"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// SPARTA averages a small random share of the parameters of all replicas after every step.
var SPARTA = &optim.Algorithm{
	Name:  "sparta",
	Title: "SPARTA",
	Paper: "Beton, Howes, Cheema et al.: Improving the efficiency of distributed training using sparse parameter " +
		"averaging (SPARTA, 2025); code in EXO Gym (2025)",
	Doc: `Replicas train on their own mini-batches. After every h steps a random share of the elements of the parameters is
averaged over all replicas. An element is averaged only once in h/share steps on average, but the replicas stay close
enough to be averaged at the end:

    x^a <- x^a - eta*Nes(m^a, grad f(x^a))      h times
    for each element i of a random choice:  x^a_i <- mean_b x^b_i

All replicas draw the same elements from the noise of the run, so that no index is sent. Of M parameters
K = round(share*M) are chosen, at least one unless share is 0. Momentum stays with the replica. optimiser adam, adamw or
muon replaces the step of Nes. A round is h steps and an average if h is at most slice, else slice steps; the phase
block counts the steps. The centre is mean_a x, whose batch-norm statistics are recomputed. Algorithm diloco with its
knob share is the source's combination of both: outer steps correct what remains of the differences.
Series: loss.
Bytes: an all-reduce of K values every h steps: those of data-parallel SGD times share/h.

Deviations: the source chooses each element independently with probability share; here the number of chosen elements is
its expectation, so that bytes are known in advance. The code sends the choice as a mask from the first node, and trains
by AdamW. The paper also averages values that are up to ten steps old, which hides the transfer; here a round waits for
it.
Reductions: share 0 is n independent runs; share 1 is localsgd.`,
	Needs: optim.Gradients,
	Knobs: slices.Concat([]optim.Knob{optim.KnobEta}, optim.OrProgram(optim.OptimiserKnobs), []optim.Knob{
		optim.KnobH, knobShare.With(0.005), optim.KnobSlice, optim.KnobStart,
	}, optim.MemberStream),
	Series: []optim.Series{optim.SeriesLoss},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return optim.StepBlocks(k, l, optim.Params(optim.BlockX, false, k.EnterX(), l),
			optim.Counter(optim.BlockCursor, false),
			optim.Counter(optim.BlockPhase, true),
			optim.Stats(false, l))
	},
	Cycle: optim.CycleOf("h"),
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		if !s.EndsCycle("h") {
			return nil
		}
		return map[collective.Op]int64{"share": s.AllReduceBytes(s.Roster, spartaWidth(s.K, s.Layout))}
	},
	Program: sparta{},
}

// knobShare is the share of the elements that spartaAverage averages.
var knobShare = optim.Knob{
	Name:  "share",
	Label: "p",
	Title: "averaged share",
	Doc:   "share of the elements of the parameters that is averaged over the members at once",
	Min:   0,
	Max:   1,
	Scale: optim.Log,
}

type sparta struct{}

func (sparta) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	rep, ends, err := optim.LocalRound(ctx, e, k)
	width := spartaWidth(k, e.Layout)
	if err != nil || !ends || width == 0 {
		return rep, err
	}
	src, mean := e.Scratch(len(e.Mine), width), e.Scratch(1, width)
	return rep, spartaAverage(ctx, e, e.Rand(noise.Pair, round, 0), src, mean)
}

// spartaWidth returns the number of elements that are averaged at once.
func spartaWidth(k optim.Values, l engine.Layout) int {
	if k.Get("share") == 0 {
		return 0
	}
	return max(1, int(math.Round(k.Get("share")*float64(l.Params))))
}

// spartaAverage replaces mean.Cols random elements of x by their mean over all members. They are the first ones of a
// random permutation drawn from key. mean is scratch with one row, src with a row for each hosted member.
func spartaAverage(ctx context.Context, e *optim.Env, key noise.Key, src, mean engine.Mat) error {
	order, chosen := key.Permutation(uint64(e.Layout.Params)), make([]int32, mean.Cols)
	for i := range chosen {
		chosen[i] = int32(order.At(uint64(i)))
	}
	x := e.Block(optim.BlockX)
	if err := e.Engine.Do(ctx, engine.CopyColumns{Dst: src, Src: x, From: chosen}); err != nil {
		return err
	}
	if err := e.Comm.AllReduce(ctx, "share", e.Roster, src, mean, true); err != nil {
		return err
	}
	return e.Engine.Do(ctx, engine.CopyColumns{Dst: x, Src: mean, To: chosen})
}

func (sparta) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.MeanX(ctx, e, dst)
}
