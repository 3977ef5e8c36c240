package gpu

import (
	"fmt"

	"brood/models/engine"
)

// piece is the samples whose losses are added up before they are added to others, where nothing is trained.
const piece = 128

// atOnce is the floats of activations that a batch may hold; one entry more is always taken.
const atOnce = 1 << 27

// waves cuts n entries into runs whose activations fit; per is the floats of an entry.
func waves(n, per int, f func(lo, hi int) error) error {
	some := max(1, atOnce/max(1, per))
	for lo := 0; lo < n; lo += some {
		if err := f(lo, min(n, lo+some)); err != nil {
			return err
		}
	}
	return nil
}

// mats refuses matrices that are not the engine's.
func (e *Engine) mats(task string, ms ...engine.Mat) error {
	for _, m := range ms {
		if m.Rows*m.Cols > 0 && !e.held(m) {
			return &engine.ArgumentError{Task: task, What: fmt.Sprintf("a matrix of %dx%d has no memory here", m.Rows, m.Cols)}
		}
	}
	return nil
}

// rows is where entries [lo, hi) find their rows of a matrix.
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
	if err := e.mats("gradients", t.X, t.G); err != nil {
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
	most, wide := longest(t.Batches), e.plan.widest()
	return waves(n, most*(e.plan.total()+2*wide), func(lo, hi int) error {
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
		var slots [2]Memory
		for i, name := range []string{"gradient", "gradient before"} {
			if slots[i], err = e.room(name, 4*(hi-lo)*most*wide); err != nil {
				return err
			}
		}
		p.params = b.rows(t.X, t.Rows[lo:hi])
		p.forward(0, true)
		if err := p.loss(from.ids, none, slots[0], most, at, b.numbers(lo, hi), n); err != nil {
			return err
		}
		g, row := behind(t.G)
		p.backward(slots[0], slots[1], place{m: g, at: row + uint64(lo*t.G.Cols), step: uint64(t.G.Cols), list: none})
		return e.issue(b)
	})
}

func (e *Engine) evaluate(t engine.Evaluate) error {
	if err := e.bounds.Evaluate(&t); err != nil {
		return err
	}
	if err := e.mats("evaluate", t.X); err != nil {
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
	if err := e.issue(head); err != nil {
		return err
	}
	// A long batch goes through in stretches of whole pieces, one after the other, which add to the same sums.
	stretch := max(1, atOnce/(e.plan.total()*piece)) * piece
	for from := 0; from < longest(t.Batches); from += stretch {
		if err := e.stretch(&t, from, stretch, at); err != nil {
			return err
		}
	}
	return nil
}

// stretch evaluates samples [first, first+size) of every batch.
func (e *Engine) stretch(t *engine.Evaluate, first, size int, at uint64) error {
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
		p.forward(0, false)
		if err := p.loss(from.ids, none, 0, piece, at, b.numbers(lo, hi), len(views)); err != nil {
			return err
		}
		return e.issue(b)
	})
}

// statistics has nothing to do: no layer with statistics has kernels yet.
func (e *Engine) statistics(t engine.Statistics) error { return e.bounds.Statistics(&t) }
