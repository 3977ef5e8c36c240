// Package conformance holds the suite that every algorithm of the catalog must pass, and the rig it runs on: a tiny
// naive engine, synthetic data, an in-process fleet and a log in memory. It is test support; no product package imports
// it.
package conformance

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"brood/models/data"
	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/native"
	"brood/models/noise"
)

const (
	toyIn, toyHidden, toyOut = 6, 7, 3
	toyTrain, toyValid       = 120, 30
	toyTest                  = 40
	toyStats                 = 2
)

// Toy is a 6-7-3 perceptron in plain loops, an engine whose numbers can be checked by hand. With stats it also has two
// running statistics (mean and variance of the first input), to exercise batch-norm bookkeeping.
type Toy struct {
	ram.Memory
	layout engine.Layout
	vector *native.Vector
	x      [][toyIn]float32
	y      []int
	unit   float32                                   // the value that represents a weight of 1
	Poison func(id engine.Member, round uint64) bool // makes a gradient NaN; nil means never
}

// NewToy returns a toy with synthetic data: three noisy clusters.
func NewToy(stats bool) (*Toy, error) { return newToy(stats, false) }

// toyWhole represents a weight of 1 in a toy with whole-number weights.
const toyWhole = 16

// newToy is NewToy; with whole, the weights of the perceptron are multiples of 1/16, stored as whole numbers.
func newToy(stats, whole bool) (*Toy, error) {
	t := &Toy{unit: 1, layout: engine.Layout{Params: toyIn*toyHidden + toyHidden + toyHidden*toyOut + toyOut}}
	add := func(name string, lo, n, cols int) int {
		t.layout.Tensors = append(t.layout.Tensors, engine.Tensor{
			Name:  name,
			Shape: []int{n / cols, cols},
			Lo:    lo,
			Len:   n,
			Cols:  cols,
		})
		return lo + n
	}
	lo := add("fc1.weight", 0, toyIn*toyHidden, toyHidden)
	lo = add("fc1.bias", lo, toyHidden, toyHidden)
	lo = add("fc2.weight", lo, toyHidden*toyOut, toyOut)
	add("fc2.bias", lo, toyOut, toyOut)
	if t.layout.Whole = whole; whole {
		t.unit = toyWhole
	}
	if stats {
		t.layout.Stats = toyStats
		t.layout.StatTensors = []engine.Tensor{{
			Name:  "bn.running_mean",
			Len:   1,
			Cols:  1,
			Shape: []int{1},
		}, {Name: "bn.running_var", Lo: 1, Len: 1, Cols: 1, Shape: []int{1}, Start: 1}}
	}
	t.x, t.y = clusters()
	var err error
	t.vector, err = native.New(t.layout, 1)
	return t, err
}

// clusters returns the samples, which all engines share.
var clusters = sync.OnceValues(func() (xs [][toyIn]float32, ys []int) {
	for i := range toyTrain + toyValid + toyTest {
		k := noise.Key{Seed: 1, Purpose: noise.Data, Member: uint32(i)}
		c := k.Below(1000, toyOut)
		var x [toyIn]float32
		for j := range x {
			x[j] = 0.7*k.Gauss(j) + 1.2*noise.Key{Seed: 2, Purpose: noise.Data, Member: uint32(c)}.Gauss(j)
		}
		xs, ys = append(xs, x), append(ys, c)
	}
	return xs, ys
})

// Layout returns the layout of the toy model.
func (t *Toy) Layout() engine.Layout { return t.layout }

// Train, Validation and Test return sample ids.
func (t *Toy) Train() []int32      { return span(0, toyTrain) }
func (t *Toy) Validation() []int32 { return span(toyTrain, toyValid) }
func (t *Toy) Test() []int32       { return span(toyTrain+toyValid, toyTest) }

// Label returns the cluster of a sample.
func (t *Toy) Label(id int32) int32 { return int32(t.y[id]) }

func span(lo, n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(lo + i)
	}
	return out
}

// Init returns a function that draws the initial parameters of a member.
func (t *Toy) Init(seed uint64) func(ctx context.Context, m engine.Member, dst []float32) error {
	return func(_ context.Context, m engine.Member, dst []float32) error {
		k := noise.Key{Seed: seed, Purpose: noise.Init, Member: uint32(m)}
		k.Each(0, len(dst), len(dst), func(at int, eps []float32) {
			for i, e := range eps {
				if dst[at+i] = 0.4 * e; t.layout.Whole {
					dst[at+i] = float32(engine.Whole(t.unit * dst[at+i]))
				}
			}
		})
		return nil
	}
}

// rowOf returns row r of m.
func rowOf(m engine.Mat, r engine.Row) []float32 { return ram.View(m).Row(r) }

