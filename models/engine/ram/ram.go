// Package ram is host memory as engines that compute on the processor own it. Others see the same handles as of any
// engine.
//
//	type Engine struct{ ram.Memory; ... }
//	x := ram.View(task.X) // for the engine alone
package ram

import (
	"context"
	"fmt"
	"math/bits"

	"brood/models/engine"
)

// Memory allocates from the Go heap. It computes nothing late: there is nothing to wait for. The zero Memory is ready.
type Memory struct{}

// buffer is nil once it was freed.
type buffer struct{ f []float32 }

func (b *buffer) Len() int { return len(b.f) }

// most is the largest number of elements of one matrix: more is a mistake, and the heap would end the process.
const most = 1 << 40

// Alloc is zeroed memory of rows x cols elements. It fails for more than any machine has.
func (Memory) Alloc(rows, cols int) (engine.Mat, error) {
	if hi, lo := bits.Mul64(uint64(rows), uint64(cols)); rows < 0 || cols < 0 || hi > 0 || lo > most {
		return engine.Mat{}, tooMany(rows, cols)
	}
	return engine.Over(&buffer{make([]float32, rows*cols)}, 0, rows, cols), nil
}

// Free gives the memory behind m back, and that of every view of it. Whoever uses it afterwards finds a matrix without
// memory.
func (Memory) Free(m engine.Mat) {
	b, _ := m.Behind()
	if b, ok := b.(*buffer); ok {
		b.f = nil
	}
}

// Write copies little-endian elements, row by row, to dst.
func (Memory) Write(ctx context.Context, dst engine.Span, p []byte) error {
	if err := checked(ctx, dst, p); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	m, wide := View(dst.Mat), dst.Hi-dst.Lo
	for i := range dst.Rows {
		engine.ReadFloats(m.Row(dst.Row + engine.Row(i))[dst.Lo:dst.Hi], p[4*i*wide:])
	}
	return nil
}

// Read copies the elements of src, little-endian and row by row, to p.
func (Memory) Read(ctx context.Context, p []byte, src engine.Span) error {
	if err := checked(ctx, src, p); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	m, wide := View(src.Mat), src.Hi-src.Lo
	for i := range src.Rows {
		engine.AppendFloats(p[:4*i*wide], m.Row(src.Row + engine.Row(i))[src.Lo:src.Hi])
	}
	return nil
}

// Wait returns at once.
func (Memory) Wait(ctx context.Context) error { return ctx.Err() }

func checked(ctx context.Context, s engine.Span, p []byte) error {
	if err := fits(ctx, s, p); err != nil {
		return err
	}
	if m := View(s.Mat); len(m.F) < m.Rows*m.Cols {
		return fmt.Errorf("a matrix of %d x %d has no memory here: it was freed, or is another engine's", m.Rows, m.Cols)
	}
	return nil
}

// View is the elements of m. F is nil where m has no memory, or another engine's.
func View(m engine.Mat) engine.Host {
	h := engine.Host{Rows: m.Rows, Cols: m.Cols}
	b, at := m.Behind()
	if b, ok := b.(*buffer); ok && at+m.Rows*m.Cols <= len(b.f) {
		h.F = b.f[at : at+m.Rows*m.Cols : at+m.Rows*m.Cols]
	}
	return h
}

// Of is a matrix over the F32 elements of h, which it shares.
func Of(h engine.Host) engine.Mat { return engine.Over(&buffer{h.F}, 0, h.Rows, h.Cols) }

// New is a zeroed matrix for tools and tests whose engine is one of the processor.
func New(rows, cols int) engine.Mat { return Of(engine.NewHost(rows, cols, engine.F32)) }
