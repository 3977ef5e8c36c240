package native

import (
	"fmt"
	"math"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/native/kernel"
	"brood/models/noise"
)

// In a whole-number model (models.Int8) every step from bytes to the loss is integer arithmetic, as specified in
// docs/arithmetic.md.

// wholeLayer is a dense layer or an embedding, with the relu that follows.
type wholeLayer struct {
	wide, bias int // tensors; bias is -1 without one
	table      bool
	nIn, nOut  int
	entries    int // number of rows of the embedding
	shift      int // sums are divided by 2^shift
}

// wholeLayers returns the layers of a whole-number model.
func wholeLayers(m *models.Model) (out []wholeLayer) {
	for i := range m.Layers {
		switch l := &m.Layers[i]; l.Kind {
		case models.Embedding:
			out = append(out, wholeLayer{
				wide:    l.Weight,
				bias:    -1,
				table:   true,
				nIn:     l.In[0],
				nOut:    l.Out[0],
				entries: rowsIn(m, l.Weight),
			})
		case models.Dense:
			out = append(out, wholeLayer{
				wide:  l.Weight,
				bias:  l.Bias,
				nIn:   l.In[0],
				nOut:  l.Out[0],
				shift: models.ShiftOf(l.In[0]),
			})
		}
	}
	return out
}

// words rounds n bytes up to words of four.
func words(n int) int { return (n + 3) / 4 * 4 }

// wholePass is a thread's memory for such a model: weights and noise, the values of a piece, and the sums of its first
// layer, which the candidates of a task share.
type wholePass struct {
	theta, eps [][]int8   // by tensor, in rows of kernel.ByteStride
	values     [3][]uint8 // the samples, and operands and results of layers, in rows padded to words
	table      []uint8    // rows of an embedding, as values
	base, turn []int32    // sums of the first layer: with the weights, for a batch; with the noise, for a piece
	sums, more []int32    // the same for a later layer, for a piece
	bias       []int32    // of a layer
	logits     []int32
	most       []int32  // largest logit of each sample
	powers     []uint64 // sum of powers of each sample's logits
	drawn      []byte
	task       uint64 // task of theta and base; 0: none
	ids        []int32
	at         noise.Key
}

// rowsIn returns the number of rows of a model's tensor.
func rowsIn(m *models.Model, tensor int) int {
	rows, _ := rowsOf(&m.Layout.Tensors[tensor])
	return rows
}

// rowsOf returns a tensor's number of rows, and their size in bytes.
func rowsOf(t *engine.Tensor) (rows, stride int) { return t.Len / t.Cols, kernel.ByteStride(t.Cols) }

// widths returns the bytes of a sample's values, of the largest result of a layer, and of the largest table.
func (e *Engine) widths() (wide, most, table int) {
	m := e.plan.model
	wide, most = words(m.Features), m.Classes
	for _, l := range e.whole {
		wide, most, table = max(wide, words(l.nOut)), max(most, l.nOut), max(table, l.entries*l.nOut/l.nIn)
	}
	return wide, most, table
}

// wholeReady allocates memory for weights and a piece of this many samples; if perturbed, also for the noise of a pair
// on a batch of this size.
func (e *Engine) wholeReady(w *wholePass, samples, batch int, perturbed bool) {
	m := e.plan.model
	wide, most, table := e.widths()
	for i := range m.Layout.Tensors {
		rows, stride := rowsOf(&m.Layout.Tensors[i])
		if len(w.theta) <= i {
			w.theta = append(w.theta, make([]int8, rows*stride))
		}
		if perturbed && len(w.eps) <= i {
			w.eps = append(w.eps, make([]int8, rows*stride))
		}
	}
	for i := range w.values {
		w.values[i] = grown(w.values[i], samples*wide)
	}
	w.table, w.bias, w.sums, w.drawn = grown(w.table, table), grown(w.bias, most), grown(w.sums, samples*most),
		grown(w.drawn, m.Features)
	w.logits, w.most, w.powers = grown(w.logits, samples*m.Classes), grown(w.most, samples), grown(w.powers, samples)
	if perturbed {
		w.turn, w.more = grown(w.turn, samples*e.whole[0].nOut), grown(w.more, samples*most)
		w.base = grown(w.base, batch*e.whole[0].nOut)
	}
}

