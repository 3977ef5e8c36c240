package engine

import "fmt"

// Vector checks the arguments of a task that needs no model. owns reports whether a matrix has memory in the calling
// engine. It returns an *ArgumentError for invalid arguments and an *UnsupportedError for a task that needs a model.
func (l *Layout) Vector(t Task, owns func(Mat) bool) error {
	c := vectorCheck{l: l, owns: owns}
	switch t := t.(type) {
	case Update:
		c.task = "update"
		c.update(&t)
	case Adam:
		c.task = "adam"
		c.adam(&t)
	case Muon:
		c.task = "muon"
		c.adam(&Adam{X: t.X, M: t.M, V: t.V, G: t.G, Rows: t.Rows, T: t.T})
		if t.X.Cols != l.Params {
			c.fault("x has %d columns, want %d", t.X.Cols, l.Params)
		}
	case NaturalStep:
		c.task = "natural step"
		c.single("x", t.X, t.X.Cols)
		c.single("s", t.S, t.X.Cols)
		c.single("g", t.G, t.X.Cols)
		c.single("h", t.H, t.X.Cols)
		if !(t.Lo >= 0 && t.Hi >= t.Lo && t.Hi <= t.X.Cols) {
			c.fault("columns [%d, %d) of %d", t.Lo, t.Hi, t.X.Cols)
		}
	case Sum:
		c.task = "sum"
		c.sum(&t)
	case Feedback:
		c.task = "feedback"
		c.shapes(t.Dst, t.Src, t.Lost)
		c.code(t.Code)
	case Copy:
		c.task = "copy"
		c.span("dst", t.Dst)
		c.span("src", t.Src)
		if !(t.Dst.Rows == t.Src.Rows && t.Dst.Hi-t.Dst.Lo == t.Src.Hi-t.Src.Lo) {
			c.fault("%dx%d to %dx%d", t.Src.Rows, t.Src.Hi-t.Src.Lo, t.Dst.Rows, t.Dst.Hi-t.Dst.Lo)
		}
	case CopyColumns:
		c.task = "copy columns"
		c.fit("dst", t.Dst, t.Dst.Cols)
		c.fit("src", t.Src, t.Src.Cols)
		if !(t.Src.Rows == 1 || t.Src.Rows == t.Dst.Rows) {
			c.fault("src has %d rows, want 1 or %d", t.Src.Rows, t.Dst.Rows)
		}
		if (t.To == nil) == (t.From == nil) {
			c.fault("%d columns to and %d from, want one list", len(t.To), len(t.From))
		}
		c.columns("dst", t.Dst, t.To, t.Columns())
		c.columns("src", t.Src, t.From, t.Columns())
	case Fill:
		c.task = "fill"
		c.span("dst", t.Dst)
	case Product:
		c.task = "product"
		c.shapes(t.Dst, t.A)
		c.fit("b", t.B, t.Dst.Cols)
		if !(t.B.Rows == 1 || t.B.Rows == t.Dst.Rows) {
			c.fault("b has %d rows, want 1 or %d", t.B.Rows, t.Dst.Rows)
		}
	case Nudge:
		c.task = "nudge"
		c.shapes(t.X, t.G)
		if !(t.X.Rows == 1 && len(t.Moved) == 1) {
			c.fault("%d rows and room for %d shares, want 1 of each", t.X.Rows, len(t.Moved))
		}
	case Clip:
		c.task = "clip"
		c.fit("x", t.X, t.X.Cols)
	case Finite:
		c.task = "finite"
		c.results(t.X, len(t.OK))
	case Digest:
		c.task = "digest"
		c.results(t.X, len(t.Hash))
	case Distance:
		c.task = "distance"
		c.results(t.X, len(t.RMS))
		if t.Centre.Rows > 0 {
			c.single("centre", t.Centre, t.X.Cols)
		}
	case NoiseSum:
		c.task = "noise sum"
		c.noiseSum(&t)
	case Perturb:
		c.task = "perturb"
		c.fit("x", t.X, l.Params)
		if !(len(t.Sigma) == t.X.Rows && len(t.Keys) == t.X.Rows) {
			c.fault("%d sigmas and %d keys for %d rows", len(t.Sigma), len(t.Keys), t.X.Rows)
		}
	case Crossover:
		c.task = "crossover"
		for i, m := range [...]Mat{t.Dst, t.A, t.B} {
			name := [...]string{"dst", "a", "b"}[i]
			c.fit(name, m, l.Params)
			if m.Rows != t.Dst.Rows {
				c.fault("%s has %d rows, dst %d", name, m.Rows, t.Dst.Rows)
			}
		}
		if len(t.Keys) != t.Dst.Rows {
			c.fault("%d keys for %d rows", len(t.Keys), t.Dst.Rows)
		}
	default:
		return &UnsupportedError{t}
	}
	return c.err
}

