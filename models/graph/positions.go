package graph

import (
	"math"
	"strconv"

	G "gorgonia.org/gorgonia"

	"brood/models"
)

// byPosition makes each position of a text a sample: positions*wide x samples becomes wide x samples*positions.
func (b *builder) byPosition(positions, wide int) {
	b.to(func() (*G.Node, error) { return G.Transpose(b.x, 1, 0) })
	b.reshape(b.net.samples*positions, wide)
	b.to(func() (*G.Node, error) { return G.Transpose(b.x, 1, 0) })
}

// bySample is the inverse of byPosition.
func (b *builder) bySample(positions, wide int) {
	b.to(func() (*G.Node, error) { return G.Transpose(b.x, 1, 0) })
	b.reshape(b.net.samples, positions*wide)
	b.to(func() (*G.Node, error) { return G.Transpose(b.x, 1, 0) })
}

// far is added to the score of a position that must not be attended to: its exponential is zero.
const far = -1e30

// attention processes its heads one by one, selecting the rows of q, k and v by products with ones and zeros. Scores
// are attended positions x samples*positions of the result, since a softmax runs along axis 0 (decision 6).
func (b *builder) attention(i int, l *models.Layer) {
	samples, steps, queries := b.net.samples, b.m.Features, l.Queries(b.m)
	wide := l.In[0] / steps
	d := wide / l.Heads
	weight, bias := b.param(l.Weight, 3*wide, wide), b.param(l.Bias, 3*wide, 1)
	out, outBias := b.param(l.Project[0], wide, wide), b.param(l.Project[1], wide, 1)
	label := strconv.Itoa(i)
	mask := make([]float32, steps*samples*queries)
	for u := range steps {
		for at := range samples * queries {
			if u > steps-queries+at%queries {
				mask[u*samples*queries+at] = far
			}
		}
	}
	unseen := b.fixed("unseen"+label, mask, steps, samples*queries)
	if steps > 1 {
		b.byPosition(steps, wide)
	}
	b.to(func() (*G.Node, error) { return G.Mul(weight, b.x) })
	b.to(func() (*G.Node, error) { return G.BroadcastAdd(b.x, bias, nil, []byte{1}) })
	qkv := b.x
	var sum *G.Node
	for h := range l.Heads {
		at := label + "." + strconv.Itoa(h)
		rows := func(which int) *G.Node { // samples x positions x channels of the head
			pick := b.fixed("pick"+at+"."+strconv.Itoa(which), unitRows(d, 3*wide, which*wide+h*d), d, 3*wide)
			b.x = qkv
			b.to(func() (*G.Node, error) { return G.Mul(pick, b.x) })
			b.to(func() (*G.Node, error) { return G.Transpose(b.x, 1, 0) })
			if which == 0 && queries < steps {
				b.reshape(samples, steps*d)
				b.to(func() (*G.Node, error) { return G.Transpose(b.x, 1, 0) })
				last := b.fixed("last"+at, unitRows(d, steps*d, (steps-1)*d), d, steps*d)
				b.to(func() (*G.Node, error) { return G.Mul(last, b.x) })
				b.to(func() (*G.Node, error) { return G.Transpose(b.x, 1, 0) })
				b.reshape(samples, 1, d)
			} else {
				b.reshape(samples, steps, d)
			}
			return b.x
		}
		v, k, q := rows(2), rows(1), rows(0)
		b.to(func() (*G.Node, error) { return G.BatchedMatMul(q, k, false, true) })
		b.reshape(samples*queries, steps)
		b.to(func() (*G.Node, error) { return G.Transpose(b.x, 1, 0) })
		b.times(float32(1 / math.Sqrt(float64(d))))
		b.to(func() (*G.Node, error) { return G.Add(b.x, unseen) })
		b.to(func() (*G.Node, error) { return G.SoftMax(b.x, 0) })
		b.to(func() (*G.Node, error) { return G.Transpose(b.x, 1, 0) })
		b.reshape(samples, queries, steps)
		w := b.x
		b.to(func() (*G.Node, error) { return G.BatchedMatMul(w, v) })
		b.reshape(samples*queries, d)
		b.to(func() (*G.Node, error) { return G.Transpose(b.x, 1, 0) })
		turned := make([]float32, wide*d)
		for j := range d {
			turned[(h*d+j)*d+j] = 1
		}
		into := b.fixed("into"+at, turned, wide, d)
		b.to(func() (*G.Node, error) { return G.Mul(into, b.x) })
		if sum != nil {
			b.to(func() (*G.Node, error) { return G.Add(sum, b.x) })
		}
		sum = b.x
	}
	b.to(func() (*G.Node, error) { return G.Mul(out, b.x) })
	b.to(func() (*G.Node, error) { return G.BroadcastAdd(b.x, outBias, nil, []byte{1}) })
	if queries > 1 {
		b.bySample(queries, wide)
	}
}
