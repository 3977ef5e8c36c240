package gpu

import (
	"slices"

	"brood/models/engine"
)

// sum computes the tree in one launch: a work item adds up a column on a stack. Sources in more allocations than a
// launch names are copied together first.
func (e *Engine) sum(t engine.Sum) error {
	wide := t.Dst.Hi - t.Dst.Lo
	if wide == 0 {
		return nil
	}
	var mems []Memory
	var others []engine.Span
	for _, s := range t.Src {
		switch m, _ := behind(s.Mat); {
		case slices.Contains(mems, m):
		case len(mems) < memories-1:
			mems = append(mems, m)
		default:
			others = append(others, s)
		}
	}
	b, scratch := new(batch), Memory(0)
	if len(others) > 0 {
		var err error
		if scratch, err = e.scratchMemory("sources", 4*wide*len(others)); err != nil {
			return err
		}
		mems = append(mems, scratch)
	}
	spots, brought := make([][2]uint64, len(t.Src)), uint64(0) // memory and place of each source
	for i, s := range t.Src {
		m, at := first(s)
		if !slices.Contains(mems, m) {
			b.launch("move", wide, 1, scratch, brought, uint64(wide), m, at, uint64(wide), uint64(wide))
			m, at = scratch, brought
			brought += uint64(wide)
		}
		spots[i] = [2]uint64{uint64(slices.Index(mems, m)), at}
	}
	ops := b.list()
	order := postfix(len(t.Src), t.Tree)
	for _, i := range order {
		if i < 0 {
			b.words = append(b.words, none, 0, 0)
			continue
		}
		b.words = append(b.words, uint32(spots[i][0]), uint32(spots[i][1]), uint32(spots[i][1]>>32))
	}
	d, at := first(t.Dst)
	args := []any{wordsHere{}, ops, uint32(len(order)), uint32(t.Code), t.Div, uint64(wide), d, at}
	for i := range memories {
		args = append(args, mems[min(i, len(mems)-1)])
	}
	return e.issue(b.launch("tree", wide, 1, args...))
}

// postfix converts a tree over n sources to stack code: a source index, or -1 for the sum of the two topmost values.
// The operand that needs the deeper stack comes first, so the depth is at most log2(n) + 1.
func postfix(n int, tree [][2]int) (out []int) {
	deep := make([]int, n+len(tree))
	for i := range deep {
		deep[i] = 1
		if i >= n {
			a, b := deep[tree[i-n][0]], deep[tree[i-n][1]]
			if deep[i] = max(a, b); a == b {
				deep[i]++
			}
		}
	}
	var list func(i int)
	list = func(i int) {
		if i < n {
			out = append(out, i)
			return
		}
		a, b := tree[i-n][0], tree[i-n][1]
		if deep[b] > deep[a] {
			a, b = b, a
		}
		list(a)
		list(b)
		out = append(out, -1)
	}
	list(len(deep) - 1)
	return out
}

// round appends the rounding by a code of n columns of rows that are step elements apart; each row begins a block.
func (b *batch) round(code engine.Code, m Memory, at, step uint64, rows int, n uint64) {
	switch code {
	case engine.BF16:
		b.launch("round_bf16", int(n), rows, m, at, step, n)
	case engine.Int8:
		b.launch("round_int8", int(n+engine.CodeBlock-1)/engine.CodeBlock, rows, m, at, step, n)
	}
}

// feedback adds the error of the previous rounding, rounds, and stores the new error.
func (e *Engine) feedback(t engine.Feedback) error {
	cols, rows := uint64(t.Dst.Cols), t.Dst.Rows
	d, atd := behind(t.Dst)
	x, atx := behind(t.Src)
	l, atl := behind(t.Lost)
	b := new(batch)
	b.launch("owe", int(cols), rows, l, atl, d, atd, x, atx, cols)
	b.round(t.Code, d, atd, cols, rows, cols)
	return e.issue(b.launch("owed", int(cols), rows, l, atl, cols, d, atd, cols, cols))
}