// Perturbed checks the arguments of t that determine a candidate's parameters: centre, scale, axes and noise. owns is
// as in Vector.
func (l *Layout) Perturbed(t *Candidates, owns func(Mat) bool) error {
	c := vectorCheck{l: l, owns: owns, task: "candidates"}
	c.single("theta", t.Theta, l.Params)
	if t.Scale.Rows > 0 {
		c.single("scale", t.Scale, l.Params)
	}
	if t.Axes.Rows > 0 {
		c.fit("axes", t.Axes, l.Params)
	}
	if c.err != nil {
		return c.err
	}
	return t.CheckNoise()
}

// UnsupportedError reports a task that needs a model, given to an engine without one.
type UnsupportedError struct{ Task Task }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("unsupported task %T: it needs a model, give it to a model's engine", e.Task)
}

// vectorCheck records the first invalid argument of a task that needs no model.
type vectorCheck struct {
	l    *Layout
	owns func(Mat) bool
	task string
	err  error
}

// fault records an invalid argument. It is called only on failure, so that successful checks do not allocate.
func (c *vectorCheck) fault(format string, args ...any) {
	if c.err == nil {
		c.err = &ArgumentError{c.task, fmt.Sprintf(format, args...)}
	}
}

// fit checks that m has cols columns and memory in the engine.
func (c *vectorCheck) fit(name string, m Mat, cols int) {
	if m.Cols != cols {
		c.fault("%s has %d columns, want %d", name, m.Cols, cols)
	}
	if !(m.Rows*m.Cols == 0 || c.owns(m)) {
		c.fault("%s says %dx%d and has no such memory", name, m.Rows, m.Cols)
	}
}

// single checks that m fits and has one row.
func (c *vectorCheck) single(name string, m Mat, cols int) {
	c.fit(name, m, cols)
	if m.Rows != 1 {
		c.fault("%s has %d rows, want 1", name, m.Rows)
	}
}

// rowsIn checks that the rows are rows of m.
func (c *vectorCheck) rowsIn(name string, m Mat, rows []Row) {
	for _, r := range rows {
		if !(r >= 0 && int(r) < m.Rows) {
			c.fault("row %d of %s, which has %d rows", r, name, m.Rows)
		}
	}
}

// columns checks that a list names columns of m; nil names all of them, which must be n.
func (c *vectorCheck) columns(name string, m Mat, list []int32, n int) {
	if list == nil && m.Cols != n {
		c.fault("%s has %d columns, want %d", name, m.Cols, n)
	}
	for _, j := range list {
		if !(j >= 0 && int(j) < m.Cols) {
			c.fault("column %d of %s, which has %d columns", j, name, m.Cols)
		}
	}
}

// shapes checks that all matrices have the shape of the first.
func (c *vectorCheck) shapes(ms ...Mat) {
	for i, m := range ms {
		c.fit("operand", m, ms[0].Cols)
		if m.Rows != ms[0].Rows {
			c.fault("operand %d has %d rows, want %d", i, m.Rows, ms[0].Rows)
		}
	}
}

func (c *vectorCheck) results(x Mat, n int) {
	c.fit("x", x, x.Cols)
	if n != x.Rows {
		c.fault("room for %d results, want %d", n, x.Rows)
	}
}

func (c *vectorCheck) span(name string, s Span) {
	c.fit(name, s.Mat, s.Mat.Cols)
	if err := s.Check(); err != nil {
		c.fault("%s: %v", name, err)
	}
}

