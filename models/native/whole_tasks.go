package native

import (
	"context"
	"fmt"
	"math"

	"brood/models"
	"brood/models/data"
	"brood/models/engine"
	"brood/models/native/kernel"
	"brood/models/noise"
)

// wholeFits returns an error if a whole-number model cannot use the data set.
func wholeFits(m *models.Model, d *data.Set) error {
	switch {
	case d.Normal() == nil && d.Len() > 0:
		return fmt.Errorf("model %s computes in whole numbers, but the samples of %s are not bytes; choose images or "+
			"a text, or a model of floats", m.Name, d.Name)
	case d.Weighs():
		return fmt.Errorf("model %s computes in whole numbers, but class weights are not; leave them out, or choose a "+
			"model of floats", m.Name)
	}
	return nil
}

func (e *Engine) wholeEvaluate(ctx context.Context, t engine.Evaluate) error {
	if err := e.bounds.Evaluate(&t); err != nil {
		return err
	}
	work := e.splitBatches(t.Batches, t.Drawn, false)
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

// wholeScore returns the loss and the number of correct predictions of parameters on samples.
func (e *Engine) wholeScore(p *pass, params []float32, ids []int32, at noise.Key) (loss, correct int64, err error) {
	w := &p.whole
	e.wholeReady(w, min(maxPassSamples, len(ids)), 0, false)
	e.wholeRead(w, params)
	for len(ids) > 0 {
		n := min(maxPassSamples, len(ids))
		if err := w.gather(e.set, e.plan.model.Features, ids[:n], at); err != nil {
			return 0, 0, err
		}
		w.forward(p.k, e.whole, n, 0, nil, nil)
		l, c := w.score(p.k, e.plan.model, e.set, ids[:n])
		loss, correct, ids, at.Round = loss+l, correct+c, ids[n:], at.Round+uint64(n)
	}
	return loss, correct, nil
}

// wholeLogits writes the logits of samples, in nats.
func (e *Engine) wholeLogits(p *pass, params []float32, ids []int32, out []float32) error {
	m, w := e.plan.model, &p.whole
	e.wholeReady(w, len(ids), 0, false)
	e.wholeRead(w, params)
	if err := w.gather(e.set, m.Features, ids, noise.Key{}); err != nil {
		return err
	}
	w.forward(p.k, e.whole, len(ids), 0, nil, nil)
	for i, z := range w.logits[:len(ids)*m.Classes] {
		out[i] = float32(float64(z) * (math.Ln2 / models.LogitUnits))
	}
	return nil
}

// wholeCandidates evaluates pairs in parallel. Under integer noise the sums of a candidate are those with the weights
// plus or minus those with the noise. They are exact, so all candidates with the same batch, and both of a pair, share
// those of the first layer. Under other noise a candidate's weights are computed.
func (e *Engine) wholeCandidates(ctx context.Context, t engine.Candidates) error {
	if err := e.bounds.Candidates(&t); err != nil {
		return err
	}
	e.task++
	work := pairs(&t)
	exact := t.Noise.Integer && t.Scale.Rows == 0
	return e.each(ctx, len(work), func(p *pass, i int) error {
		v, losses := work[i], [2]int64{}
		ids, at := batch(&t, v.at)
		if exact {
			if err := e.wholePair(p, &t, v, &losses); err != nil {
				return err
			}
		} else {
			e.spread(p, &t, v, 0, 0)
			for j := range v.n {
				loss, _, err := e.wholeScore(p, p.variant.theta[j], ids, at)
				if err != nil {
					return err
				}
				losses[j] = loss
			}
		}
		for j := range v.n {
			t.Fitness[v.at+j] = fitness(nats(losses[j]), len(ids))
		}
		t.Report(v.n)
		return nil
	})
}

// wholePair adds up the losses of a pair under integer noise.
func (e *Engine) wholePair(p *pass, t *engine.Candidates, v pair, losses *[2]int64) error {
	w, first := &p.whole, &e.whole[0]
	ids, at := batch(t, v.at)
	e.wholeReady(w, min(maxPassSamples, len(ids)), len(ids), true)
	if w.task != e.task {
		e.wholeRead(w, flat(t.Theta))
		w.task, w.ids = e.task, nil
	}
	known := same(w.ids, ids) && w.at == at
	w.ids = nil
	e.wholeDraw(p.k, w, v.key, t.Sigma)
	from := at
	for lo := 0; lo < len(ids); lo += maxPassSamples {
		n := min(maxPassSamples, len(ids)-lo)
		if !known || n < len(ids) { // otherwise these samples are still loaded
			if err := w.gather(e.set, e.plan.model.Features, ids[lo:lo+n], from); err != nil {
				return err
			}
		}
		from.Round += uint64(n)
		var base, turn []int32
		if !first.table {
			base, turn = w.base[lo*first.nOut:(lo+n)*first.nOut], w.turn
			if !known {
				w.products(p.k, first, base, w.values[0], n, w.theta[first.wide])
			}
			w.products(p.k, first, turn, w.values[0], n, w.eps[first.wide])
		}
		for j := range v.n {
			_, sign := engine.Signed(t.Key, t.Antithetic, t.IDs[v.at+j])
			w.forward(p.k, e.whole, n, int32(sign), base, turn)
			l, _ := w.score(p.k, e.plan.model, e.set, ids[lo:lo+n])
			losses[j] += l
		}
	}
	w.ids, w.at = ids, at
	return nil
}

// wholeMemory is EstimateMemory for a whole-number model.
func (e *Engine) wholeMemory(w engine.Work) (bytes int64) {
	m := e.plan.model
	pairs, scores := w.Candidates, w.Rows*((w.Scores+maxPassSamples-1)/maxPassSamples)
	if w.Antithetic {
		pairs = (pairs + 1) / 2
	}
	wide, most, table := e.widths()
	weights := 0
	for i := range m.Layout.Tensors {
		rows, stride := rowsOf(&m.Layout.Tensors[i])
		weights += rows * stride
	}
	for i, p := range e.passes {
		samples, keep := 0, kernel.Scratch{}
		if i < scores {
			samples = min(w.Scores, maxPassSamples)
		}
		if i < pairs {
			samples = max(samples, min(w.Batch, maxPassSamples))
			keep.Line = true
			if w.Noise.Integer {
				bytes += int64(weights + 4*(samples*(e.whole[0].nOut+most)+w.Batch*e.whole[0].nOut))
			} else {
				bytes += 12 * int64(m.Layout.Params)
			}
		}
		if bytes += e.fixed(); i < pairs || w.Sums > 0 {
			bytes += e.factorBytes(w.Noise)
		}
		if samples > 0 {
			bytes += int64(weights + m.Features + table + 3*samples*wide + 4*(samples*most+most+samples*m.Classes) + 12*samples)
			for _, l := range e.whole {
				if !l.table {
					scratch := p.k.BytesScratch(samples, l.nOut, l.nIn)
					scratch.Totals = 0 // sums become floats
					keep = keep.Max(scratch)
				}
			}
		}
		if w.Sums > 0 {
			s, more := e.sumBytes(w, p.thread.Kernels)
			bytes, keep = bytes+s, keep.Max(more)
		}
		bytes += keep.Bytes()
	}
	return bytes + sumIDs(w)
}
