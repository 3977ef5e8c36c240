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

// wholePass is what a thread keeps of such a model: weights and noise, the values of a piece, and the sums of its first
// layer, which the candidates of a task share.
type wholePass struct {
	theta, eps [][]int8   // by tensor, in rows of kernel.ByteStride
	values     [3][]uint8 // the samples, and what layers take and give, in rows of whole words
	part, none []float32  // some columns of a product, and no biases
	base, turn []int32    // sums of the first layer: by the weights, for a batch; by the noise, for a piece
	sums, more []int32    // the same of a layer behind it, for a piece
	bias       []int32    // of a layer
	logits     []int32
	drawn      []byte
	task       uint64 // that theta and base belong to, 0: none
	ids        []int32
	at         noise.Key
}

// rowsOf is a tensor's rows, and their bytes in memory.
func rowsOf(t *engine.Tensor) (rows, stride int) { return t.Len / t.Cols, kernel.ByteStride(t.Cols) }

// widths are the bytes of a sample's values, and the most that a layer gives.
func (e *Engine) widths() (wide, most int) {
	m := e.plan.model
	wide, most = words(m.Features), m.Classes
	for _, l := range e.whole {
		wide, most = max(wide, words(l.nOut)), max(most, l.nOut)
	}
	return wide, most
}

// wholeReady makes space for weights, and a piece of so many samples; with noise for that of a pair, of so large a
// batch.
func (e *Engine) wholeReady(w *wholePass, samples, batch int, perturbed bool) {
	m := e.plan.model
	wide, most := e.widths()
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
	w.part, w.none, w.bias = grown(w.part, samples*most), grown(w.none, most), grown(w.bias, most)
	w.sums, w.logits, w.drawn = grown(w.sums, samples*most), grown(w.logits, samples*m.Classes), grown(w.drawn, m.Features)
	if perturbed {
		w.turn, w.more = grown(w.turn, samples*e.whole[0].nOut), grown(w.more, samples*most)
		w.base = grown(w.base, batch*e.whole[0].nOut)
	}
}

// wholeRead takes weights.
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

// wholeDraw draws the noise of a pair, sigma*eps as whole numbers.
func (e *Engine) wholeDraw(k *kernel.Kernels, w *wholePass, key noise.Key, sigma float32) {
	var table [256]int8
	for v := -engine.MostWhole; v <= engine.MostWhole; v++ {
		table[uint8(v)] = engine.Whole(sigma * float32(float32(v)*noise.IntegerScale))
	}
	s := key.Schedule()
	for i := range e.layout.Tensors {
		t := &e.layout.Tensors[i]
		rows, _ := rowsOf(t)
		key.Stream = uint32(i)
		eps := w.eps[i]
		k.IntegerBytes(eps, kernel.Field{Key: key, Schedule: s, Cols: t.Cols}, rows)
		for j, v := range eps {
			eps[j] = table[uint8(v)]
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

// gather loads samples, the first of which was drawn at an address.
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

// exactColumns are so many that float32 holds the sum of as many products of bytes: 512*255*127 is below 2^24.
const exactColumns = 512

// products writes the sums of n samples by a layer's weights, or their noise.
func (w *wholePass) products(k *kernel.Kernels, l *wholeLayer, dst []int32, in []uint8, n int, weights []int8) {
	stride, wide := words(l.nIn), kernel.ByteStride(l.nIn)
	for lo := 0; lo < l.nIn; lo += exactColumns {
		p := w.part[:n*l.nOut]
		k.GemmBytes(n, l.nOut, min(exactColumns, l.nIn-lo), in[lo:], stride, weights[lo:], wide, p, l.nOut, 1, w.none)
		if lo == 0 {
			for i, x := range p {
				dst[i] = int32(x)
			}
			continue
		}
		for i, x := range p {
			dst[i] += int32(x)
		}
	}
}

// forward writes the logits of the n samples that were gathered, for theta + sign*eps. base and turn are the sums of
// the first layer where they are known.
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
		if sign != 0 {
			for j, x := range sums[:n*l.nOut] {
				w.sums[j] = x + sign*more[j]
			}
			sums = w.sums
		}
		w.settle(l, out, sums, n, sign, i == len(layers)-1)
		in = out
	}
}

// settle makes values of sums, or logits.
func (w *wholePass) settle(l *wholeLayer, out []uint8, all []int32, n int, sign int32, last bool) {
	half, next := int32(1)<<(l.shift-1), words(l.nOut)
	bias := w.bias[:l.nOut]
	clear(bias)
	if l.bias >= 0 {
		for j := range bias {
			if bias[j] = int32(w.theta[l.bias][j]); sign != 0 {
				bias[j] += sign * int32(w.eps[l.bias][j])
			}
		}
	}
	for s := range n {
		sums := all[s*l.nOut : (s+1)*l.nOut]
		if last {
			z := w.logits[s*l.nOut : (s+1)*l.nOut]
			for j, x := range sums {
				z[j] = min(max((x+half)>>l.shift+bias[j], -models.MostLogit), models.MostLogit)
			}
			continue
		}
		y := out[s*next : (s+1)*next]
		for j, x := range sums {
			y[j] = uint8(min(max((x+half)>>l.shift+bias[j], 0), math.MaxUint8))
		}
		clear(y[l.nOut:])
	}
}

// lookUp writes the rows of the bytes, where they are above zero.
func (w *wholePass) lookUp(l *wholeLayer, out, in []uint8, n int, sign int32) {
	each, from, to := l.nOut/l.nIn, words(l.nIn), words(l.nOut)
	wide := kernel.ByteStride(each)
	for s := range n {
		y := out[s*to : (s+1)*to]
		for p, b := range in[s*from:][:l.nIn] {
			at := y[p*each : (p+1)*each]
			for j, x := range w.theta[l.wide][int(b)*wide:][:each] {
				v := int32(x)
				if sign != 0 {
					v += sign * int32(w.eps[l.wide][int(b)*wide+j])
				}
				at[j] = uint8(max(v, 0))
			}
		}
		clear(y[l.nOut:])
	}
}
