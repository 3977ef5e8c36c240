package native

import (
	"context"
	"fmt"
	"math"
	"math/bits"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/native/kernel"
	"brood/models/noise"
)

// A model of whole numbers (models.Int8): every step from bytes to the loss is one of whole numbers, as
// docs/arithmetic.md has it.

// wholeLayer is a dense layer, or an embedding, and the relu behind it.
type wholeLayer struct {
	wide, bias int // tensors; bias is -1 without one
	table      bool
	nIn, nOut  int
	shift      int // what sums are divided by is 2^shift
}

// wholeLayers are those of a model of whole numbers.
func wholeLayers(m *models.Model) (out []wholeLayer) {
	for i := range m.Layers {
		switch l := &m.Layers[i]; l.Kind {
		case models.Embedding:
			out = append(out, wholeLayer{wide: l.Weight, bias: -1, table: true, nIn: l.In[0], nOut: l.Out[0]})
		case models.Dense:
			out = append(out, wholeLayer{wide: l.Weight, bias: l.Bias, nIn: l.In[0], nOut: l.Out[0], shift: models.ShiftOf(l.In[0])})
		}
	}
	return out
}

// words is n bytes in whole words of four.
func words(n int) int { return (n + 3) / 4 * 4 }

// wholePass is what a thread keeps of such a model: the weights of one candidate, and the values of a piece.
type wholePass struct {
	weights [][]int8   // by layer, in rows of whole words; those of an embedding in rows of a byte's values
	biases  [][]int32  // by layer
	values  [2][]uint8 // what the layers take and give, in rows of whole words
	sums    []float32  // exact wherever they matter
	none    []float32  // in place of biases
	drawn   []byte
	logits  []int32
}

// room makes room for a candidate, and a piece of so many samples.
func (w *wholePass) room(m *models.Model, layers []wholeLayer, samples int) {
	if w.weights == nil {
		w.weights, w.biases = make([][]int8, len(layers)), make([][]int32, len(layers))
		for i, l := range layers {
			if t := &m.Layout.Tensors[l.wide]; l.table {
				w.weights[i] = make([]int8, t.Len)
			} else {
				w.weights[i], w.biases[i] = make([]int8, l.nOut*words(l.nIn)), make([]int32, l.nOut)
			}
		}
	}
	wide, most := words(m.Features), m.Classes
	for _, l := range layers {
		wide, most = max(wide, words(l.nOut)), max(most, l.nOut)
	}
	for i := range w.values {
		w.values[i] = grown(w.values[i], samples*wide)
	}
	w.sums, w.none, w.logits = grown(w.sums, samples*most), grown(w.none, most), grown(w.logits, samples*m.Classes)
	w.drawn = grown(w.drawn, m.Features)
}

// read takes the weights of a candidate.
func (w *wholePass) read(m *models.Model, layers []wholeLayer, params []float32) {
	for i, l := range layers {
		from, to := tensor(params, m, l.wide), w.weights[i]
		width, stride := l.nIn, words(l.nIn)
		if l.table {
			width, stride = len(from), len(from)
		}
		for lo := 0; lo*width < len(from); lo++ {
			wholes(to[lo*stride:], from[lo*width:(lo+1)*width])
		}
		if l.bias >= 0 {
			for j, x := range tensor(params, m, l.bias) {
				w.biases[i][j] = int32(engine.Whole(x))
			}
		}
	}
}

// wholes reads src into dst, each as engine.Whole does. What is added to numbers of that size leaves no digits behind
// the point, and rounds as they are to be.
func wholes(dst []int8, src []float32) {
	const most, rounds = 1 << 20, 3 << 22
	dst = dst[:len(src)]
	for j, x := range src {
		if !(x > -most && x < most) {
			dst[j] = engine.Whole(x)
			continue
		}
		n := int32(math.Float32bits(x+rounds)) - int32(math.Float32bits(rounds))
		dst[j] = int8(min(max(n, -engine.MostWhole), engine.MostWhole))
	}
}

