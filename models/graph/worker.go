package graph

import (
	"math"

	"brood/models"
	"brood/models/noise"
)

// keep is the largest number of compiled graphs of a worker; beyond it, all are dropped.
const keep = 12

type netKey struct {
	samples int
	mode    mode
}

// worker is one thread's graphs and buffers.
type worker struct {
	e      *Engine
	lane   int
	nets   map[netKey]*net
	raw    []float32 // samples x features, as gathered
	pixels []float32
	labels []int32
	hot    []float32
	masks  [][]float32
	theta  []float32 // parameters of a candidate
	params []float32 // of the current run, and their gradient
	grad   []float32
	stats  []float32
}

// buffer returns a reused buffer of n elements with undefined contents.
func (w *worker) buffer(b *[]float32, n int) []float32 {
	if cap(*b) < n {
		*b = make([]float32, n)
	}
	return (*b)[:n]
}

func (w *worker) net(samples int, m mode) (*net, error) {
	k := netKey{samples, m}
	if n := w.nets[k]; n != nil {
		return n, nil
	}
	n, err := w.e.build(samples, m)
	if err != nil {
		return nil, err
	}
	if len(w.nets) >= keep {
		clear(w.nets)
	}
	w.nets[k] = n
	return n, nil
}

// gather returns the samples, drawn at an address, in the layout of the graph's input, and the labels of the samples or
// of their positions; valid until the next call.
func (w *worker) gather(ids []int32, at noise.Key) ([]float32, []int32, error) {
	m := w.e.model
	raw := w.buffer(&w.raw, len(ids)*m.Features)
	if cap(w.labels) < len(ids)*m.Positions {
		w.labels = make([]int32, len(ids)*m.Positions)
	}
	labels := w.labels[:len(ids)*m.Positions]
	if err := w.e.set.GatherDrawn(ids, at, raw, labels[:len(ids)]); err != nil {
		return nil, nil, err
	}
	for i := 0; m.Positions > 1 && i < len(ids); i++ {
		for t, b := range w.e.set.Next(ids[i]) {
			labels[i*m.Positions+t] = int32(b)
		}
	}
	if m.Vocabulary > 0 {
		hot := w.buffer(&w.pixels, len(raw)*m.Vocabulary)
		clear(hot)
		for i, b := range raw {
			hot[i*m.Vocabulary+int(b)] = 1
		}
		return hot, labels, nil
	}
	if w.e.images {
		return raw, labels, nil
	}
	px := w.buffer(&w.pixels, len(raw))
	transpose(px, raw, len(ids), m.Features)
	return px, labels, nil
}

// transpose writes src (rows x cols) to dst (cols x rows), in squares that stay in the cache.
func transpose(dst, src []float32, rows, cols int) {
	const side = 16
	for i := 0; i < rows; i += side {
		for j := 0; j < cols; j += side {
			for r := i; r < min(rows, i+side); r++ {
				for c := j; c < min(cols, j+side); c++ {
					dst[c*rows+r] = src[r*cols+c]
				}
			}
		}
	}
}

// score returns the summed loss and the correct predictions of logits, or with targets their squared errors, or for a
// multi-label model the shares of wrong classes; samples is as returned by gather.
func (w *worker) score(logits, samples []float32, ids, labels []int32) (loss float64, correct int64, squares float64) {
	switch w.e.model.Loss {
	case models.MSE, models.Huber:
		loss, squares = w.regression(logits, ids)
		return loss, 0, squares
	case models.BCE:
		return w.independent(logits, ids)
	case models.CrossEntropy:
		n := w.e.model.Positions
		loss, correct = score(logits, labels, n, func(s int) float64 { return float64(w.e.set.Weight(ids[s])) })
		return loss, correct, 0
	}
	n, features := len(labels), w.e.model.Features
	for i, z := range logits {
		if w.e.images { // one sample after the other, while logits are interleaved
			i = i%n*features + i/n
		}
		d := float64(z) - float64(samples[i])
		loss += float64(d * d)
	}
	return loss, 0, 0
}

// smoothed returns the part of a summed training loss from label smoothing: for each sample its weight times
// s*(z[label] - mean(z)), a mean over its positions.
func (w *worker) smoothed(logits []float32, ids, labels []int32) (sum float64) {
	m, n := w.e.model, len(labels)
	if m.Smoothing == 0 {
		return 0
	}
	for s, l := range labels {
		var all float64
		for c := range m.Classes {
			all += float64(logits[c*n+s])
		}
		weight := float64(w.e.set.Weight(ids[s/m.Positions])) / float64(m.Positions)
		sum += float64(weight * m.Smoothing * (float64(logits[int(l)*n+s]) - all/float64(m.Classes)))
	}
	return sum
}

// regression returns the summed loss and squared errors of results (outputs x samples), both means over the outputs.
func (w *worker) regression(results []float32, ids []int32) (loss, squares float64) {
	m, set := w.e.model, w.e.set
	for s, id := range ids {
		for k, t := range set.Targets(id) {
			e := math.Abs(float64(results[k*len(ids)+s]) - float64(t))
			square := float64(e * e)
			squares += square / float64(m.Outputs)
			switch {
			case m.Loss == models.MSE:
				loss += square / float64(m.Outputs)
			case e <= models.HuberDelta:
				loss += square / 2 / float64(m.Outputs)
			default:
				loss += models.HuberDelta * (e - models.HuberDelta/2.0) / float64(m.Outputs)
			}
		}
	}
	return loss, squares
}

// independent returns the summed loss of logits (classes x samples), a mean over the classes, the number of samples
// whose classes are all correct, and the summed share of wrong classes.
func (w *worker) independent(logits []float32, ids []int32) (loss float64, correct int64, wrong float64) {
	classes := w.e.model.Outputs
	for s, id := range ids {
		misses := 0
		for k, t := range w.e.set.Targets(id) {
			z := float64(logits[k*len(ids)+s])
			soft := max(z, 0) + math.Log1p(math.Exp(-math.Abs(z)))
			loss += (soft - float64(z*float64(t))) / float64(classes)
			if (z > 0) != (t == 1) {
				misses++
			}
		}
		if misses == 0 {
			correct++
		}
		wrong += float64(misses) / float64(classes)
	}
	return loss, correct, wrong
}

// score returns the weighted sum of the samples' cross-entropies, means over their positions, and the correct
// predictions at their last positions, of logits (classes x samples*positions), using log-sum-exp in float64.
func score(logits []float32, labels []int32, positions int, weight func(s int) float64) (loss float64, correct int64) {
	n := len(labels)
	for s, l := range labels {
		top, best := math.Inf(-1), 0
		for k := 0; k*n < len(logits); k++ {
			if v := float64(logits[k*n+s]); v > top {
				top, best = v, k
			}
		}
		var sum float64
		for k := 0; k*n < len(logits); k++ {
			sum += math.Exp(float64(logits[k*n+s]) - top)
		}
		loss += float64(weight(s/positions) / float64(positions) * (top + math.Log(sum) - float64(logits[int(l)*n+s])))
		if best == int(l) && s%positions == positions-1 {
			correct++
		}
	}
	return loss, correct
}
