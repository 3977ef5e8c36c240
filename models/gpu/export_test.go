package gpu

import (
	"brood/models"
	"brood/models/engine"
)

// Covers returns an UncoveredError if a part of the model has no kernels.
func Covers(m *models.Model) error {
	_, err := compile(m)
	return err
}

// Multiplication is a product C = op(A) op(B) of entries by tensor cores, whose kernels the device has loaded. The
// matrices of the entries are stored consecutively: rows of A have length m if TurnedA, and so on. A nil Bias, Gate or
// C0 is absent; with C0, C is fma(Factors, A B, C0).
type Multiplication struct {
	Entries, M, N, K     int
	TurnedA, TurnedB     bool
	Relu                 bool
	Rows, Steps          []int // each entry's m, or k
	A, B, Bias, Gate, C0 []float32
	Factors              []float32
}

// Do computes the product and returns C.
func (p Multiplication) Do(d Device) ([]float32, error) {
	b := &batch{tensor: true}
	of := func(m Memory, rows, cols int, turned bool) place {
		if turned {
			return place{m: m, step: uint64(rows * cols), list: none, down: 1, across: rows}
		}
		return place{m: m, step: uint64(rows * cols), list: none, down: cols, across: 1}
	}
	g := product{m: p.M, n: p.N, k: p.K, relu: p.Relu, add: p.C0 != nil, factors: none,
		a: of(1, p.M, p.K, p.TurnedA), b: of(2, p.K, p.N, p.TurnedB), c: of(3, p.M, p.N, false)}
	if p.Factors != nil {
		g.factors = b.floats(p.Factors...)
	}
	for i, sizes := range [][]int{p.Rows, p.Steps} {
		if sizes != nil {
			g.sized, g.sizes = uint32(i+1), b.list(numbers(sizes...)...)
		}
	}
	c := make([]float32, p.Entries*p.M*p.N)
	copy(c, p.C0)
	pieces := [][]float32{nil, p.A, p.B, c}
	if p.Bias != nil {
		g.bias = &place{m: Memory(len(pieces)), step: uint64(p.N), list: none}
		pieces = append(pieces, p.Bias)
	}
	if p.Gate != nil {
		gate := of(Memory(len(pieces)), p.M, p.N, false)
		g.gate = &gate
		pieces = append(pieces, p.Gate)
	}
	b.gemm(p.Entries, g)
	return b.on(d, pieces, 3)
}

// Images is a convolution of entries by tensor cores, or with Back the gradient of its input from the gradient of its
// result.
type Images struct {
	Entries, Most, In, H, W, Out, Side, Stride, Pad, Groups int
	Back, Relu                                              bool
	Sizes                                                   []int // samples of each entry
	// With Back, X is the gradient of the result; Bias and Gate may be nil.
	X, Weights, Bias, Gate []float32
}

// Plane returns height and width of the result.
func (c Images) Plane() (h, w int) {
	return (c.H+2*c.Pad-c.Side)/c.Stride + 1, (c.W+2*c.Pad-c.Side)/c.Stride + 1
}

// Do computes the convolution and returns its result.
func (c Images) Do(d Device) ([]float32, error) {
	h, w := c.Plane()
	b := &batch{tensor: true}
	o := &op{kind: models.Conv, shape: numbers(c.In, c.H, c.W, c.Out, c.Side, c.Stride, c.Pad, h, w, c.Groups),
		nIn: c.In * c.H * c.W, nOut: c.Out * h * w,
		channels: c.Out, plane: h * w, bias: -1, rectify: c.Relu}
	p := &pass{b: b, e: &Engine{}, entries: c.Entries, most: c.Most, sizes: b.list(numbers(c.Sizes...)...)}
	p.e.layout = &engine.Layout{Tensors: []engine.Tensor{{Len: len(c.Weights) / c.Entries},
		{Lo: len(c.Weights) / c.Entries}}}
	params := make([]float32, 0, len(c.Weights)+len(c.Bias))
	for z := range c.Entries {
		each := len(c.Weights) / c.Entries
		params = append(params, c.Weights[z*each:(z+1)*each]...)
		if c.Bias != nil {
			params = append(params, c.Bias[z*c.Out:(z+1)*c.Out]...)
		}
	}
	p.params = place{m: 2, step: uint64(len(params) / c.Entries), list: none}
	if c.Bias != nil {
		o.bias = 1
	}
	pieces := [][]float32{nil, c.X, params, nil, c.Gate}
	if c.Gate == nil {
		pieces = pieces[:4]
	}
	if !c.Back {
		pieces[3] = make([]float32, c.Entries*c.Most*o.nOut)
		p.conv(o, place{m: 1, step: uint64(c.Most * o.nIn), list: none},
			place{m: 3, step: uint64(c.Most * o.nOut), list: none})
		return b.on(d, pieces, 3)
	}
	pieces[3] = make([]float32, c.Entries*c.Most*o.nIn)
	gate := place{m: 3, step: uint64(c.Most * o.nIn), list: none}
	if c.Gate != nil {
		o.rectified, gate.m = true, 4
	}
	p.acts = []place{gate}
	p.convBack(o, 1, 3, place{m: 2}, true)
	b.launches = b.launches[len(b.launches)-1:]
	return b.on(d, pieces, 3)
}