// forward writes the logits of samples, the first of which was drawn at an address.
func (w *wholePass) forward(k *kernel.Kernels, m *models.Model, layers []wholeLayer, set *data.Set, ids []int32, at noise.Key) error {
	n, in, out := len(ids), w.values[0], w.values[1]
	stride := words(m.Features)
	for i, id := range ids {
		px := set.Drawn(w.drawn, id, at)
		if px == nil {
			return fmt.Errorf("data %s: no sample %d, ids are below %d", set.Name, id, set.Len())
		}
		at.Round++
		row := in[i*stride : (i+1)*stride]
		clear(row[copy(row, px):])
	}
	for i, l := range layers {
		next := words(l.nOut)
		if l.table {
			w.lookUp(&l, w.weights[i], out, in, n)
			in, out, stride = out, in, next
			continue
		}
		k.GemmBytes(n, l.nOut, l.nIn, in, stride, w.weights[i], words(l.nIn), w.sums, l.nOut, 1, w.none)
		half := int32(1) << (l.shift - 1)
		for s := range n {
			sums, bias := w.sums[s*l.nOut:(s+1)*l.nOut], w.biases[i]
			if i == len(layers)-1 {
				z := w.logits[s*l.nOut : (s+1)*l.nOut]
				for j, x := range sums {
					z[j] = min(max((int32(x)+half)>>l.shift+bias[j], -models.MostLogit), models.MostLogit)
				}
				continue
			}
			y := out[s*next : (s+1)*next]
			for j, x := range sums {
				y[j] = uint8(min(max((int32(x)+half)>>l.shift+bias[j], 0), math.MaxUint8))
			}
			clear(y[l.nOut:])
		}
		in, out, stride = out, in, next
	}
	return nil
}

// lookUp writes the rows of the bytes, where they are above zero.
func (w *wholePass) lookUp(l *wholeLayer, table []int8, out, in []uint8, n int) {
	each, from, to := l.nOut/l.nIn, words(l.nIn), words(l.nOut)
	for s := range n {
		y := out[s*to : (s+1)*to]
		for p, b := range in[s*from:][:l.nIn] {
			for j, x := range table[int(b)*each:][:each] {
				y[p*each+j] = uint8(max(x, 0))
			}
		}
		clear(y[l.nOut:])
	}
}

// wholeOne is a loss of one bit.
const wholeOne = 1 << 16

// wholePowers are 2^(-i/16) in units of 2^-32.
var wholePowers = [models.LogitUnits]uint64{4294967296, 4112874773, 3938502376, 3771522796, 3611622603, 3458501653, 3311872529, 3171459999,
	3037000500, 2908241642, 2784941738, 2666869345, 2553802834, 2445529972, 2341847524, 2242560872}

// wholeLoss is the cross-entropy of a class by the logits z, in units of 1/65536 of a bit: log2 of the sum of 2^(z/16),
// less z of the class over 16.
func wholeLoss(z []int32, class int32) int64 {
	most := z[0]
	for _, x := range z {
		most = max(most, x)
	}
	sum := uint64(0)
	for _, x := range z {
		d := uint(most - x)
		sum += wholePowers[d%models.LogitUnits] >> (d / models.LogitUnits)
	}
	return int64(most-z[class])*(wholeOne/models.LogitUnits) + wholeLog(sum)
}

// wholeLog is log2(sum/2^32) in units of 1/65536, rounded down digit by digit; sum is at least 2^32.
func wholeLog(sum uint64) int64 {
	whole := bits.Len64(sum) - 1
	log, m := int64(whole-32), sum<<(63-whole)>>32 // m/2^31 in [1, 2)
	for range 16 {
		log <<= 1
		if m = m * m >> 31; m >= 1<<32 {
			log, m = log|1, m>>1
		}
	}
	return log
}

// score is the summed loss of the samples, in units of 1/65536 of a bit, and how many are right.
func (w *wholePass) score(m *models.Model, set *data.Set, ids []int32) (loss, correct int64) {
	for s, id := range ids {
		z, best, class := w.logits[s*m.Classes:(s+1)*m.Classes], 0, set.Label(id)
		for c, x := range z {
			if x > z[best] {
				best = c
			}
		}
		if best == int(class) {
			correct++
		}
		loss += wholeLoss(z, class)
	}
	return loss, correct
}

// nats is a loss in units of 1/65536 of a bit as one in nats.
func nats(loss int64) float64 { return float64(loss) * (math.Ln2 / wholeOne) }

// wholeFits says what such a model cannot take of a data set.
func wholeFits(m *models.Model, d *data.Set) error {
	switch {
	case d.Normal() == nil:
		return fmt.Errorf("model %s computes in whole numbers, and the samples of %s are no bytes; choose images or a text, or a model of floats", m.Name, d.Name)
	case d.Weighs():
		return fmt.Errorf("model %s computes in whole numbers, and class weights are none; leave them out, or choose a model of floats", m.Name)
	}
	return nil
}