func (t *Toy) Do(ctx context.Context, tasks ...engine.Task) error {
	for _, task := range tasks {
		var err error
		switch k := task.(type) {
		case engine.Gradients:
			err = t.gradients(k)
		case engine.Evaluate:
			err = t.placed(k.Batches, k.Drawn)
			for i, r := range k.Rows {
				k.Loss[i], k.Correct[i] = t.evaluate(rowOf(k.X, r), k.Batches[i])
				if k.Squares != nil {
					k.Squares[i] = 0
				}
			}
		case engine.Statistics:
			for i := range k.Rows {
				t.observe(rowOf(k.Stats, engine.Row(i)), k.Batches[0], 1)
			}
		case engine.Candidates:
			err = t.candidates(k)
		default:
			err = t.vector.Do(ctx, task)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *Toy) observe(stats []float32, batch []int32, share float32) {
	var m float32
	for _, id := range batch {
		m += t.x[id][0]
	}
	m /= float32(len(batch))
	stats[0] += share * (m - stats[0])
	stats[1] += share * (m*m - stats[1])
}

func (t *Toy) forward(w []float32, x *[toyIn]float32) (h [toyHidden]float32, p [toyOut]float64) {
	b1, w2 := w[toyIn*toyHidden:], w[toyIn*toyHidden+toyHidden:]
	b2 := w2[toyHidden*toyOut:]
	for j := range h {
		s := b1[j]
		for i, v := range x {
			s += float32(v * w[i*toyHidden+j])
		}
		h[j] = max(s, 0)
	}
	top := math.Inf(-1)
	for k := range p {
		s := b2[k]
		for j := range h {
			s += float32(h[j] * w2[j*toyOut+k])
		}
		p[k] = float64(s)
		top = max(top, p[k])
	}
	var z float64
	for k := range p {
		p[k] = math.Exp(p[k] - top)
		z += p[k]
	}
	for k := range p {
		p[k] /= z
	}
	return
}

func (t *Toy) gradients(k engine.Gradients) error {
	if len(k.Batches) != len(k.Rows) || k.G.Rows != len(k.Rows) {
		return fmt.Errorf("gradients: %d batches and %d rows of G for %d rows", len(k.Batches), k.G.Rows, len(k.Rows))
	}
	for i, r := range k.Rows {
		w, g := rowOf(k.X, r), rowOf(k.G, engine.Row(i))
		clear(g)
		w2 := w[toyIn*toyHidden+toyHidden:]
		gb1 := g[toyIn*toyHidden:]
		g2 := gb1[toyHidden:]
		gb2 := g2[toyHidden*toyOut:]
		inv := 1 / float32(len(k.Batches[i]))
		var loss float64
		for _, id := range k.Batches[i] {
			h, p := t.forward(w, &t.x[id])
			loss -= math.Log(p[t.y[id]] + 1e-30)
			p[t.y[id]]--
			for j := range h {
				var dh float32
				for c := range p {
					d := float32(p[c]) * inv
					g2[j*toyOut+c] += float32(d * h[j])
					dh += float32(d * w2[j*toyOut+c])
				}
				if h[j] > 0 {
					gb1[j] += dh
					for a, v := range t.x[id] {
						g[a*toyHidden+j] += float32(dh * v)
					}
				}
			}
			for c := range p {
				gb2[c] += float32(p[c]) * inv
			}
		}
		k.Loss[i] = float32(loss) * inv
		if t.layout.Stats > 0 {
			sr := r
			if k.StatRows != nil {
				sr = k.StatRows[i]
			}
			t.observe(rowOf(k.Stats, sr), k.Batches[i], 0.1)
		}
		if m := k.Masks[i]; t.Poison != nil && t.Poison(engine.Member(m.Member), m.Round) {
			g[0] = float32(math.NaN())
		}
	}
	return nil
}

func (t *Toy) evaluate(w []float32, batch []int32) (loss float64, correct int64) {
	if t.layout.Whole {
		whole := w
		w = make([]float32, len(whole))
		for i, x := range whole {
			w[i] = x / t.unit
		}
	}
	for _, id := range batch {
		_, p := t.forward(w, &t.x[id])
		loss -= math.Log(p[t.y[id]] + 1e-30)
		best := 0
		for c := range p {
			if p[c] > p[best] {
				best = c
			}
		}
		if best == t.y[id] {
			correct++
		}
	}
	return
}

// placed checks that Drawn has the position in the sample stream for batches of training samples, and for no others:
// augmentation depends on it. The whole training set, in order, is not drawn.
func (t *Toy) placed(batches [][]int32, drawn []noise.Key) error {
	for i, ids := range batches {
		at := engine.DrawnAt(drawn, i)
		if at.Purpose == 0 && slices.Equal(ids, t.Train()) {
			continue
		}
		if len(ids) == 0 || (ids[0] >= toyTrain) != (at.Purpose == 0) {
			return fmt.Errorf("samples %v, drawn at %+v: Drawn must have the position of training samples, and only of those",
				ids, at)
		}
		if at.Purpose == 0 {
			continue
		}
		want, key := make([]int32, len(ids)), noise.Key{Seed: at.Seed, Purpose: noise.Order, Member: at.Member}
		if data.Batch(want, t.Train(), key, at.Round, data.Window{Len: toyTrain}); !slices.Equal(ids, want) {
			return fmt.Errorf("samples %v, drawn at %+v, but the stream has %v there", ids, at, want)
		}
	}
	return nil
}

func (t *Toy) candidates(k engine.Candidates) error {
	if err := t.placed(k.Batches, k.Drawn); err != nil {
		return err
	}
	w, held := make([]float32, t.layout.Params), k.Theta
	for i := range k.IDs {
		theta := ram.View(k.Theta).F[:len(w)]
		if t.layout.Whole { // only the noise, which is rounded before it is added
			k.Theta = ram.New(1, len(w))
		}
		if err := t.vector.Candidate(0, w, &k, i); err != nil {
			return err
		}
		if t.layout.Whole {
			for j, x := range theta {
				w[j] = x + float32(engine.Whole(w[j]))
			}
			k.Theta = held
		}
		batch := k.Batches[min(i, len(k.Batches)-1)]
		loss, _ := t.evaluate(w, batch)
		k.Fitness[i] = float32(-loss / float64(len(batch)))
	}
	return nil
}
