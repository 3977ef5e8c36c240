// Package engine defines the types shared by programs and compute engines: matrices, spans, members and the closed set
// of tasks. It imports package noise but no engine and no algorithm.
//
// An engine executes tasks: gorgonia graphs (models/graph), native CPU kernels (models/native) or a GPU (models/gpu).
// All engines follow two rules. The result of a row depends only on that row and its inputs, never on the other rows of
// the task or on the number of threads. Tasks passed together run in order.
package engine

import (
	"fmt"
	"math"
)

// Member is the id of a member of the population (replica, candidate, individual, execution), the unit of work. Ids are
// stable across joins, failures and resizes; they are not indices.
type Member uint32

// None is the member of a data point that belongs to the whole population.
const None = ^Member(0)

// Row is a row index of a Mat. It is a distinct type so that it cannot be confused with a member id.
type Row int

// Note is a non-fatal finding of an engine, shown to the user.
type Note struct{ Kind, Text string }

// Kinds of notes.
const (
	NoteMissing = "missing" // evaluation results that are missing
	NoteVaries  = "varies"  // results that differ for equal inputs
	NoteMetric  = "metric"  // an additional metric that is not a finite number

	NoteRestarts = "restarts" // an objective program exited and was restarted
)

// DType is the element type of a Mat.
type DType uint8

const (
	F32 DType = iota // parameters, momenta, fitness records
	U64              // counters: cursors, phases. Always host memory.
)

// Size returns the bytes per element.
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

// Host is a row-major matrix of Rows x Cols elements in host memory: counters, fitness records, and data staged for
// transfer to or from an engine. It is passed by value; copies share the memory. F is nil for U64; U is nil for F32.
// The zero Host has no rows.
type Host struct {
	Rows, Cols int
	Type       DType
	F          []float32
	U          []uint64
}

// NewHost returns a zeroed matrix.
func NewHost(rows, cols int, t DType) Host {
	m := Host{Rows: rows, Cols: cols, Type: t}
	if t == U64 {
		m.U = make([]uint64, rows*cols)
	} else {
		m.F = make([]float32, rows*cols)
	}
	return m
}

// Sub returns a view of n rows from row lo. It shares memory with m.
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

// Row returns the Cols elements of F32 row r. They share memory with m.
func (m Host) Row(r Row) []float32 { return m.F[int(r)*m.Cols : (int(r)+1)*m.Cols] }

// URow returns the Cols elements of U64 row r. They share memory with m.
func (m Host) URow(r Row) []uint64 { return m.U[int(r)*m.Cols : (int(r)+1)*m.Cols] }

// Clone returns a copy of m in new memory.
func (m Host) Clone() Host {
	c := NewHost(m.Rows, m.Cols, m.Type)
	c.Set(m)
	return c
}

// Set copies the elements of o, which must have m's shape and type, into m.
func (m Host) Set(o Host) {
	copy(m.F, o.F)
	copy(m.U, o.U)
}

// Bytes returns the total size of m's elements.
func (m Host) Bytes() int { return m.Rows * m.Cols * m.Type.Size() }

// Buffer is memory of an engine. Each engine has its own implementation.
type Buffer interface {
	Len() int // number of elements
}

// Mat is a handle of a row-major matrix of Rows x Cols float32 elements in an engine's memory. Only the engine that
// allocated it accesses the memory; other code passes it to tasks or uses the engine's Read and Write. It is passed by
// value; copies share the memory. The zero Mat has no rows.
type Mat struct {
	Rows, Cols int
	buf        Buffer
	at         int // index of the first element in buf
}

// Over returns a matrix whose first element is element at of b. Only engines call it.
func Over(b Buffer, at, rows, cols int) Mat { return Mat{Rows: rows, Cols: cols, buf: b, at: at} }

// Behind returns the buffer of m and the index of m's first element in it. b is nil if m has no memory. Only engines
// call it.
func (m Mat) Behind() (b Buffer, at int) { return m.buf, m.at }

// Sub returns a view of n rows from row lo. It shares memory with m. It panics if the rows are out of range.
func (m Mat) Sub(lo Row, n int) Mat {
	if lo < 0 || n < 0 || int(lo)+n > m.Rows {
		panic(fmt.Sprintf("rows [%d, %d) of a matrix of %d", lo, int(lo)+n, m.Rows))
	}
	return Mat{Rows: n, Cols: m.Cols, buf: m.buf, at: m.at + int(lo)*m.Cols}
}

// Fold returns a view of the elements of m as n rows of equal length. It shares memory with m. It panics if n does not
// divide the number of elements.
func (m Mat) Fold(n int) Mat {
	if n < 1 || m.Rows*m.Cols%n != 0 {
		panic(fmt.Sprintf("%dx%d elements as %d rows", m.Rows, m.Cols, n))
	}
	return Mat{Rows: n, Cols: m.Rows * m.Cols / n, buf: m.buf, at: m.at}
}

// Bytes returns the total size of m's elements.
func (m Mat) Bytes() int { return m.Rows * m.Cols * F32.Size() }

// Span is the columns [Lo, Hi) of the rows [Row, Row+Rows) of Mat.
type Span struct {
	Mat    Mat
	Row    Row
	Rows   int
	Lo, Hi int
}

// All returns the span of all elements of m.
func All(m Mat) Span { return Span{Mat: m, Rows: m.Rows, Hi: m.Cols} }

// RowOf returns the span of row r of m.
func RowOf(m Mat, r Row) Span { return Span{Mat: m, Row: r, Rows: 1, Hi: m.Cols} }

// Bytes returns the total size of s's elements.
func (s Span) Bytes() int { return s.Rows * (s.Hi - s.Lo) * F32.Size() }

// Check returns an error if s is not within its matrix.
func (s Span) Check() error {
	switch {
	case s.Row < 0 || s.Rows < 0 || int(s.Row)+s.Rows > s.Mat.Rows:
		return fmt.Errorf("rows [%d, %d) of a matrix of %d", s.Row, int(s.Row)+s.Rows, s.Mat.Rows)
	case s.Lo < 0 || s.Hi < s.Lo || s.Hi > s.Mat.Cols:
		return fmt.Errorf("columns [%d, %d) of a matrix of %d", s.Lo, s.Hi, s.Mat.Cols)
	}
	return nil
}

// AllFinite reports whether no value is NaN or infinite.
func AllFinite(v []float32) bool {
	for _, x := range v {
		if math.Float32bits(x)&0x7f800000 == 0x7f800000 {
			return false
		}
	}
	return true
}

// Rows returns the rows 0..n-1.
func Rows(n int) []Row {
	out := make([]Row, n)
	for i := range out {
		out[i] = Row(i)
	}
	return out
}
