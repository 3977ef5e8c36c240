// Package engine holds the vocabulary that programs and compute engines share: matrices, spans, members and the closed
// set of tasks. It is a leaf: it imports only the noise addresses, no engine, no algorithm.
//
// An engine is whatever turns tasks into numbers: gorgonia graphs (models/graph), native CPU kernels, later a GPU.
// Two rules bind all of them. A row's result depends on that row and its inputs only, never on the cohort it was
// computed with nor on the number of threads. And tasks given together run in their order.
package engine

import (
	"fmt"
	"math"
)

// Member is a slot of the population (replica, candidate, individual, execution): an id that owns work. Ids survive
// joins, deaths and resizes; they are not indices.
type Member uint32

// None is the member of a point that belongs to the whole population.
const None = ^Member(0)

// Row is an index into a Mat. It is a type of its own because a row is not a member id.
type Row int

// Note is what an engine met that a person should know, and goes on with.
type Note struct{ Kind, Text string }

// Kinds of notes.
const (
	NoteMissing = "missing" // results that could not be had
	NoteVaries  = "varies"  // results that differ where they should not
	NoteMetric  = "metric"  // what was measured beside a result and is no number

	NoteRestarts = "restarts" // a program that ended and was started again
)

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

// Host is Rows x Cols elements, row-major, of one type, in host memory: counters, records of fitness, and what is
// staged between an engine and the world. It is passed by value; copies share the memory. F is nil for U64; U is nil
// for F32. The zero Host has no rows.
type Host struct {
	Rows, Cols int
	Type       DType
	F          []float32
	U          []uint64
}

// NewHost is zeroed.
func NewHost(rows, cols int, t DType) Host {
	m := Host{Rows: rows, Cols: cols, Type: t}
	if t == U64 {
		m.U = make([]uint64, rows*cols)
	} else {
		m.F = make([]float32, rows*cols)
	}
	return m
}

// Sub views n rows from row lo; it shares memory with m.
func (m Host) Sub(lo Row, n int) Host {
	s := Host{Rows: n, Cols: m.Cols, Type: m.Type}
	a, b := int(lo)*m.Cols, (int(lo)+n)*m.Cols
	if m.Type == U64 {
		s.U = m.U[a:b:b]
	} else {
		s.F = m.F[a:b:b]
	}
	return s
}

// Row is the F32 row r: Cols values, owned by m.
func (m Host) Row(r Row) []float32 { return m.F[int(r)*m.Cols : (int(r)+1)*m.Cols] }

// URow is the U64 row r: Cols values, owned by m.
func (m Host) URow(r Row) []uint64 { return m.U[int(r)*m.Cols : (int(r)+1)*m.Cols] }

// Clone copies m into memory of its own.
func (m Host) Clone() Host {
	c := NewHost(m.Rows, m.Cols, m.Type)
	c.Set(m)
	return c
}

// Set copies the elements of o, which has m's shape and type, into m.
func (m Host) Set(o Host) {
	copy(m.F, o.F)
	copy(m.U, o.U)
}

// Bytes is the size of m's elements.
func (m Host) Bytes() int { return m.Rows * m.Cols * m.Type.Size() }

// Buffer is memory of an engine, in a type of the engine's own.
type Buffer interface {
	Len() int // elements
}

// Mat is a handle on Rows x Cols float32 elements, row-major, in an engine's memory. Only the engine that allocated it
// sees what is behind it: others give it to tasks, or read and write it through the engine. It is passed by value;
// copies share the memory. The zero Mat has no rows.
type Mat struct {
	Rows, Cols int
	buf        Buffer
	at         int // first element
}

// Over is the matrix that begins at an element of an engine's buffer. It is for engines alone.
func Over(b Buffer, at, rows, cols int) Mat { return Mat{Rows: rows, Cols: cols, buf: b, at: at} }

// Behind is the buffer of m and m's first element in it; nil where m has no memory. It is for engines alone.
func (m Mat) Behind() (b Buffer, at int) { return m.buf, m.at }

// Sub views n rows from row lo; it shares memory with m.
func (m Mat) Sub(lo Row, n int) Mat {
	if lo < 0 || n < 0 || int(lo)+n > m.Rows {
		panic(fmt.Sprintf("rows [%d, %d) of a matrix of %d", lo, int(lo)+n, m.Rows))
	}
	return Mat{Rows: n, Cols: m.Cols, buf: m.buf, at: m.at + int(lo)*m.Cols}
}

// Fold views the elements of m as n rows of equal length; it shares memory with m.
func (m Mat) Fold(n int) Mat {
	if n < 1 || m.Rows*m.Cols%n != 0 {
		panic(fmt.Sprintf("%dx%d elements as %d rows", m.Rows, m.Cols, n))
	}
	return Mat{Rows: n, Cols: m.Rows * m.Cols / n, buf: m.buf, at: m.at}
}

// Bytes is the size of m's elements.
func (m Mat) Bytes() int { return m.Rows * m.Cols * F32.Size() }

// Span is columns [Lo, Hi) of rows [Row, Row+Rows) of Mat.
type Span struct {
	Mat    Mat
	Row    Row
	Rows   int
	Lo, Hi int
}

// All is the whole of m.
func All(m Mat) Span { return Span{Mat: m, Rows: m.Rows, Hi: m.Cols} }

// RowOf is row r of m.
func RowOf(m Mat, r Row) Span { return Span{Mat: m, Row: r, Rows: 1, Hi: m.Cols} }

// Bytes is the size of s's elements.
func (s Span) Bytes() int { return s.Rows * (s.Hi - s.Lo) * F32.Size() }

// Check says what is wrong with s, if anything.
func (s Span) Check() error {
	switch {
	case s.Row < 0 || s.Rows < 0 || int(s.Row)+s.Rows > s.Mat.Rows:
		return fmt.Errorf("rows [%d, %d) of a matrix of %d", s.Row, int(s.Row)+s.Rows, s.Mat.Rows)
	case s.Lo < 0 || s.Hi < s.Lo || s.Hi > s.Mat.Cols:
		return fmt.Errorf("columns [%d, %d) of a matrix of %d", s.Lo, s.Hi, s.Mat.Cols)
	}
	return nil
}

// AllFinite says whether no value is NaN or infinite.
func AllFinite(v []float32) bool {
	for _, x := range v {
		if math.Float32bits(x)&0x7f800000 == 0x7f800000 {
			return false
		}
	}
	return true
}

// Rows lists rows 0..n-1.
func Rows(n int) []Row {
	out := make([]Row, n)
	for i := range out {
		out[i] = Row(i)
	}
	return out
}
