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

// WASH trains replicas that now and then swap a few of their weights.
var WASH = &optim.Algorithm{
	Name:  "wash",
	Title: "WASH",
	Paper: "Fournier, Nabli, Aminbeidokhti, Pedersoli, Belilovsky, Oyallon: WASH: Train your ensemble with communication-efficient weight shuffling, then average (2024)",
	Doc: `Replicas train on mini-batches of their own. After every h steps a share of the weights is shuffled among them, element by
element, so that they stay close enough to be averaged in the end, and yet no replica becomes the mean of others:

    x^a <- x^a - eta*Nes(m^a, grad f(x^a))      h times
    for each element i of a random choice:  (x^1_i, ..., x^n_i) <- a permutation of (x^1_i, ..., x^n_i)

share is the probability of an element of the first layer to be chosen; with depth falling that of layer l of L is
share*(1 - l/(L - 1)), so that the last layer's are left alone, and with depth even all have the same. The mean over replicas is not
changed by a shuffle. A round is h steps and a shuffle while h is at most slice, else slice steps; the phase block counts. Momentum
stays with the replica. The centre is mean_a x, whose batch-norm statistics are rebuilt.
Series: loss.
optimiser adam, adamw or muon takes its step in place of Nes's.
Bytes: with K chosen elements, floor(K/n) values for each ordered pair of members on different workers.

Deviations: the source chooses elements one by one, and permutes each in its own way. Here as many of each layer are
chosen as are expected, rounded, in all a multiple of n, and they are dealt out evenly to the n cyclic shifts of the
members, so that bytes are known beforehand, what is left over of the deepest layer not at all, and nothing where
fewer are chosen than there are members; each element of a replica is as likely to come from any other. Moments are
not shuffled, which is a variant of the source. The processor shuffles, so that on a device all rows cross.
Reductions: share 0 is n independent runs.`,
	Needs: optim.Gradients,
	Knobs: slices.Concat([]optim.Knob{optim.KnobEta}, optim.OptimiserKnobs, []optim.Knob{optim.KnobH,
		{Name: "share", Label: "p", Title: "shuffled share", Doc: "share of the elements of the first layer that a shuffle takes", Min: 0, Max: 1, Default: 0.001, Scale: optim.Log},
		{Name: "depth", Title: "depth", Doc: "deeper layers are shuffled less, the last not at all, or all alike", Choices: []string{"falling", "even"}, Max: 1},
		optim.KnobSlice, optim.KnobStart,
	}, optim.MemberStream),
	Series: []optim.Series{optim.SeriesLoss},
	Blocks: func(k optim.Values, l engine.Layout) []optim.Block {
		return slices.Concat([]optim.Block{optim.Params(optim.BlockX, false, k.EnterX(), l)}, optim.Moments(k, false, l), []optim.Block{optim.Counter(optim.BlockCursor, false), optim.Counter(optim.BlockPhase, true), optim.Stats(false, l)})
	},
	Cycle: optim.CycleOf("h"),
	Bytes: func(s optim.Shape) map[collective.Op]int64 {
		n := len(s.Roster.Members)
		wide := washWidth(s.K, s.Layout, n)
		if !s.EndsCycle("h") || wide == 0 {
			return nil
		}
		b := int64(0)
		for shift := 1; shift < n; shift++ {
			b += s.MoveBytes(washEdges(s.Roster, shift), 4*wide)
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

// washShuffle gives each member the chosen elements of others: those that are dealt to a shift come from the member so
// many ranks further on.
func washShuffle(ctx context.Context, e *optim.Env, k optim.Values, round uint64) error {
	all := len(e.Roster.Members)
	wide := washWidth(k, e.Layout, all)
	if wide == 0 || all < 2 {
		return nil
	}
	places := washPlaces(k, e.Layout, func(layer int) noise.Key { return e.Rand(noise.Pair, round, engine.Member(layer)) })
	x := e.Block(optim.BlockX)
	rows, err := engine.Download(ctx, e.Engine, x)
	if err != nil {
		return err
	}
	src, dst := engine.NewHost(len(e.Mine), wide, engine.F32), engine.NewHost(len(e.Mine), wide, engine.F32)
	for shift := 1; shift < all; shift++ {
		for r := range e.Mine {
			for i, v := 0, rows.Row(engine.Row(r)); i < wide; i++ {
				src.Row(engine.Row(r))[i] = v[places[i*all+shift]]
			}
		}
		edges := washEdges(e.Roster, shift)
		if err := e.Comm.MoveRecords(ctx, "shuffle", edges, src, dst); err != nil {
			return err
		}
		for at, edge := range e.Incoming(edges) {
			v := rows.Row(e.Row(edge.To))
			for i, got := range dst.Row(engine.Row(at)) {
				v[places[i*all+shift]] = got
			}
		}
	}
	return e.Engine.Write(ctx, engine.All(x), engine.AppendRows(nil, rows, 0, rows.Rows))
}

// washEdges are those of a shift: to each member from the one so many ranks further on.
func washEdges(r collective.Roster, shift int) []collective.Edge {
	n := len(r.Members)
	out := make([]collective.Edge, n)
	for i, m := range r.Members {
		out[i] = collective.Edge{From: r.Members[(i+shift)%n], To: m, Op: "shuffle"}
	}
	return out
}

// washWidth is how many elements are dealt to a shift.
func washWidth(k optim.Values, l engine.Layout, n int) int {
	chosen := 0
	for _, layer := range washLayers(k, l) {
		chosen += layer.chosen
	}
	return chosen / n
}

// washLayer is elements [lo, lo+n) of the parameters, of which so many are chosen.
type washLayer struct{ lo, n, chosen int }

// washLayers are the layers of a model: tensors that follow each other and have their name before the last point in
// common. A tensor without a point in its name, as own graphs may have, is a layer.
func washLayers(k optim.Values, l engine.Layout) (layers []washLayer) {
	was := ""
	for i, t := range l.Tensors {
		name := t.Name[:max(0, strings.LastIndex(t.Name, "."))]
		if i > 0 && name == was && name != "" {
			layers[len(layers)-1].n += t.Len
			continue
		}
		was = name
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

// washPlaces are the chosen elements, layer by layer, each layer's in the order of a permutation by its key.
func washPlaces(k optim.Values, l engine.Layout, key func(layer int) noise.Key) (places []int) {
	for i, layer := range washLayers(k, l) {
		order := key(i).Permutation(uint64(layer.n))
		for j := range layer.chosen {
			places = append(places, layer.lo+int(order.At(uint64(j))))
		}
	}
	return places
}

func (wash) Centre(ctx context.Context, e *optim.Env, _ optim.Values, dst engine.Mat) error {
	return optim.MeanX(ctx, e, dst)
}