// singleRow checks that s is one row of the given width.
func (c *vectorCheck) singleRow(name string, s Span, wide int) {
	c.span(name, s)
	if !(s.Rows == 1 && s.Hi-s.Lo == wide) {
		c.fault("%s is %d rows of %d columns, want one row of %d", name, s.Rows, s.Hi-s.Lo, wide)
	}
}

func (c *vectorCheck) code(code Code) {
	if code > Int8 {
		c.fault("code %d is not known", code)
	}
}

func (c *vectorCheck) update(t *Update) {
	if len(t.Prog) == 0 || len(t.Rows) == 0 {
		return
	}
	for i, s := range t.Prog {
		if c.operand(s.Dst, t.Prog[0].Dst.Cols, t.Rows); c.err != nil {
			c.wrapFault("destination of statement %d", i)
			return
		}
		if s.Map >= mapCount {
			c.fault("statement %d: function %d is not known", i, s.Map)
			return
		}
		if s.By.Rows > 0 {
			rows := t.Rows
			if s.By.Rows == 1 {
				rows = nil
			}
			if c.operand(s.By, t.Prog[0].Dst.Cols, rows); c.err != nil {
				c.wrapFault("factor of statement %d", i)
				return
			}
		}
		for j, x := range s.Terms {
			rows := t.Rows
			if x.Src.Rows == 1 {
				rows = nil
			}
			if c.operand(x.Src, t.Prog[0].Dst.Cols, rows); c.err != nil {
				c.wrapFault("term %d of statement %d", j, i)
				return
			}
		}
	}
}

func (c *vectorCheck) operand(m Mat, cols int, rows []Row) {
	c.fit("matrix", m, cols)
	c.rowsIn("it", m, rows)
}

// wrapFault prefixes the recorded error with its position in an update program.
func (c *vectorCheck) wrapFault(format string, args ...any) {
	c.err = &ArgumentError{c.task, fmt.Sprintf(format, args...) + ": " + c.err.(*ArgumentError).What}
}

func (c *vectorCheck) adam(t *Adam) {
	for i, m := range [...]Mat{t.X, t.M, t.V, t.G} {
		name := [...]string{"x", "m", "v", "g"}[i]
		c.fit(name, m, t.X.Cols)
		if name != "g" || m.Rows != 1 {
			c.rowsIn(name, m, t.Rows)
		}
	}
	if t.T <= 0 {
		c.fault("step 0, steps count from 1")
	}
}

func (c *vectorCheck) sum(t *Sum) {
	wide, n := t.Dst.Hi-t.Dst.Lo, len(t.Src)
	c.singleRow("dst", t.Dst, wide)
	for _, s := range t.Src {
		c.singleRow("a source", s, wide)
	}
	if n <= 0 {
		c.fault("nothing to add up")
	}
	if c.err != nil {
		return
	}
	used := make([]bool, n+len(t.Tree))
	for j, pair := range t.Tree {
		for _, i := range pair {
			known := i >= 0 && i < n+j && !used[i]
			if !known {
				c.fault("operand %d of sum %d, of %d known ones, each to be used once", i, j, n+j)
			}
			if known {
				used[i] = true
			}
		}
	}
	for i, u := range used[:len(used)-1] {
		if !u {
			c.fault("operand %d is left out", i)
		}
	}
	c.code(t.Code)
}

func (c *vectorCheck) noiseSum(t *NoiseSum) {
	d := t.Dst
	c.fit("dst", d.Mat, c.l.Params)
	if !(d.Rows == 1 && d.Row >= 0 && int(d.Row) < d.Mat.Rows) {
		c.fault("dst spans %d rows from row %d of %d, want one row", d.Rows, d.Row, d.Mat.Rows)
	}
	if !(d.Lo >= 0 && d.Hi >= d.Lo && d.Hi <= d.Mat.Cols) {
		c.fault("columns [%d, %d) of %d", d.Lo, d.Hi, d.Mat.Cols)
	}
	if len(t.Weights) != len(t.IDs) {
		c.fault("%d weights for %d ids", len(t.Weights), len(t.IDs))
	}
	if c.err == nil {
		c.err = t.CheckNoise()
	}
}
