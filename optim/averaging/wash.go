package averaging

import (
	"context"
	"math"
	"slices"
	"strings"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// WASH trains replicas that periodically exchange a random subset of their weights.
var WASH = &optim.Algorithm{
	Name:  "wash",
	Title: "WASH",
	Paper: "Fournier, Nabli, Aminbeidokhti, Pedersoli, Belilovsky, Oyallon: WASH: Train your ensemble with " +
		"communication-efficient weight shuffling, then average (2024)",
	Doc: `Replicas train on their own mini-batches. After every h steps a share of the weights is shuffled among them,
element by element. Replicas thus stay close enough to be averaged at the end, but none becomes a mean of others:

    x^a <- x^a - eta*Nes(m^a, grad f(x^a))      h times
    for each element i of a random choice:  (x^1_i, ..., x^n_i) <- a permutation of (x^1_i, ..., x^n_i)

share is the probability that an element of the first layer is chosen. With depth falling the probability in layer l of
L is share*(1 - l/(L - 1)), so that the last layer is not shuffled; with depth even it is the same in all layers. A
shuffle does not change the mean over replicas. A round is h steps and a shuffle if h is at most slice, else slice
steps; the phase block counts the steps. Momentum stays with the replica. optimiser adam, adamw or muon replaces the
step of Nes. The centre is mean_a x, whose batch-norm statistics are recomputed.
Series: loss.
Bytes: with K chosen elements, floor(K/n) values for each ordered pair of members on different workers.

Deviations: the source chooses elements independently, and draws a permutation for each. Here the number of chosen
elements of a layer is its expectation, rounded, and chosen elements are divided evenly among the n cyclic shifts of the
members, so that bytes are known in advance. The remainder of the division by n, elements of the deepest layers, is not
shuffled; with fewer chosen elements than members nothing is. An element of a replica is equally likely to come from any
member. Moments are not shuffled, which is a variant of the source.
Reductions: share 0 is n independent runs.`,
	Needs: optim.Gradients,
	Knobs: slices.Concat([]optim.Knob{optim.KnobEta}, optim.OrProgram(optim.OptimiserKnobs), []optim.Knob{optim.KnobH,
		{
			Name:    "share",
			Label:   "p",
			Title:   "shuffled share",
			Doc:     "share of the elements of the first layer that are shuffled",
			Min:     0,
			Max:     1,
			Default: 0.001,
			Scale:   optim.Log,
		},
		{
			Name:    "depth",
			Title:   "depth",
			Doc:     "shuffled share by depth: falling to zero at the last layer, or the same in all layers",
			Choices: []string{"falling", "even"},
		},
		optim.KnobSlice, optim.KnobStart,
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
		n := len(s.Roster.Members)
		width := washWidth(s.K, s.Layout, n)
		if !s.EndsCycle("h") || width == 0 {
			return nil
		}
		b := int64(0)
		for shift := 1; shift < n; shift++ {
			b += s.MoveBytes(washEdges(s.Roster, shift), 4*width)
		}
		return map[collective.Op]int64{"shuffle": b}
	},
	Program: wash{},
}

type wash struct{}

func (wash) Round(ctx context.Context, e *optim.Env, k optim.Values, round uint64) (optim.Report, error) {
	rep, ends, err := optim.LocalRound(ctx, e, k)
	if err != nil || !ends {
		return rep, err
	}
	return rep, washShuffle(ctx, e, k, round)
}

// washShuffle permutes the chosen elements of x among all members. The i-th group of n consecutive chosen elements has
// one element for each cyclic shift; a member receives the element of shift s from the member s ranks after it. Shift 0
// keeps its elements.
func washShuffle(ctx context.Context, e *optim.Env, k optim.Values, round uint64) error {
	all := len(e.Roster.Members)
	width := washWidth(k, e.Layout, all)
	if width == 0 || all < 2 {
		return nil
	}
	chosen := washElements(k, e.Layout, func(layer int) noise.Key {
		return e.Rand(noise.Pair, round, engine.Member(layer))
	})
	x, src, dst := e.Block(optim.BlockX), e.Scratch(len(e.Mine), width), e.Scratch(len(e.Mine), width)
	for shift := 1; shift < all; shift++ {
		columns := make([]int32, width)
		for i := range columns {
			columns[i] = chosen[i*all+shift]
		}
		if err := e.Engine.Do(ctx, engine.CopyColumns{Dst: src, Src: x, From: columns}); err != nil {
			return err
		}
		if err := e.Comm.Move(ctx, "shuffle", washEdges(e.Roster, shift), src, dst); err != nil {
			return err
		}
		if err := e.Engine.Do(ctx, engine.CopyColumns{Dst: x, Src: dst, To: columns}); err != nil {
			return err
		}
	}
	return nil
}

// washEdges returns the edges of a shift: to each member from the one shift ranks after it, cyclically.
func washEdges(r collective.Roster, shift int) []collective.Edge {
	n := len(r.Members)
	out := make([]collective.Edge, n)
	for i, m := range r.Members {
		out[i] = collective.Edge{From: r.Members[(i+shift)%n], To: m, Op: "shuffle"}
	}
	return out
}

// washWidth returns the number of chosen elements that belong to each shift, for n members.
func washWidth(k optim.Values, l engine.Layout, n int) int {
	chosen := 0
	for _, layer := range washLayers(k, l) {
		chosen += layer.chosen
	}
	return chosen / n
}

// washLayer is elements [lo, lo+n) of the parameters and the number of them that a shuffle chooses.
type washLayer struct{ lo, n, chosen int }

// washLayers returns the layers of a model, in order. A layer is a run of consecutive tensors whose names agree up to
// the last point. A tensor whose name has no point, as in a user's graph, is a layer by itself.
func washLayers(k optim.Values, l engine.Layout) (layers []washLayer) {
	last := ""
	for i, t := range l.Tensors {
		name := t.Name[:max(0, strings.LastIndex(t.Name, "."))]
		if i > 0 && name == last && name != "" {
			layers[len(layers)-1].n += t.Len
			continue
		}
		last = name
		layers = append(layers, washLayer{lo: t.Lo, n: t.Len})
	}
	for i := range layers {
		share := k.Get("share")
		if k.Is("depth", "falling") && len(layers) > 1 {
			share *= 1 - float64(i)/float64(len(layers)-1)
		}
		layers[i].chosen = int(math.Round(share * float64(layers[i].n)))
	}
	return layers
}

// washElements returns the indices of the chosen elements, layer by layer. The elements of a layer are the first ones
// of a random permutation drawn from key(layer).
func washElements(k optim.Values, l engine.Layout, key func(layer int) noise.Key) (chosen []int32) {
	for i, layer := range washLayers(k, l) {
		order := key(i).Permutation(uint64(layer.n))
		for j := range layer.chosen {
			chosen = append(chosen, int32(layer.lo)+int32(order.At(uint64(j))))
		}
	}
	return chosen
}

func (wash) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.MeanX(ctx, e, dst)
}
