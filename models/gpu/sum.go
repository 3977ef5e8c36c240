package gpu

import "brood/models/engine"

// sum takes the tree node by node, a launch each. A partial sum takes the place of an operand where that is scratch
// too.
func (e *Engine) sum(t engine.Sum) error {
	wide := uint64(t.Dst.Hi - t.Dst.Lo)
	if wide == 0 {
		return nil
	}
	room, err := e.room("tree", 4*int(wide)*e.slots(&t))
	if err != nil {
		return err
	}
	b := new(batch)
	operands, free, used := make([]operand, 0, len(t.Src)+len(t.Tree)), []operand(nil), uint64(0)
	take := func() operand {
		if n := len(free); n > 0 {
			o := free[n-1]
			free = free[:n-1]
			return o
		}
		used++
		return operand{m: room, at: (used - 1) * wide}
	}
	for _, s := range t.Src {
		m, at := first(s)
		operands = append(operands, operand{m: m, at: at})
	}
	// known is an operand as it is added: a source is rounded in a place of its own.
	known := func(i int) operand {
		if i < len(t.Src) && t.Code != engine.Float32 {
			o := take()
			b.launch("move", int(wide), 1, o.m, o.at, wide, operands[i].m, operands[i].at, wide, wide)
			b.round(t.Code, o.m, o.at, wide, 1, wide)
			operands[i] = o
		}
		return operands[i]
	}
	for _, pair := range t.Tree {
		x, y := known(pair[0]), known(pair[1])
		x.c, y.c = 1, 1
		out := take()
		b.lin(none, 1, wide, out, []operand{x, y})
		b.round(t.Code, out.m, out.at, wide, 1, wide)
		for _, o := range []operand{x, y} {
			if o.m == room {
				free = append(free, o)
			}
		}
		operands = append(operands, out)
	}
	total := operands[len(operands)-1]
	if len(t.Tree) == 0 {
		total = known(0)
	}
	d, at := first(t.Dst)
	if t.Div != 0 {
		b.launch("divide", int(wide), 1, d, at, total.m, total.at, wide, t.Div)
	} else if d != total.m || at != total.at {
		b.launch("move", int(wide), 1, d, at, wide, total.m, total.at, wide, wide)
	}
	b.round(t.Code, d, at, wide, 1, wide)
	return e.issue(b)
}

// slots bounds the partial sums and rounded sources that are held at once: a new one is written before its operands are
// free.
func (e *Engine) slots(t *engine.Sum) int {
	held, most := 0, 0
	ours := func(i int) bool { return i >= len(t.Src) || t.Code != engine.Float32 }
	for _, pair := range t.Tree {
		for _, i := range pair {
			if i < len(t.Src) && ours(i) {
				held++
			}
		}
		held++
		most = max(most, held)
		for _, i := range pair {
			if ours(i) {
				held--
			}
		}
	}
	return max(1, most)
}

// round appends what a code does to n columns of rows that are a step apart, each of which begins a block.
func (b *batch) round(code engine.Code, m Memory, at, step uint64, rows int, n uint64) {
	switch code {
	case engine.BF16:
		b.launch("round_bf16", int(n), rows, m, at, step, n)
	case engine.Int8:
		b.launch("round_int8", int(n+engine.CodeBlock-1)/engine.CodeBlock, rows, m, at, step, n)
	}
}

// feedback adds what rounding lost the last time, rounds, and keeps what it loses now.
func (e *Engine) feedback(t engine.Feedback) error {
	cols, rows := uint64(t.Dst.Cols), t.Dst.Rows
	d, atd := behind(t.Dst)
	x, atx := behind(t.Src)
	l, atl := behind(t.Lost)
	b := new(batch)
	b.lin(none, rows, cols, operand{m: l, at: atl, step: cols}, []operand{{x, atx, cols, 1}, {l, atl, cols, 1}})
	b.launch("move", int(cols), rows, d, atd, cols, l, atl, cols, cols)
	b.round(t.Code, d, atd, cols, rows, cols)
	return e.issue(b.launch("owed", int(cols), rows, l, atl, cols, d, atd, cols, cols))
}
