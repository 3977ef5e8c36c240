package gpu

import "brood/models/engine"

// step returns the distance of rows in elements, 0 if one row serves all.
func step(m engine.Mat, cols uint64) uint64 {
	if m.Rows == 1 {
		return 0
	}
	return cols
}

func (e *Engine) copy(t engine.Copy) error {
	d, at := first(t.Dst)
	x, from := first(t.Src)
	wide := t.Dst.Hi - t.Dst.Lo
	return e.issue(new(batch).launch("move", wide, t.Dst.Rows, d, at, uint64(t.Dst.Mat.Cols), x, from,
		uint64(t.Src.Mat.Cols), uint64(wide)))
}

func (e *Engine) copyColumns(t engine.CopyColumns) error {
	b := new(batch)
	list := func(columns []int32) uint32 {
		if columns == nil {
			return none
		}
		at := b.list()
		for _, j := range columns {
			b.words = append(b.words, uint32(j))
		}
		return at
	}
	to, from := list(t.To), list(t.From)
	d, at := behind(t.Dst)
	x, atx := behind(t.Src)
	return e.issue(b.launch("copy_columns", t.Columns(), t.Dst.Rows, wordsHere{}, to, from, uint32(t.Columns()),
		d, at, uint64(t.Dst.Cols), x, atx, step(t.Src, uint64(t.Src.Cols))))
}

func (e *Engine) fill(t engine.Fill) error {
	d, at := first(t.Dst)
	wide := t.Dst.Hi - t.Dst.Lo
	return e.issue(new(batch).launch("fill", wide, t.Dst.Rows, d, at, uint64(t.Dst.Mat.Cols), uint64(wide), t.Value))
}

func (e *Engine) product(t engine.Product) error {
	d, at := behind(t.Dst)
	a, ata := behind(t.A)
	x, atx := behind(t.B)
	cols := uint64(t.Dst.Cols)
	return e.issue(new(batch).launch("product", t.Dst.Cols, t.Dst.Rows, d, at, cols, a, ata, cols, x, atx, step(t.B, cols),
		cols))
}

// adam appends Adam with decoupled weight decay (models/native/adam.go) for tasks that differ only in their rows.
func (e *Engine) adam(tasks []engine.Adam) error { return e.adamSpan(tasks, 0, tasks[0].X.Cols) }

// adamSpan appends adam for columns [lo, hi).
func (e *Engine) adamSpan(tasks []engine.Adam, lo, hi int) error {
	b, rows, t := new(batch), 0, &tasks[0]
	list := b.list()
	for _, t := range tasks {
		rows += len(t.Rows)
		for _, r := range t.Rows {
			for _, m := range []engine.Mat{t.X, t.M, t.V, t.G} {
				b.words = append(b.words, rowIn(m, r))
			}
		}
	}
	args := []any{wordsHere{}, list, uint32(t.X.Cols), uint32(lo), uint32(hi - lo)}
	for _, m := range []engine.Mat{t.X, t.M, t.V, t.G} {
		at, _ := behind(m)
		args = append(args, at)
	}
	c1, c2 := t.Corrections()
	return e.issue(b.launch("adam", hi-lo, rows,
		append(args, t.B1, t.B2, 1-t.B1, 1-t.B2, c1, c2, t.Eta, t.Eps, t.Eta*t.WD)...))
}

// rowIn returns row r of a matrix, or its only row, counted from the start of its memory.
func rowIn(m engine.Mat, r engine.Row) uint32 {
	_, at := behind(m)
	if m.Rows == 1 {
		r = 0
	}
	return uint32(at/uint64(max(1, m.Cols))) + uint32(r)
}

// equalAdams returns the leading tasks that are Adam steps with equal numbers on different rows of the same memory: one
// launch computes them.
func (e *Engine) equalAdams(tasks []engine.Task) (list []engine.Adam) {
	written, read := map[spot]bool{}, map[spot]bool{}
	for _, task := range tasks {
		t, ok := task.(engine.Adam)
		if !ok || e.layout.Vector(t, e.held) != nil || len(list) > 0 && !likeAdam(&t, &list[0]) {
			break
		}
		touched := false
		for _, r := range t.Rows {
			for i, m := range []engine.Mat{t.G, t.X, t.M, t.V} {
				mem, _ := behind(m)
				at := spot{mem, rowIn(m, r)}
				touched = touched || written[at] || i > 0 && read[at]
				if read[at] = true; i > 0 {
					written[at] = true
				}
			}
		}
		if touched && len(list) > 0 {
			break
		}
		list = append(list, t)
	}
	return list
}

// likeAdam reports whether two steps differ only in their rows.
func likeAdam(a, b *engine.Adam) bool {
	for _, m := range [][2]engine.Mat{{a.X, b.X}, {a.M, b.M}, {a.V, b.V}, {a.G, b.G}} {
		x, _ := behind(m[0])
		if y, _ := behind(m[1]); x != y || m[0].Cols != m[1].Cols {
			return false
		}
	}
	return a.Eta == b.Eta && a.B1 == b.B1 && a.B2 == b.B2 && a.Eps == b.Eps && a.WD == b.WD && a.T == b.T
}

func (e *Engine) naturalStep(t engine.NaturalStep) error {
	args := make([]any, 0, 11)
	for _, m := range []engine.Mat{t.X, t.S, t.G, t.H} {
		x, at := behind(m)
		args = append(args, x, at+uint64(t.Lo))
	}
	return e.issue(new(batch).launch("natural", t.Hi-t.Lo, 1, append(args, uint64(t.Hi-t.Lo), t.Eta, t.Rate)...))
}
