package native

import (
	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/native/kernel"
	"brood/models/noise"
)

// firstDense holds the products of a first dense layer that the candidates of a task share: x*(W + s*E)' = x*W' +
// s*(x*E)'. All candidates with the same batch share the first product, both signs of a pair share the second.
type firstDense struct {
	base, turn []float32 // x*W' + b of a whole batch; x*E' and the bias's noise of a piece
	task       uint64    // task of base; 0: none
	ids        []int32   // batch of base
	at         noise.Key // address at which ids was drawn

	// For integer noise on samples of bytes:
	pixels, ones []uint8 // of the batch, in rows padded to words
	whole        []int8  // noise of the weights
	bias, shift  []float32
}

// starts reports whether base contains this batch, with this many outputs per sample. It reserves base and marks it as
// empty until ended, in case of an error.
func (a *firstDense) starts(task uint64, ids []int32, at noise.Key, outputs int) bool {
	known := a.task == task && same(a.ids, ids) && a.at == at
	a.task, a.base = 0, grown(a.base, len(ids)*outputs)
	return known
}

func (a *firstDense) ended(task uint64, ids []int32, at noise.Key) {
	a.task, a.ids, a.at = task, ids, at
}

// end returns the index of the first parameter after this layer.
func (o *dense) end(e *Engine) int {
	t := e.layout.Tensors[o.wide]
	if o.bias >= 0 {
		t = e.layout.Tensors[o.bias]
	}
	return t.Lo + t.Len
}

// product computes the product of the loaded samples with the layer's tensors in params, plus its bias.
func (o *dense) product(p *pass, params, out []float32) {
	var ep kernel.Epilogue
	if o.bias >= 0 {
		ep.Bias = tensor(params, p.plan.model, o.bias)
	}
	p.multiply(p.k, o.nOut, o.nIn, p.act[o.in], tensor(params, p.plan.model, o.wide), out, o.nOut, &ep)
}

// combine computes the layer's result base + step*turn.
func (o *dense) combine(p *pass, a *firstDense, lo int, step float32) {
	y := p.all(o.out)
	p.k.Lin(y, []float32{1, step}, [][]float32{a.base[lo*o.nOut:][:len(y)], a.turn[:len(y)]})
	if o.rectify {
		p.k.Relu(y, y)
	}
}

// inBytes reports whether x*E' can be computed as a product of bytes: the noise consists of integers, and the samples
// are bytes, all mapped to x by the same linear function.
func (e *Engine) inBytes(t *engine.Candidates, o *dense) bool {
	return t.Noise.Integer && t.Scale.Rows == 0 && e.byteLayer(o)
}

// byteLayer reports whether a first layer may be a product of bytes.
func (e *Engine) byteLayer(o *dense) bool {
	return o.in == 0 && len(e.set.Normal()) == 1 && o.nIn < 1<<16 && e.plan.model.Loss == models.CrossEntropy
}

// drawBytes draws the layer's noise and, unless known, gathers the batch. x = (pixel/255 - mean)/deviation, so that
// x*E' = scale/(255*deviation) * pixels*V' - scale*mean/deviation * 1*V' for E = scale*V; the second term is the same
// row for all samples.
func (a *firstDense) drawBytes(p *pass, o *dense, key noise.Key, set *data.Set, ids []int32, at noise.Key, known bool) {
	l, stride := p.thread, (o.nIn+3)/4*4
	if !known {
		a.pixels, a.ones = grown(a.pixels, len(ids)*stride), grown(a.ones, stride)
		for i, id := range ids {
			row := a.pixels[i*stride : (i+1)*stride]
			copy(row, set.Drawn(row, id, at))
			at.Round++
		}
		for i := range o.nIn {
			a.ones[i] = 1
		}
	}
	tensors := p.plan.model.Layout.Tensors
	wide := kernel.ByteStride(o.nIn)
	a.whole, a.bias, a.shift = grown(a.whole, o.nOut*wide), grown(a.bias, o.nOut), grown(a.shift, o.nOut)
	s := key.Schedule()
	key.Stream = uint32(o.wide)
	l.IntegerBytes(a.whole, kernel.Field{Key: key, Schedule: s, Cols: tensors[o.wide].Cols}, o.nOut)
	if o.bias >= 0 {
		key.Stream = uint32(o.bias)
		l.Integers(a.bias[:o.nOut], noise.IntegerScale, kernel.Field{Key: key, Schedule: s, Cols: tensors[o.bias].Cols}, 0)
	}
	l.GemmBytes(1, o.nOut, o.nIn, a.ones, stride, a.whole, wide, a.shift, o.nOut,
		-noise.IntegerScale*float32(set.Mean[0])/float32(set.Std[0]), a.bias)
}

// byteProduct computes the product of the loaded samples, which begin at index lo of the batch, with the noise.
func (a *firstDense) byteProduct(p *pass, o *dense, set *data.Set, lo int) {
	stride := (o.nIn + 3) / 4 * 4
	a.turn = grown(a.turn, p.n*o.nOut)
	p.k.GemmBytes(p.n, o.nOut, o.nIn, a.pixels[lo*stride:], stride, a.whole, kernel.ByteStride(o.nIn), a.turn, o.nOut,
		noise.IntegerScale/(255*float32(set.Std[0])), a.shift)
}