func (e *Engine) wholeEvaluate(ctx context.Context, t engine.Evaluate) error {
	if err := e.bounds.Evaluate(&t); err != nil {
		return err
	}
	work := e.shares(t.Batches, t.Drawn, false)
	losses := make([]int64, len(work))
	err := e.each(ctx, len(work), func(p *pass, i int) (err error) {
		w := &work[i]
		losses[i], w.correct, err = e.wholeScore(p, row(t.X, t.Rows[w.entry]), w.ids, w.at)
		return err
	})
	if err != nil {
		return err
	}
	total := make([]int64, len(t.Rows))
	for i := range t.Rows {
		t.Correct[i] = 0
	}
	for i, w := range work {
		total[w.entry] += losses[i]
		t.Correct[w.entry] += w.correct
	}
	for i, l := range total {
		t.Loss[i] = nats(l)
	}
	return nil
}

// wholeScore is the loss and the correct predictions of parameters on samples.
func (e *Engine) wholeScore(p *pass, params []float32, ids []int32, at noise.Key) (loss, correct int64, err error) {
	m, w := e.plan.model, &p.whole
	w.room(m, e.whole, min(piece, len(ids)))
	w.read(m, e.whole, params)
	for len(ids) > 0 {
		n := min(piece, len(ids))
		if err := w.forward(p.k, m, e.whole, e.set, ids[:n], at); err != nil {
			return 0, 0, err
		}
		l, c := w.score(m, e.set, ids[:n])
		loss, correct, ids, at.Round = loss+l, correct+c, ids[n:], at.Round+uint64(n)
	}
	return loss, correct, nil
}

// wholeLogits writes the logits of samples, in nats.
func (e *Engine) wholeLogits(p *pass, params []float32, ids []int32, out []float32) error {
	m, w := e.plan.model, &p.whole
	w.room(m, e.whole, len(ids))
	w.read(m, e.whole, params)
	if err := w.forward(p.k, m, e.whole, e.set, ids, noise.Key{}); err != nil {
		return err
	}
	for i, z := range w.logits[:len(ids)*m.Classes] {
		out[i] = float32(float64(z) * (math.Ln2 / models.LogitUnits))
	}
	return nil
}

func (e *Engine) wholeCandidates(ctx context.Context, t engine.Candidates) error {
	if err := e.bounds.Candidates(&t); err != nil {
		return err
	}
	work := pairs(&t)
	return e.each(ctx, len(work), func(p *pass, i int) error {
		w := work[i]
		ids, at := batch(&t, w.at)
		e.spread(p, &t, w, 0, 0)
		for j := range w.n {
			loss, _, err := e.wholeScore(p, p.twin.theta[j], ids, at)
			if err != nil {
				return err
			}
			t.Fitness[w.at+j] = fitness(nats(loss), len(ids))
		}
		return nil
	})
}

// wholeRoom is Room of a model of whole numbers.
func (e *Engine) wholeRoom(w engine.Work) (bytes int64) {
	m := e.plan.model
	pairs, scores := w.Candidates, w.Rows*((w.Scores+piece-1)/piece)
	if w.Antithetic {
		pairs = (pairs + 1) / 2
	}
	wide, most, weights := words(m.Features), m.Classes, 0
	for _, l := range e.whole {
		wide, most = max(wide, words(l.nOut)), max(most, l.nOut)
		if l.table {
			weights += m.Layout.Tensors[l.wide].Len
		} else {
			weights += l.nOut*words(l.nIn) + 4*l.nOut
		}
	}
	for i, p := range e.passes {
		samples, keep := 0, kernel.Room{}
		if i < scores {
			samples = min(w.Scores, piece)
		}
		if i < pairs {
			samples = max(samples, min(w.Batch, piece))
			bytes += 12 * int64(m.Layout.Params)
			keep.Line = true
		}
		if bytes += fixedBytes; i < pairs || w.Sums > 0 {
			bytes += e.factorBytes(w.Noise)
		}
		if samples > 0 {
			bytes += int64(weights + m.Features + 2*samples*wide + 4*(samples*most+most+samples*m.Classes))
			for _, l := range e.whole {
				if !l.table {
					keep = keep.Max(p.k.BytesRoom(samples, l.nOut, l.nIn))
				}
			}
		}
		if w.Sums > 0 {
			s, more := e.sumBytes(w, p.lane.Kernels)
			bytes, keep = bytes+s, keep.Max(more)
		}
		bytes += keep.Bytes()
	}
	return bytes + sumIDs(w)
}
