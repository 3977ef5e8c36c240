package gpu

import (
	"slices"

	"brood/models/engine"
)

// perLaunch is the terms of a statement that a launch takes.
const perLaunch = 4

// update runs a programme statement by statement, each on all rows at once; row by row where a statement may read what
// belongs to another row.
func (e *Engine) update(t engine.Update) error {
	if len(t.Prog) == 0 || len(t.Rows) == 0 {
		return nil
	}
	b := new(batch)
	most, long := 0, 0
	for _, r := range t.Rows {
		most = max(most, int(r)+1)
	}
	for _, s := range t.Prog {
		long = max(long, len(s.Terms))
	}
	var room Memory
	if long > perLaunch {
		var err error
		if room, err = e.room("statement", 4*most*t.Prog[0].Dst.Cols); err != nil {
			return err
		}
	}
	if !independent(&t) {
		for _, r := range t.Rows {
			for i := range t.Prog {
				b.statement(&t.Prog[i], b.list(uint32(r)), 1, room)
			}
		}
		return e.issue(b)
	}
	list := b.list()
	for _, r := range t.Rows {
		b.words = append(b.words, uint32(r))
	}
	for i := range t.Prog {
		b.statement(&t.Prog[i], list, len(t.Rows), room)
	}
	return e.issue(b)
}

// independent says whether rows do not touch each other: none comes twice, and what a statement writes no other row
// reads.
func independent(t *engine.Update) bool {
	if len(t.Rows) == 1 {
		return true
	}
	rows := slices.Clone(t.Rows)
	slices.Sort(rows)
	if len(slices.Compact(rows)) < len(t.Rows) {
		return false
	}
	for _, s := range t.Prog {
		for _, other := range t.Prog {
			if !alongside(s.Dst, other.Dst) {
				return false
			}
			for _, x := range other.Terms {
				if !alongside(s.Dst, x.Src) {
					return false
				}
			}
		}
	}
	return true
}

// alongside says whether row r of m is nothing of x but its row r.
func alongside(m, x engine.Mat) bool {
	b, at := m.Behind()
	c, from := x.Behind()
	if b != c || at+m.Rows*m.Cols <= from || from+x.Rows*x.Cols <= at {
		return true
	}
	return at == from && m.Rows > 1 && x.Rows > 1
}

// statement appends dst = sum of terms over rows of a list. More than fit a launch are summed in room, since dst may be
// a later term.
func (b *batch) statement(s *engine.Lin, list uint32, rows int, room Memory) {
	cols := uint64(s.Dst.Cols)
	d, at := behind(s.Dst)
	to := operand{d, at, step(s.Dst, cols), 0}
	var terms []operand
	for _, t := range s.Terms {
		m, at := behind(t.Src)
		terms = append(terms, operand{m, at, step(t.Src, cols), t.C})
	}
	for len(terms) > perLaunch {
		b.lin(list, rows, cols, operand{m: room, step: cols}, terms[:perLaunch])
		terms = append([]operand{{room, 0, cols, 1}}, terms[perLaunch:]...)
	}
	b.lin(list, rows, cols, to, terms)
}

// operand is a matrix of a statement: its rows are steps apart, and its factor.
type operand struct {
	m        Memory
	at, step uint64
	c        float32
}

// step is what rows are apart: one row serves all.
func step(m engine.Mat, cols uint64) uint64 {
	if m.Rows == 1 {
		return 0
	}
	return cols
}

// lin appends d = sum of at most perLaunch terms.
func (b *batch) lin(list uint32, rows int, cols uint64, d operand, terms []operand) {
	args := []any{wordsHere{}, list, uint32(cols), uint32(len(terms)), d.m, d.at, d.step}
	for i := range perLaunch {
		x := operand{m: d.m}
		if i < len(terms) {
			x = terms[i]
		}
		args = append(args, x.m, x.at, x.step, x.c)
	}
	if len(b.words) == 0 {
		b.list(0) // there is always a word
	}
	b.launch("lin", int(cols), rows, args...)
}

func (e *Engine) copy(t engine.Copy) error {
	d, at := first(t.Dst)
	x, from := first(t.Src)
	wide := t.Dst.Hi - t.Dst.Lo
	return e.issue(new(batch).launch("move", wide, t.Dst.Rows, d, at, uint64(t.Dst.Mat.Cols), x, from, uint64(t.Src.Mat.Cols), uint64(wide)))
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
	return e.issue(new(batch).launch("product", t.Dst.Cols, t.Dst.Rows, d, at, cols, a, ata, cols, x, atx, step(t.B, cols), cols))
}

// adam is Adam with decoupled weight decay, see models/native/adam.go.
func (e *Engine) adam(t engine.Adam) error {
	b := new(batch)
	list := b.list()
	for _, r := range t.Rows {
		b.words = append(b.words, uint32(r))
	}
	x, atx := behind(t.X)
	m, atm := behind(t.M)
	v, atv := behind(t.V)
	g, atg := behind(t.G)
	c1, c2 := t.Corrections()
	return e.issue(b.launch("adam", t.X.Cols, len(t.Rows), wordsHere{}, list, uint32(t.X.Cols), x, atx, m, atm, v, atv, g, atg, step(t.G, uint64(t.X.Cols)),
		t.B1, t.B2, 1-t.B1, 1-t.B2, c1, c2, t.Eta, t.Eps, t.Eta*t.WD))
}

func (e *Engine) naturalStep(t engine.NaturalStep) error {
	args := make([]any, 0, 11)
	for _, m := range []engine.Mat{t.X, t.S, t.G, t.H} {
		x, at := behind(m)
		args = append(args, x, at+uint64(t.Lo))
	}
	return e.issue(new(batch).launch("natural", t.Hi-t.Lo, 1, append(args, uint64(t.Hi-t.Lo), t.Eta, t.Rate)...))
}
