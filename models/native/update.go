package native

import (
	"math"

	"brood/models/engine"
)

func (v *Vector) update(t engine.Update) error {
	if len(t.Prog) == 0 || len(t.Rows) == 0 {
		return nil
	}
	cols := t.Prog[0].Dst.Cols
	prog := v.statements(t.Prog)
	defer v.forget()
	v.split(cols, tile, len(t.Rows)*len(prog), func(k *thread, lo, hi int) {
		for a := lo; a < hi; a += tile {
			b := min(hi, a+tile)
			for _, r := range t.Rows {
				for i := range prog {
					k.run(&prog[i], r, a, b)
				}
			}
		}
	})
	return nil
}

// statement is a statement of a program with resolved matrices.
type statement struct {
	dst elements
	c   []float32
	src []elements
	fn  engine.Map
	by  elements // no factor: without columns
}

// elements is a resolved matrix.
type elements struct {
	f    []float32
	cols int
	one  bool // a single row is used for all rows
}

func elementsOf(m engine.Mat) elements { return elements{flat(m), m.Cols, m.Rows == 1} }

// cut returns columns [a, b) of row r, or of the only row.
func (e *elements) cut(r engine.Row, a, b int) []float32 {
	at := 0
	if !e.one {
		at = int(r) * e.cols
	}
	return e.f[at+a : at+b]
}

// forget drops the resolved matrices, since they may be freed.
func (v *Vector) forget() {
	for i := range v.prog {
		v.prog[i].dst = elements{}
		v.prog[i].by = elements{}
		clear(v.prog[i].src)
	}
	for _, l := range v.threads {
		clear(l.x)
	}
}

// statements resolves the matrices of a program; the result is valid until the next call.
func (v *Vector) statements(prog []engine.Lin) []statement {
	for len(v.prog) < len(prog) {
		v.prog = append(v.prog, statement{})
	}
	for i, l := range prog {
		s := &v.prog[i]
		s.dst, s.c, s.src = elementsOf(l.Dst), s.c[:0], s.src[:0]
		s.fn, s.by = l.Map, elements{}
		if l.By.Rows > 0 {
			s.by = elementsOf(l.By)
		}
		for _, t := range l.Terms {
			s.c, s.src = append(s.c, t.C), append(s.src, elementsOf(t.Src))
		}
	}
	return v.prog[:len(prog)]
}

// cut returns columns [a, b) of row r of m, or of its only row.
func cut(m engine.Mat, r engine.Row, a, b int) []float32 {
	e := elementsOf(m)
	return e.cut(r, a, b)
}

// run executes one statement on columns [a, b), at most a tile, of row r. A destination may also be a source.
func (p *thread) run(s *statement, r engine.Row, a, b int) {
	p.x = p.x[:0]
	for i := range s.src {
		p.x = append(p.x, s.src[i].cut(r, a, b))
	}
	dst := s.dst.cut(r, a, b)
	if s.by.cols == 0 {
		p.Lin(dst, s.c, p.x)
		mapped(dst, s.fn)
		return
	}
	// in separate memory, since the destination may be the factor
	if cap(p.mapped) < tile {
		p.mapped = make([]float32, tile)
	}
	y := p.mapped[:len(dst)]
	p.Lin(y, s.c, p.x)
	mapped(y, s.fn)
	for i, f := range s.by.cut(r, a, b) {
		dst[i] = y[i] * f
	}
}

// mapped applies a function to every element of x in loops without calls. The bits equal the bits of [engine.Map.Of].
func mapped(x []float32, fn engine.Map) {
	const sign, one = 1 << 31, 0x3f800000
	switch fn {
	case engine.Sign:
		for i, v := range x {
			if v != 0 && v == v {
				x[i] = math.Float32frombits(math.Float32bits(v)&sign | one)
			}
		}
	case engine.Abs:
		for i, v := range x {
			x[i] = math.Float32frombits(math.Float32bits(v) &^ sign)
		}
	case engine.Square:
		for i, v := range x {
			x[i] = v * v
		}
	case engine.Sqrt:
		for i, v := range x {
			if v < 0 {
				v = 0
			}
			x[i] = float32(math.Sqrt(float64(v)))
		}
	case engine.Reciprocal:
		for i, v := range x {
			x[i] = 1 / v
		}
	case engine.Clamp:
		for i, v := range x {
			x[i] = min(max(v, -1), 1)
		}
	}
}
