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
	v.split(cols, tile, len(t.Rows)*len(t.Prog), func(k *lane, lo, hi int) {
		for a := lo; a < hi; a += tile {
			b := min(hi, a+tile)
			for _, r := range t.Rows {
				for i := range t.Prog {
					k.run(&t.Prog[i], r, a, b)
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
	return flat(m)[at+a : at+b]
}

// run is one statement over columns [a, b), at most a tile, of row r. A destination may also be a source.
func (p *lane) run(s *engine.Lin, r engine.Row, a, b int) {
	p.c, p.x = p.c[:0], p.x[:0]
	for _, t := range s.Terms {
		p.c, p.x = append(p.c, t.C), append(p.x, cut(t.Src, r, a, b))
	}
	p.Lin(cut(s.Dst, r, a, b), p.c, p.x)
}
