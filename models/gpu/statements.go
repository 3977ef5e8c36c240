package gpu

import (
	"math"
	"slices"

	"brood/models/engine"
)

// memories is the number of allocations that a launch of statements, or of a sum, may name.
const memories = 8

// statement is dst = fn(sum of terms)*by; without terms dst = value; with bits a copy of the only term.
type statement struct {
	dst   engine.Mat
	terms []engine.Term
	fn    engine.Map
	by    engine.Mat // zero: no factor
	value float32
	bits  bool
}

// walk is the statements on whole rows of one launch. Columns are independent: a work item executes the statements in
// order on some columns of a row. Turns that share a row which one of them writes execute in order, as a chain; chains
// are independent.
type walk struct {
	b     *batch
	cols  int
	mems  []Memory
	turns []turn
}

// turn is a program on a row.
type turn struct {
	prog, row uint32 // offsets of its words
	touches   []touch
}

// touch is a row of an allocation, counted from its start, that a turn reads or writes.
type touch struct {
	spot
	writes bool
}

type spot struct {
	mem Memory
	row uint32
}

// statements returns the statements that a task consists of; none for other tasks.
func statements(t engine.Task) (rows []engine.Row, prog []statement) {
	whole := func(s engine.Span) bool { return s.Rows > 0 && s.Lo == 0 && s.Hi == s.Mat.Cols && s.Hi > 0 }
	switch t := t.(type) {
	case engine.Update:
		for _, l := range t.Prog {
			prog = append(prog, statement{dst: l.Dst, terms: l.Terms, fn: l.Map, by: l.By})
		}
		return t.Rows, prog
	case engine.Copy:
		if whole(t.Dst) && whole(t.Src) {
			src := t.Src.Mat.Sub(t.Src.Row, t.Src.Rows)
			prog = []statement{{dst: t.Dst.Mat.Sub(t.Dst.Row, t.Dst.Rows), terms: []engine.Term{{C: 1, Src: src}}, bits: true}}
		}
	case engine.Fill:
		if whole(t.Dst) {
			prog = []statement{{dst: t.Dst.Mat.Sub(t.Dst.Row, t.Dst.Rows), value: t.Value}}
		}
	}
	if len(prog) > 0 {
		rows = engine.Rows(prog[0].dst.Rows)
	}
	return rows, prog
}

// walk queues the tasks, from the first on, that consist of statements on rows of equal length, and returns their
// number. It stops before an invalid one.
func (e *Engine) walk(tasks []engine.Task) (taken int, err error) {
	w := &walk{b: new(batch)}
	for _, t := range tasks {
		if !isVector(t) || e.layout.Vector(t, e.held) != nil {
			break
		}
		rows, prog := statements(t)
		if len(rows) == 0 || len(prog) == 0 || taken > 0 && prog[0].dst.Cols != w.cols {
			break
		}
		w.cols = prog[0].dst.Cols
		if err := e.add(w, rows, prog); err != nil {
			return taken, err
		}
		taken++
	}
	return taken, e.send(w)
}

// isVector reports whether a task may consist of statements.
func isVector(t engine.Task) bool {
	switch t.(type) {
	case engine.Update, engine.Copy, engine.Fill:
		return true
	}
	return false
}

// named appends the allocations of a program that known does not contain.
func named(known []Memory, prog []statement) []Memory {
	for _, s := range prog {
		for _, m := range append([]engine.Mat{s.dst}, read(s)...) {
			if at, _ := behind(m); !slices.Contains(known, at) {
				known = append(known, at)
			}
		}
	}
	return known
}

func read(s statement) (out []engine.Mat) {
	for _, t := range s.terms {
		out = append(out, t.Src)
	}
	if s.by.Rows > 0 {
		out = append(out, s.by)
	}
	return out
}

// add appends a program on rows to a walk. If it would name too many allocations, add issues the walk first.
func (e *Engine) add(w *walk, rows []engine.Row, prog []statement) error {
	if len(named(nil, prog)) > memories {
		return e.piecemeal(w, rows, prog)
	}
	mems := named(w.mems, prog)
	if len(mems) > memories {
		if err := e.send(w); err != nil {
			return err
		}
		mems = named(nil, prog)
	}
	w.mems = mems
	at := w.write(prog)
	for _, r := range rows {
		s := turn{prog: at, row: uint32(r)}
		for i := range prog {
			s.touches = append(s.touches, touched(prog[i].dst, r, true))
			for _, m := range read(prog[i]) {
				s.touches = append(s.touches, touched(m, r, false))
			}
		}
		w.turns = append(w.turns, s)
	}
	return nil
}