// wholeRead converts parameters to integer weights.
func (e *Engine) wholeRead(w *wholePass, params []float32) {
	w.task = 0
	for i := range e.layout.Tensors {
		t := &e.layout.Tensors[i]
		rows, stride := rowsOf(t)
		for r := range rows {
			wholes(w.theta[i][r*stride:], part(params, t)[r*t.Cols:(r+1)*t.Cols])
		}
	}
}

// wholeDraw draws the noise of a pair as integers: engine.Whole(sigma*eps).
func (e *Engine) wholeDraw(k *kernel.Kernels, w *wholePass, key noise.Key, sigma float32) {
	s := key.Schedule()
	for i := range e.layout.Tensors {
		t := &e.layout.Tensors[i]
		rows, _ := rowsOf(t)
		key.Stream = uint32(i)
		k.RoundedBytes(w.eps[i], sigma, noise.IntegerScale, kernel.Field{Key: key, Schedule: s, Cols: t.Cols}, rows)
	}
}

// wholes converts src as engine.Whole does. Adding a number of that magnitude leaves no fractional digits, and rounds
// as required.
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

// gather loads samples; at is the address at which the first was drawn.
func (w *wholePass) gather(set *data.Set, features int, ids []int32, at noise.Key) error {
	stride := words(features)
	for i, id := range ids {
		px := set.Drawn(w.drawn, id, at)
		if px == nil {
			return fmt.Errorf("data %s: no sample %d, ids are below %d", set.Name, id, set.Len())
		}
		at.Round++
		row := w.values[0][i*stride : (i+1)*stride]
		clear(row[copy(row, px):])
	}
	return nil
}

// products writes the products of n samples with a layer's weights, or with their noise.
func (w *wholePass) products(k *kernel.Kernels, l *wholeLayer, dst []int32, in []uint8, n int, weights []int8) {
	k.SumBytes(n, l.nOut, l.nIn, in, words(l.nIn), weights, kernel.ByteStride(l.nIn), dst, l.nOut)
}

// forward writes the logits of the n gathered samples, for theta + sign*eps. base and turn are the sums of the first
// layer, if known.
func (w *wholePass) forward(k *kernel.Kernels, layers []wholeLayer, n int, sign int32, base, turn []int32) {
	in := w.values[0]
	for i := range layers {
		l, out := &layers[i], w.values[1+i%2]
		if l.table {
			w.lookUp(l, out, in, n, sign)
			in = out
			continue
		}
		sums, more := base, turn
		if i > 0 || base == nil {
			w.products(k, l, w.sums, in, n, w.theta[l.wide])
			sums = w.sums
		}
		if sign != 0 && (i > 0 || turn == nil) {
			w.products(k, l, w.more, in, n, w.eps[l.wide])
			more = w.more
		}
		w.biases(l, sign)
		s := kernel.Settling{X: sums, Y: more, Sign: sign, Bias: w.bias, Shift: l.shift, Rows: n, Cols: l.nOut}
		if i == len(layers)-1 {
			k.SettleWide(w.logits, &s, models.MostLogit)
			return
		}
		k.Settle(out, &s)
		in = out
	}
}

// biases computes the biases of a layer, zero if it has none.
func (w *wholePass) biases(l *wholeLayer, sign int32) {
	bias := w.bias[:l.nOut]
	clear(bias)
	if l.bias < 0 {
		return
	}
	for j := range bias {
		if bias[j] = int32(w.theta[l.bias][j]); sign != 0 {
			bias[j] += sign * int32(w.eps[l.bias][j])
		}
	}
}

// lookUp writes the embedding's rows for the input bytes, with negative values replaced by zero.
func (w *wholePass) lookUp(l *wholeLayer, out, in []uint8, n int, sign int32) {
	each, from, to := l.nOut/l.nIn, words(l.nIn), words(l.nOut)
	wide, theta := kernel.ByteStride(each), w.theta[l.wide]
	eps := theta
	if sign != 0 {
		eps = w.eps[l.wide]
	}
	for r := range l.entries {
		row, theta, eps := w.table[r*each:][:each], theta[r*wide:][:each], eps[r*wide:][:each]
		for j, x := range theta {
			row[j] = uint8(max(int32(x)+sign*int32(eps[j]), 0))
		}
	}
	for s := range n {
		y := out[s*to : (s+1)*to]
		for p, b := range in[s*from:][:l.nIn] {
			copy(y[p*each:(p+1)*each], w.table[int(b)*each:])
		}
		clear(y[l.nOut:])
	}
}
