// Package engine holds the vocabulary that programs and compute engines share: matrices, spans, members and the closed
// set of tasks. It is a leaf: it imports only the noise addresses, no engine, no algorithm.
//
// An engine is whatever turns tasks into numbers: gorgonia graphs (models/graph), native CPU kernels, later a GPU.
// Two rules bind all of them. A row's result depends on that row and its inputs only, never on the cohort it was
// computed with nor on the number of threads. And tasks given together run in their order.
package engine

import "fmt"

// Member is a slot of the population (replica, candidate, individual, trial): an id that owns work. Ids survive joins,
// deaths and resizes; they are not indices.
type Member uint32

// None is the member of a point that belongs to the whole population.
const None = ^Member(0)

// Row is an index into a Mat. It is a type of its own because a row is not a member id.
type Row int

// DType is the element type of a Mat.
type DType uint8

const (
	F32 DType = iota // parameters, momenta, records of fitness
	U64              // counters: cursors, phases. Always host memory.
)

// Size is the bytes of one element.
func (t DType) Size() int {
	if t == U64 {
		return 8
	}
	return 4
}

func (t DType) String() string {
	if t == U64 {
		return "u64"
	}
	return "f32"
}

// Mat is Rows x Cols elements, row-major, of one type. It is a handle passed by value: copies share the memory.
// F is nil for U64; U is nil for F32. The zero Mat has no rows.
type Mat struct {
	Rows, Cols int
	Type       DType
	F          []float32
	U          []uint64
}

// New allocates zeroed host memory.
func New(rows, cols int, t DType) Mat {
	m := Mat{Rows: rows, Cols: cols, Type: t}
	if t == U64 {
		m.U = make([]uint64, rows*cols)
	} else {
		m.F = make([]float32, rows*cols)
	}
	return m
}

// Sub views n rows from row lo; it shares memory with m.
func (m Mat) Sub(lo Row, n int) Mat {
	s := Mat{Rows: n, Cols: m.Cols, Type: m.Type}
	a, b := int(lo)*m.Cols, (int(lo)+n)*m.Cols
	if m.Type == U64 {
		s.U = m.U[a:b:b]
	} else {
		s.F = m.F[a:b:b]
	}
	return s
}

// Row is the F32 row r: Cols values, owned by m.
func (m Mat) Row(r Row) []float32 { return m.F[int(r)*m.Cols : (int(r)+1)*m.Cols] }

// URow is the U64 row r: Cols values, owned by m.
func (m Mat) URow(r Row) []uint64 { return m.U[int(r)*m.Cols : (int(r)+1)*m.Cols] }

// Clone copies m into memory of its own.
func (m Mat) Clone() Mat {
	c := New(m.Rows, m.Cols, m.Type)
	copy(c.F, m.F)
	copy(c.U, m.U)
	return c
}

// Bytes is the size of m's elements.
func (m Mat) Bytes() int { return m.Rows * m.Cols * m.Type.Size() }

// Span is columns [Lo, Hi) of rows [Row, Row+Rows) of Mat.
type Span struct {
	Mat    Mat
	Row    Row
	Rows   int
	Lo, Hi int
}

// All is the whole of m.
func All(m Mat) Span { return Span{Mat: m, Rows: m.Rows, Hi: m.Cols} }

// CopyHost is Engine.Copy for host memory: equal shapes and types, or an error.
func CopyHost(dst, src Span) error {
	if dst.Rows != src.Rows || dst.Hi-dst.Lo != src.Hi-src.Lo || dst.Mat.Type != src.Mat.Type {
		return fmt.Errorf("copy %dx%d %s to %dx%d %s: shapes differ", src.Rows, src.Hi-src.Lo, src.Mat.Type, dst.Rows, dst.Hi-dst.Lo, dst.Mat.Type)
	}
	for i := range dst.Rows {
		d, s := (int(dst.Row)+i)*dst.Mat.Cols, (int(src.Row)+i)*src.Mat.Cols
		if dst.Mat.Type == U64 {
			copy(dst.Mat.U[d+dst.Lo:d+dst.Hi], src.Mat.U[s+src.Lo:s+src.Hi])
		} else {
			copy(dst.Mat.F[d+dst.Lo:d+dst.Hi], src.Mat.F[s+src.Lo:s+src.Hi])
		}
	}
	return nil
}

// Rows lists rows 0..n-1.
func Rows(n int) []Row {
	out := make([]Row, n)
	for i := range out {
		out[i] = Row(i)
	}
	return out
}