// piecemeal runs a program that names more allocations than a launch allows: row by row, statement by statement, some
// terms at a time. It sums them in scratch memory, since dst may be a later term.
func (e *Engine) piecemeal(w *walk, rows []engine.Row, prog []statement) error {
	m, err := e.scratchMemory("statement", 4*w.cols)
	if err != nil {
		return err
	}
	partial := engine.Over(&buffer{e, m, w.cols}, 0, 1, w.cols)
	for _, r := range rows {
		for _, s := range prog {
			for terms, last := s.terms, false; !last; {
				n := min(len(terms), memories-3)
				part := statement{dst: partial, terms: terms[:n:n]}
				terms = append([]engine.Term{{C: 1, Src: partial}}, terms[n:]...)
				if last = len(terms) == 1; last {
					part.dst, part.fn, part.by = s.dst, s.fn, s.by
				}
				if err := e.send(w); err != nil {
					return err
				}
				if err := e.add(w, []engine.Row{r}, []statement{part}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// touched returns row r of m, or its only row.
func touched(m engine.Mat, r engine.Row, writes bool) touch {
	mem, _ := behind(m)
	return touch{spot{mem, rowIn(m, r)}, writes}
}

// write appends the words of a program: the number of its statements; for each a head, a value, the place of the result
// and, if the head has the bit for it, the place of the factor; for each term its coefficient and place. A head is none
// for bits; else it holds the number of terms in 24 bits, the function in 4, and a bit for the factor.
func (w *walk) write(prog []statement) uint32 {
	place := func(m engine.Mat) []uint32 {
		mem, at := behind(m)
		return []uint32{uint32(slices.Index(w.mems, mem)), uint32(at), uint32(at >> 32), uint32(step(m, uint64(w.cols)))}
	}
	at := w.b.list(uint32(len(prog)))
	for _, s := range prog {
		head := uint32(len(s.terms)) | uint32(s.fn)<<24
		if s.bits {
			head = none
		}
		if s.by.Rows > 0 {
			head |= 1 << 28
		}
		w.b.words = append(append(w.b.words, head, math.Float32bits(s.value)), place(s.dst)...)
		if s.by.Rows > 0 {
			w.b.words = append(w.b.words, place(s.by)...)
		}
		for _, t := range s.terms {
			w.b.words = append(append(w.b.words, math.Float32bits(t.C)), place(t.Src)...)
		}
	}
	return at
}

// chains groups turns that share a row which one of them writes, in the order of their first turn.
func (w *walk) chains() (out [][]turn) {
	written, first := map[spot]bool{}, map[spot]int{}
	for _, s := range w.turns {
		for _, t := range s.touches {
			written[t.spot] = written[t.spot] || t.writes
		}
	}
	of := make([]int, len(w.turns)) // index of an earlier turn of the same chain, or its own
	root := func(i int) int {
		for of[i] != i {
			i = of[i]
		}
		return i
	}
	for i, s := range w.turns {
		of[i] = i
		for _, t := range s.touches {
			if !written[t.spot] {
				continue
			}
			j, known := first[t.spot]
			if !known {
				first[t.spot] = i
				continue
			}
			a, b := root(i), root(j)
			of[max(a, b)] = min(a, b)
		}
	}
	place := map[int]int{}
	for i, s := range w.turns {
		r := root(i)
		if _, known := place[r]; !known {
			place[r] = len(out)
			out = append(out, nil)
		}
		out[place[r]] = append(out[place[r]], s)
	}
	return out
}

// send issues a walk and empties it.
func (e *Engine) send(w *walk) error {
	if len(w.turns) == 0 {
		return nil
	}
	b, chains := w.b, w.chains()
	ends := make([]uint32, 1, len(chains)+1)
	var steps []uint32
	for _, c := range chains {
		for _, s := range c {
			steps = append(steps, s.prog, s.row)
		}
		ends = append(ends, uint32(len(steps)/2))
	}
	args := []any{wordsHere{}, b.list(ends...), b.list(steps...), uint64(w.cols)}
	for i := range memories {
		args = append(args, w.mems[min(i, len(w.mems)-1)])
	}
	cols := w.cols
	*w = walk{b: new(batch), cols: cols}
	return e.issue(b.launch("statements", (cols+3)/4, len(chains), args...))
}
