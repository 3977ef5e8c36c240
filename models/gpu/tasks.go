package gpu

import (
	"fmt"

	"brood/models"
	"brood/models/engine"
)

// piece is the number of samples whose losses are added up separately, then added to the total, in evaluations.
const piece = 128

// atOnce is the number of floats of activations that a batch may hold; one entry is always allowed.
const atOnce = 1 << 27

// waves splits n entries into ranges whose activations fit; per is the number of floats per entry.
func waves(n, per int, f func(lo, hi int) error) error {
	some := max(1, atOnce/max(1, per))
	for lo := 0; lo < n; lo += some {
		if err := f(lo, min(n, lo+some)); err != nil {
			return err
		}
	}
	return nil
}

// mats returns an error if a matrix is not memory of the engine.
func (e *Engine) mats(task string, ms ...engine.Mat) error {
	for _, m := range ms {
		if m.Rows*m.Cols > 0 && !e.held(m) {
			return &engine.ArgumentError{Task: task, What: fmt.Sprintf("a matrix of %dx%d has no memory here", m.Rows, m.Cols)}
		}
	}
	return nil
}

// rows returns the place of rows of a matrix for the entries.
func (b *batch) rows(m engine.Mat, rows []engine.Row) place {
	list := b.list()
	for _, r := range rows {
		b.words = append(b.words, uint32(r))
	}
	mem, at := behind(m)
	return place{m: mem, at: at, step: uint64(m.Cols), list: list}
}

func longest(batches [][]int32) (n int) {
	for _, b := range batches {
		n = max(n, len(b))
	}
	return n
}

func sizes(batches [][]int32) (out []int) {
	for _, b := range batches {
		out = append(out, len(b))
	}
	return out
}

// numbers appends the list lo, lo+1, ... hi-1.
func (b *batch) numbers(lo, hi int) uint32 {
	at := b.list()
	for i := lo; i < hi; i++ {
		b.words = append(b.words, uint32(i))
	}
	return at
}

func (e *Engine) gradients(t engine.Gradients) error {
	if err := e.bounds.Gradients(&t); err != nil {
		return err
	}
	if err := e.mats("gradients", t.X, t.G, t.Stats); err != nil {
		return err
	}
	n := len(t.Rows)
	if n == 0 {
		return nil
	}
	counts, out := sizes(t.Batches), t.Loss
	head := new(batch)
	at, err := e.sums(head, n, func(i int, loss float64, _ int64) { out[i] = float32(loss / float64(counts[i])) })
	if err != nil {
		return err
	}
	if err := e.issue(head); err != nil {
		return err
	}
	most := longest(t.Batches)
	return waves(n, most*(2*e.plan.total()+e.plan.widest()), func(lo, hi int) error {
		b := new(batch)
		p, err := e.begin(b, hi-lo, hi-lo, most, counts[lo:hi])
		if err != nil {
			return err
		}
		var views []view
		for i := lo; i < hi; i++ {
			v := view{ids: t.Batches[i]}
			if e.bounds.Changes {
				v.at = t.Masks[i]
			}
			views = append(views, v)
		}
		if e.bounds.Drops {
			p.masks = t.Masks[lo:hi]
		}
		from, err := e.gather(b, views, most, p.acts[0].m)
		if err != nil {
			return err
		}
		grads, err := p.gradients()
		if err != nil {
			return err
		}
		p.params = b.rows(t.X, t.Rows[lo:hi])
		if e.bounds.Norms {
			p.stats, p.pace = b.rows(t.Stats, t.StatRows[lo:hi]), models.NormMomentum
		}
		p.forward(0, true)
		if err := p.loss(from.ids, none, grads[e.plan.last], most, at, noSums, b.numbers(lo, hi), n); err != nil {
			return err
		}
		g, row := behind(t.G)
		if err := p.backward(grads, place{
			m:    g,
			at:   row + uint64(lo*t.G.Cols),
			step: uint64(t.G.Cols),
			list: none,
		}); err != nil {
			return err
		}
		return e.issue(b)
	})
}

