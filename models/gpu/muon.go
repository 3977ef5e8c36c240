package gpu

import "brood/models/engine"

// muon appends a step of Muon, row by row and tensor by tensor; see models/native/muon.go.
func (e *Engine) muon(t engine.Muon) error {
	vectors := []engine.Adam{t.Vectors()}
	for i := range e.layout.Tensors {
		n := &e.layout.Tensors[i]
		rows, cols, ok := t.Takes(e.layout, i)
		if !ok {
			if err := e.adamSpan(vectors, n.Lo, n.Lo+n.Len); err != nil {
				return err
			}
			continue
		}
		for _, r := range t.Rows {
			if err := e.muonMatrix(&t, r, n.Lo, rows, cols); err != nil {
				return err
			}
		}
	}
	return nil
}

// muonMatrix appends the step of one row's matrix, which begins at column lo.
func (e *Engine) muonMatrix(t *engine.Muon, r engine.Row, lo, rows, cols int) error {
	matrix, square := e.layout.MuonFloats()
	side, n := min(rows, cols), rows*cols
	var parts [4]Memory
	names := []string{"momentum", "next momentum", "gram", "polynomial"}
	for i, floats := range []int{matrix, matrix, square, square} {
		var err error
		if parts[i], err = e.scratchMemory(names[i], 4*floats); err != nil {
			return err
		}
	}
	u, next, gram, poly := parts[0], parts[1], parts[2], parts[3]
	sums, err := e.scratchMemory("sums", 8)
	if err != nil {
		return err
	}
	b := new(batch)
	blend := func(d Memory, at uint64, x float32, mx Memory, atx uint64, y float32, my Memory, aty uint64) {
		b.launch("blend", n, 1, d, at, x, mx, atx, y, my, aty, uint32(0), uint64(n))
	}
	scaled := func(d Memory, by float32, x Memory, n int) {
		b.launch("blend", n, 1, d, uint64(0), by, x, uint64(0), float32(0), x, uint64(0), uint32(1), uint64(n))
	}
	where := func(m engine.Mat) (Memory, uint64) {
		mem, _ := behind(m)
		return mem, uint64(rowIn(m, r))*uint64(m.Cols) + uint64(lo)
	}
	x, atx := where(t.X)
	m, atm := where(t.M)
	g, atg := where(t.G)
	blend(m, atm, t.Mu, m, atm, 1-t.Mu, g, atg)
	blend(u, 0, t.Mu, m, atm, 1-t.Mu, g, atg)
	if err := e.squares(b, engine.Over(&buffer{e, u, n}, 0, 1, n), engine.Mat{}, sums, 0); err != nil {
		return err
	}
	b.launch("stretch", n, 1, u, uint64(0), uint64(n), float32(1), sums)
	of := func(m Memory, down, across int) place { return place{m: m, list: none, down: down, across: across} }
	c := b.floats(engine.Schulz[2])
	for range engine.SchulzSteps {
		first := product{m: side, n: side, k: cols, a: of(u, cols, 1), b: of(u, 1, cols), c: of(gram, side, 1)}
		last := product{
			m:       rows,
			n:       cols,
			k:       side,
			factors: none,
			a:       of(poly, side, 1),
			b:       of(u, cols, 1),
			c:       of(next, cols, 1),
		}
		if rows > cols {
			first.k, first.a, first.b = rows, of(u, 1, cols), of(u, cols, 1)
			last.a, last.b = of(u, cols, 1), of(poly, side, 1)
		}
		b.gemm(1, first)
		scaled(poly, engine.Schulz[1], gram, side*side)
		b.added(1, product{
			m:       side,
			n:       side,
			k:       side,
			factors: c,
			a:       of(gram, side, 1),
			b:       of(gram, side, 1),
			c:       of(poly, side, 1),
		})
		scaled(next, engine.Schulz[0], u, n)
		b.added(1, last)
		u, next = next, u
	}
	if t.Fixed {
		whole, _ := t.X.Behind()
		if err := e.squares(b, engine.Over(whole, int(atx), 1, n), engine.Mat{}, sums, 0); err != nil {
			return err
		}
		b.launch("stretch", n, 1, x, atx, uint64(n), t.Length(rows), sums)
	}
	keep, by := t.Factors(rows, cols)
	blend(x, atx, keep, x, atx, by, u, 0)
	return e.issue(b)
}
