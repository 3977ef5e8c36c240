package graph

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"brood/models"
	"brood/models/engine"
	"brood/models/noise"
)

// inputs of one execution. The caller owns all slices.
type inputs struct {
	params []float32
	stats  []float32 // updated in place in training, replaced with the batch's own in batchStats; may be nil there
	pixels []float32 // in the layout of net.input
	labels []int32
	ids    []int32 // of the samples, in training
	mask   noise.Key
	grad   []float32 // out, in training
}

func bind(n *G.Node, data []float32) error {
	return G.Let(n, tensor.New(tensor.WithShape(n.Shape()...), tensor.WithBacking(data)))
}

// run executes the graph once; the logits, in the shape of net.logits, are valid until the next run.
func (w *worker) run(n *net, in inputs) (logits []float32, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("graph of %s: %v", w.e.model.Name, p)
		}
	}()
	l := &w.e.model.Layout
	defer n.vm.Reset()
	if err := bind(n.input, in.pixels); err != nil {
		return nil, err
	}
	// gonum's dot product first aligns to 16 bytes: sums would depend on the address of a row. Copies in the worker's
	// own buffers always have the same alignment.
	w.params = w.buffer(&w.params, l.Params)
	copy(w.params, in.params)
	for i, t := range l.Tensors {
		if err := bind(n.params[i], w.params[t.Lo:t.Lo+t.Len]); err != nil {
			return nil, err
		}
	}
	if n.mode == training {
		w.grad = w.buffer(&w.grad, l.Params)
		for i, t := range l.Tensors {
			n.grads[i] = tensor.New(tensor.WithShape(n.params[i].Shape()...), tensor.WithBacking(w.grad[t.Lo:t.Lo+t.Len]))
		}
		if err := w.bindTargets(n, in); err != nil {
			return nil, err
		}
	}
	if err := w.exchange(n, in.stats, false); err != nil {
		return nil, err
	}
	if err := n.vm.RunAll(); err != nil {
		return nil, err
	}
	if err := w.exchange(n, in.stats, true); err != nil {
		return nil, err
	}
	copy(in.grad, w.grad)
	return n.logits.Data().([]float32), nil
}

// bindTargets sets the one-hot labels, or the targets, and the dropout masks of a training run.
func (w *worker) bindTargets(n *net, in inputs) error {
	if n.target != nil {
		rows := n.samples * w.e.model.Positions
		hot := w.buffer(&w.hot, rows*w.e.model.Outputs)
		clear(hot)
		for s, l := range in.labels {
			if !w.e.model.Targeted() {
				w.label(hot, rows, s, int(l), in.ids[s/w.e.model.Positions])
				continue
			}
			for k, t := range w.e.set.Targets(in.ids[s]) {
				hot[k*rows+s] = t
			}
		}
		if err := bind(n.target, hot); err != nil {
			return err
		}
	}
	for i, m := range n.masks {
		if len(w.masks) <= i {
			w.masks = append(w.masks, nil)
		}
		l := &w.e.model.Layers[m.layer]
		v := w.buffer(&w.masks[i], n.samples*models.Size(l.In))
		drop(v, n.samples, l, in.mask, uint32(m.layer))
		if err := bind(m.node, v); err != nil {
			return err
		}
	}
	return nil
}

// label writes the target of row s of a batch, a sample or a position, for each class, with label smoothing and the
// sample's weight.
func (w *worker) label(hot []float32, rows, s, label int, id int32) {
	m, weight := w.e.model, float64(w.e.set.Weight(id))
	if m.Smoothing > 0 {
		for c := range m.Classes {
			hot[c*rows+s] = float32(weight * m.Smoothing / float64(m.Classes))
		}
	}
	hot[label*rows+s] += float32(weight * (1 - m.Smoothing))
}

// drop writes a mask, determined by element sample*features+feature of the layer's stream. Flat masks are features x
// samples.
func drop(dst []float32, samples int, l *models.Layer, key noise.Key, layer uint32) {
	key.Stream = layer
	s, keep := key.Schedule(), 1/(1-float32(l.Rate))
	limit := uint32(l.Rate * (1 << 24))
	features := len(dst) / samples
	flat := len(l.In) == 1
	var words [4]uint32
	for e := range dst {
		if e%4 == 0 {
			words = s.Block(key.Counter(uint32(e / 4)))
		}
		at := e
		if flat {
			at = e%features*samples + e/features
		}
		if words[e%4]>>8 < limit {
			dst[at] = 0
		} else {
			dst[at] = keep
		}
	}
}

// exchange copies batch-norm statistics between a row and the operators: to them before a run, from them (out) after
// it.
func (w *worker) exchange(n *net, stats []float32, out bool) error {
	if stats == nil || out && n.mode == running || !out && n.mode == batchStats {
		return nil
	}
	for _, b := range n.norms {
		l := &w.e.model.Layers[b.layer]
		mean, vari := view(stats, w.e.model.Layout.StatTensors[l.Mean]), view(stats, w.e.model.Layout.StatTensors[l.Var])
		if out {
			m, v := b.op.Stats()
			copy(mean, m.Data().([]float32))
			copy(vari, v.Data().([]float32))
			continue
		}
		m := tensor.New(tensor.WithShape(len(mean)), tensor.WithBacking(mean))
		v := tensor.New(tensor.WithShape(len(vari)), tensor.WithBacking(vari))
		if err := b.op.SetStats(m, v); err != nil {
			return err
		}
	}
	return nil
}

func view(flat []float32, t engine.Tensor) []float32 { return flat[t.Lo : t.Lo+t.Len] }