func (e *Engine) evaluate(t engine.Evaluate) error {
	if err := e.bounds.Evaluate(&t); err != nil {
		return err
	}
	if err := e.mats("evaluate", t.X, t.Stats); err != nil {
		return err
	}
	n := len(t.Rows)
	if n == 0 {
		return nil
	}
	losses, correct := t.Loss, t.Correct
	head := new(batch)
	at, err := e.sums(head, n, func(i int, loss float64, hits int64) { losses[i], correct[i] = loss, hits })
	if err != nil {
		return err
	}
	squares := uint64(noSums)
	if t.Squares != nil && !e.model.Targeted() {
		clear(t.Squares[:n])
	} else if t.Squares != nil {
		if squares, err = e.squareSums(head, t.Squares[:n]); err != nil {
			return err
		}
	}
	if err := e.issue(head); err != nil {
		return err
	}
	// A long batch is processed in stretches of whole pieces, one after the other, which add to the same sums.
	stretch := max(1, atOnce/(e.plan.total()*piece)) * piece
	if e.own(&t) {
		stretch = longest(t.Batches)
	}
	for from := 0; from < longest(t.Batches); from += stretch {
		if err := e.stretch(&t, from, stretch, at, squares); err != nil {
			return err
		}
	}
	return nil
}

// own reports whether batches are evaluated with their own statistics; each is then processed in one piece.
func (e *Engine) own(t *engine.Evaluate) bool { return e.bounds.Norms && t.Stats.Rows == 0 }

// stretch evaluates samples [first, first+size) of every batch.
func (e *Engine) stretch(t *engine.Evaluate, first, size int, at, squares uint64) error {
	var views []view
	var cut [][]int32
	for i, ids := range t.Batches {
		v := view{ids: ids[min(first, len(ids)):min(first+size, len(ids))], at: engine.DrawnAt(t.Drawn, i)}
		v.at.Round += uint64(first)
		views, cut = append(views, v), append(cut, v.ids)
	}
	most := longest(cut)
	return waves(len(views), most*e.plan.total(), func(lo, hi int) error {
		b := new(batch)
		p, err := e.begin(b, hi-lo, hi-lo, most, sizes(cut[lo:hi]))
		if err != nil {
			return err
		}
		from, err := e.gather(b, views[lo:hi], most, p.acts[0].m)
		if err != nil {
			return err
		}
		p.params = b.rows(t.X, t.Rows[lo:hi])
		sum := piece
		switch {
		case e.own(t):
			sum = most
		case e.bounds.Norms:
			p.stats, p.given = b.rows(t.Stats, t.Rows[lo:hi]), true
		}
		p.forward(0, false)
		if err := p.loss(from.ids, none, 0, sum, at, squares, b.numbers(lo, hi), len(views)); err != nil {
			return err
		}
		return e.issue(b)
	})
}

// statistics computes one batch after the other, for all rows at once, and adds the statistics up in float64.
func (e *Engine) statistics(t engine.Statistics) error {
	if err := e.bounds.Statistics(&t); err != nil || !e.bounds.Norms || len(t.Rows) == 0 {
		return err
	}
	if err := e.mats("statistics", t.X, t.Stats); err != nil {
		return err
	}
	n, wide := len(t.Rows), e.layout.Stats
	sums, err := e.scratchMemory("statistics", 8*n*wide)
	if err != nil {
		return err
	}
	one, err := e.scratchMemory("statistics of a batch", 4*n*wide)
	if err != nil {
		return err
	}
	if err := e.issue(new(batch).launch("zeros", 2*n*wide, 1, sums, uint64(0), uint64(2*n*wide))); err != nil {
		return err
	}
	for _, ids := range t.Batches {
		err := waves(n, len(ids)*e.plan.total(), func(lo, hi int) error {
			b, some := new(batch), (hi-lo)*wide
			var views []view
			var counts []int
			for range hi - lo {
				views, counts = append(views, view{ids: ids}), append(counts, len(ids))
			}
			p, err := e.begin(b, hi-lo, hi-lo, len(ids), counts)
			if err != nil {
				return err
			}
			if _, err := e.gather(b, views, len(ids), p.acts[0].m); err != nil {
				return err
			}
			p.params = b.rows(t.X, t.Rows[lo:hi])
			b.launch("zeros", some, 1, one, uint64(0), uint64(some))
			p.stats, p.pace = place{m: one, step: uint64(wide), list: none}, 1
			p.forward(0, false)
			b.launch("stats_add", some, 1, sums, uint64(lo*wide), one, uint64(some))
			return e.issue(b)
		})
		if err != nil {
			return err
		}
	}
	m, at := behind(t.Stats)
	return e.issue(new(batch).launch("stats_mean", n*wide, 1, m, at, sums, uint64(n*wide), uint32(len(t.Batches))))
}
