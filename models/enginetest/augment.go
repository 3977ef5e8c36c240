package enginetest

import (
	"slices"
	"testing"

	"brood/models/data"
	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/noise"
)

// augmented checks that a task on an augmented set has the bits of the same task on a plain set of the augmented
// samples, and that samples without a draw address are unchanged.
func (b *bench) augmented(t *testing.T) {
	for _, a := range []data.Augment{{Pad: 3, Flip: true}, {Pad: 2, Reflect: true, Flip: true, Alternate: true}} {
		t.Run(a.String(), func(t *testing.T) { b.augmentedBy(t, a) })
	}
}

func (b *bench) augmentedBy(t *testing.T, a data.Augment) {
	set, err := b.set.Augmented(a)
	if err != nil {
		t.Fatal(err)
	}
	long, kinds := 300, []engine.Noise{{}, {Integer: true}, {Rank: 2}} // more than an engine processes at a time
	if b.m.Layout.Stats > 0 {                                          // then it processes all
		long, kinds = 30, kinds[:1]
	}
	ids := slices.Concat(b.batch(0, 17), b.batch(3, 40))[:min(long, 57)]
	for len(ids) < long {
		ids = append(ids, ids[:min(len(ids), long-len(ids))]...)
	}
	keys := masks(3)
	// At the middle of a position and at a carry.
	keys[0].Round, keys[1].Round, keys[2].Round = 3<<32-7, 1<<32-5, 1<<33+11
	keys[2].Stream = 9 // samples per pass
	lists := [][]int32{ids[:20], ids[7:27], ids}
	plain, batches := b.materialise(t, set, lists, keys)
	rows, x := engine.Rows(3), b.rows(t, 3)
	bare := engine.Gradients{
		X:       x,
		Rows:    rows,
		Batches: lists,
		Stats:   b.stats(t, 3),
		G:       ram.New(3, b.m.Layout.Params),
		Loss:    make([]float32, 3),
	}
	if err := try(t.Context(), b.make(t, b.m, set, 1), bare); err == nil {
		t.Error("gradients of samples drawn nowhere")
	}
	for _, threads := range []int{1, 2} {
		on, as := b.make(t, b.m, set, threads), b.make(t, b.m, plain, threads)
		gradients := func(e engine.Engine, lists [][]int32) (out []float32) {
			g := engine.Gradients{
				X:       x,
				Rows:    rows,
				Batches: lists,
				Stats:   b.stats(t, 3),
				Masks:   keys,
				G:       ram.New(3, b.m.Layout.Params),
				Loss:    make([]float32, 3),
			}
			do(t, e, g)
			return slices.Concat(g.Loss, flat(g.G), flat(g.Stats))
		}
		same(t, "gradients", gradients(on, lists), gradients(as, batches))
		score := func(e engine.Engine, lists [][]int32, drawn []noise.Key) (out []float32) {
			ev := engine.Evaluate{
				X:       x,
				Rows:    rows,
				Batches: lists,
				Drawn:   drawn,
				Stats:   b.stats(t, 3),
				Loss:    make([]float64, 3),
				Correct: make([]int64, 3),
			}
			do(t, e, ev)
			for i, l := range ev.Loss {
				out = append(out, float32(l), float32(ev.Correct[i]))
			}
			return out
		}
		same(t, "evaluate", score(on, lists, keys), score(as, batches, nil))
		same(t, "evaluate, as they are", score(on, lists, nil), score(b.make(t, b.m, b.set, threads), lists, keys))
		statistics := func(e engine.Engine) []float32 {
			s := engine.Statistics{X: x, Rows: rows, Batches: lists, Stats: b.stats(t, 3)}
			do(t, e, s)
			return flat(s.Stats)
		}
		same(t, "statistics", statistics(on), statistics(b.make(t, b.m, b.set, threads)))
		for _, n := range kinds {
			for _, c := range []struct{ from, n int }{{0, 1}, {2, 1}, {0, 3}} { // one list for all, a long one, and one each
				fitness := func(e engine.Engine, lists [][]int32, drawn []noise.Key) []float32 {
					w := engine.Candidates{
						Theta:      x.Sub(0, 1),
						Noise:      n,
						Sigma:      0.05,
						Key:        noise.Key{Seed: 5, Purpose: noise.Candidate},
						Antithetic: true,
						IDs:        []engine.Member{4, 5, 8},
						Batches:    lists[c.from : c.from+c.n],
						Fitness:    make([]float32, 3),
					}
					if drawn != nil {
						w.Drawn = drawn[c.from : c.from+c.n]
					}
					do(t, e, w)
					return w.Fitness
				}
				same(t, "candidates", fitness(on, lists, keys), fitness(as, batches, nil))
			}
		}
	}
	shared := [][]int32{ids[:20], ids[:20]} // one slice drawn at two addresses: two batches
	pair := engine.Candidates{
		Theta:      x.Sub(0, 1),
		Sigma:      0.05,
		Key:        noise.Key{Seed: 5, Purpose: noise.Candidate},
		Antithetic: true,
		IDs:        []engine.Member{4, 5},
		Batches:    shared,
		Drawn:      keys[:2],
		Fitness:    make([]float32, 2),
	}
	do(t, b.make(t, b.m, set, 1), pair)
	got := slices.Clone(pair.Fitness)
	if plain, pair.Batches = b.materialise(t, set, shared, keys); got[0] == got[1] {
		t.Error("the test's candidates do not differ")
	}
	pair.Drawn = nil
	do(t, b.make(t, b.m, plain, 1), pair)
	same(t, "one slice drawn twice", got, pair.Fitness)
}

// materialise returns a plain set of the drawn samples of lists, and the lists of their ids in it.
func (b *bench) materialise(t *testing.T, set *data.Set, lists [][]int32, keys []noise.Key) (*data.Set, [][]int32) {
	t.Helper()
	var r data.Raster
	var out [][]int32
	buf, changed := make([]byte, set.Features()), 0
	for i, ids := range lists {
		var own []int32
		at := keys[i]
		for _, id := range ids {
			own = append(own, int32(len(r.Labels)))
			px := set.Drawn(buf, id, at)
			if !slices.Equal(px, set.Image(id)) {
				changed++
			}
			r.Pixels, r.Labels = append(r.Pixels, px...), append(r.Labels, uint16(set.Label(id)))
			at.Round++
		}
		out = append(out, own)
	}
	if changed == 0 {
		t.Fatal("no sample changed")
	}
	plain, err := data.New(set.Info, r, data.Raster{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return plain, out
}
