package native

import "brood/models/engine"

// segment returns the elements of a span of one row.
func segment(s engine.Span) []float32 { return row(s.Mat, s.Row)[s.Lo:s.Hi] }

// sum computes the tree tile by tile, so that its operands stay in the first-level cache. A tile consists of whole
// blocks of every code.
func (v *Vector) sum(t engine.Sum) error {
	wide := t.Dst.Hi - t.Dst.Lo
	src := make([][]float32, len(t.Src))
	for i, s := range t.Src {
		src[i] = segment(s)
	}
	dst := segment(t.Dst)
	v.split(wide, tile, 1+len(t.Tree), func(k *thread, lo, hi int) {
		for a := lo; a < hi; a += tile {
			k.sum(&t, src, dst, a, min(hi, a+tile))
		}
	})
	return nil
}

// sum computes columns [a, b) of the task, at most a tile. A partial sum overwrites one of its operands if that is
// scratch memory, so that at most the depth of the tree is allocated.
func (p *thread) sum(t *engine.Sum, src [][]float32, into []float32, a, b int) {
	p.operands = p.operands[:0]
	take := func() []float32 {
		if last := len(p.spare) - 1; last >= 0 {
			x := p.spare[last][:b-a]
			p.spare = p.spare[:last]
			return x
		}
		return make([]float32, tile)[:b-a]
	}
	ours := func(i int) bool { return i >= len(t.Src) || t.Code != engine.Float32 }
	for _, s := range src {
		p.operands = append(p.operands, s[a:b])
	}
	known := func(i int) []float32 { // sources are rounded when first used
		x := p.operands[i]
		if i < len(t.Src) && t.Code != engine.Float32 {
			kept := take()
			copy(kept, x)
			t.Code.Round(kept)
			x = kept
			p.operands[i] = x
		}
		return x
	}
	for _, pair := range t.Tree {
		x, y := known(pair[0]), known(pair[1])
		out := x
		switch {
		case ours(pair[0]) && ours(pair[1]):
			p.spare = append(p.spare, y)
		case ours(pair[1]):
			out = y
		case !ours(pair[0]):
			out = take()
		}
		p.Add(out, x, y)
		t.Code.Round(out)
		p.operands = append(p.operands, out)
	}
	last, dst := len(p.operands)-1, into[a:b]
	total := p.operands[last]
	if len(t.Tree) == 0 {
		total = known(last)
	}
	if t.Div != 0 {
		for i, x := range total {
			dst[i] = x / t.Div
		}
	} else {
		copy(dst, total)
	}
	t.Code.Round(dst)
	if ours(last) {
		p.spare = append(p.spare, p.operands[last])
	}
	clear(p.operands) // rows may be freed
}

func (v *Vector) feedback(t engine.Feedback) error {
	v.split(t.Dst.Rows, 1, t.Dst.Cols, func(_ *thread, lo, hi int) {
		for r := engine.Row(lo); r < engine.Row(hi); r++ {
			out, lost := row(t.Dst, r), row(t.Lost, r)
			for j, x := range row(t.Src, r) {
				out[j] = x + lost[j]
				lost[j] = out[j]
			}
			t.Code.Round(out)
			for j, x := range out {
				if lost[j] -= x; lost[j] != lost[j] {
					lost[j] = 0 // a block that is not finite: the error stays visible and is not fed back
				}
			}
		}
	})
	return nil
}
