// Package ram implements [engine.Memory] in host memory, for engines that compute on the CPU. Other code sees opaque
// handles, as of any engine.
//
//	type Engine struct{ ram.Memory; ... }
//	x := ram.View(task.X) // only within the engine
package ram

import (
	"context"
	"fmt"
	"math/bits"

	"brood/models/engine"
)

// Memory allocates from the Go heap. All its operations are synchronous. The zero Memory is ready to use.
type Memory struct{}

// buffer is the memory of a matrix. f is nil after Free.
type buffer struct{ f []float32 }

func (b *buffer) Len() int { return len(b.f) }

// maxElements is the largest number of elements of one matrix. A larger allocation would terminate the process.
const maxElements = 1 << 40

// Alloc returns a zeroed matrix. It fails for more than maxElements elements.
func (Memory) Alloc(rows, cols int) (engine.Mat, error) {
	if hi, lo := bits.Mul64(uint64(rows), uint64(cols)); rows < 0 || cols < 0 || hi > 0 || lo > maxElements {
		return engine.Mat{}, tooMany(rows, cols)
	}
	return engine.Over(&buffer{make([]float32, rows*cols)}, 0, rows, cols), nil
}

// Free releases the memory of m and of all its views. Later uses of them fail with an error.
func (Memory) Free(m engine.Mat) {
	b, _ := m.Behind()
	if b, ok := b.(*buffer); ok {
		b.f = nil
	}
}

// Write copies little-endian elements, row by row, to dst.
func (Memory) Write(ctx context.Context, dst engine.Span, p []byte) error {
	if err := checkAccess(ctx, dst, p); err != nil {
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
	if err := checkAccess(ctx, src, p); err != nil {
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

func checkAccess(ctx context.Context, s engine.Span, p []byte) error {
	if err := checkTransfer(ctx, s, p); err != nil {
		return err
	}
	if m := View(s.Mat); len(m.F) < m.Rows*m.Cols {
		return fmt.Errorf("a matrix of %d x %d has no memory here: it was freed, or is another engine's", m.Rows, m.Cols)
	}
	return nil
}

// View returns the elements of m. F is nil if m has no memory or was allocated by another kind of engine.
func View(m engine.Mat) engine.Host {
	h := engine.Host{Rows: m.Rows, Cols: m.Cols}
	b, at := m.Behind()
	if b, ok := b.(*buffer); ok && at+m.Rows*m.Cols <= len(b.f) {
		h.F = b.f[at : at+m.Rows*m.Cols : at+m.Rows*m.Cols]
	}
	return h
}

// Of returns a matrix that shares the F32 elements of h.
func Of(h engine.Host) engine.Mat { return engine.Over(&buffer{h.F}, 0, h.Rows, h.Cols) }

// New returns a zeroed matrix, for tools and tests of CPU engines.
func New(rows, cols int) engine.Mat { return Of(engine.NewHost(rows, cols, engine.F32)) }
