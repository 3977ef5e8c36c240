package native

import "brood/models/engine"

func (v *Vector) update(t engine.Update) error {
	if len(t.Prog) == 0 || len(t.Rows) == 0 {
		return nil
	}
	cols := t.Prog[0].Dst.Cols
	for i, s := range t.Prog {
		if err := operand(s.Dst, cols, t.Rows); err != nil {
			return bad("update", "destination of statement %d: %v", i, err)
		}
		for j, x := range s.Terms {
			rows := t.Rows
			if x.Src.Rows == 1 {
				rows = nil
			}
			if err := operand(x.Src, cols, rows); err != nil {
				return bad("update", "term %d of statement %d: %v", j, i, err)
			}
		}
	}
	v.split(cols, tile, len(t.Rows)*len(t.Prog), func(lo, hi int) {
		for a := lo; a < hi; a += tile {
			b := min(hi, a+tile)
			for _, r := range t.Rows {
				for i := range t.Prog {
					run(&t.Prog[i], r, a, b)
				}
			}
		}
	})
	return nil
}

func operand(m engine.Mat, cols int, rows []engine.Row) error {
	if err := fit("matrix", "it", m, cols); err != nil {
		return err
	}
	return within("matrix", "it", m, rows)
}

// cut is columns [a, b) of row r of m, or of its only row.
func cut(m engine.Mat, r engine.Row, a, b int) []float32 {
	if m.Rows == 1 {
		r = 0
	}
	at := int(r) * m.Cols
	return m.F[at+a : at+b]
}

// run is one statement over columns [a, b), at most a tile, of row r. A destination may also be a source, so every
// element is read before it is written.
func run(s *engine.Lin, r engine.Row, a, b int) {
	d, t := cut(s.Dst, r, a, b), s.Terms
	switch len(t) {
	case 0:
		clear(d)
	case 1:
		c0, x0 := t[0].C, cut(t[0].Src, r, a, b)[:len(d)]
		for i := range d {
			d[i] = c0 * x0[i]
		}
	case 2:
		c0, x0 := t[0].C, cut(t[0].Src, r, a, b)[:len(d)]
		c1, x1 := t[1].C, cut(t[1].Src, r, a, b)[:len(d)]
		for i := range d {
			d[i] = float32(c0*x0[i]) + float32(c1*x1[i])
		}
	case 3:
		c0, x0 := t[0].C, cut(t[0].Src, r, a, b)[:len(d)]
		c1, x1 := t[1].C, cut(t[1].Src, r, a, b)[:len(d)]
		c2, x2 := t[2].C, cut(t[2].Src, r, a, b)[:len(d)]
		for i := range d {
			d[i] = float32(c0*x0[i]) + float32(c1*x1[i]) + float32(c2*x2[i])
		}
	default:
		var sum [tile]float32
		w := sum[:len(d)]
		c0, x0 := t[0].C, cut(t[0].Src, r, a, b)[:len(w)]
		for i := range w {
			w[i] = c0 * x0[i]
		}
		for _, term := range t[1:] {
			c, x := term.C, cut(term.Src, r, a, b)[:len(w)]
			for i := range w {
				w[i] += float32(c * x[i])
			}
		}
		copy(d, w)
	}
}

func (v *Vector) treeSum(t engine.TreeSum) error {
	for _, m := range []struct {
		name string
		m    engine.Mat
	}{{"dst", t.Dst}, {"a", t.A}, {"b", t.B}} {
		if err := single("tree sum", m.name, m.m, t.Dst.Cols); err != nil {
			return err
		}
	}
	v.split(t.Dst.Cols, tile, 1, func(lo, hi int) {
		d, a, b := t.Dst.F[lo:hi], t.A.F[lo:hi], t.B.F[lo:hi]
		for i := range d {
			d[i] = a[i] + b[i]
		}
	})
	return nil
}
