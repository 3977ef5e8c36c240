package gpu

import (
	"context"
	"fmt"
	"math/bits"

	"brood/models/engine"
)

// buffer is memory of a device; m is 0 after Free.
type buffer struct {
	e *Engine
	m Memory
	n int // elements
}

func (b *buffer) Len() int { return b.n }

// Alloc returns a zeroed matrix. If the device has too little memory, the error contains the requested size and the
// memory in use.
func (e *Engine) Alloc(rows, cols int) (engine.Mat, error) {
	if e.sticky != nil {
		return engine.Mat{}, e.sticky
	}
	info := e.dev.Info()
	hi, n := bits.Mul64(uint64(max(0, rows)), uint64(max(0, cols)))
	if rows < 0 || cols < 0 || hi > 0 || n > 1<<58 || int64(4*n) > info.Memory-e.used || int64(4*n) > info.Most {
		return engine.Mat{}, fmt.Errorf("%s: a matrix of %d x %d does not fit: of %.2f GB on the device %.2f are taken, "+
			"and one piece may have %.2f; take fewer members or a smaller model",
			info.Name, rows, cols, float64(info.Memory)/1e9, float64(e.used)/1e9, float64(info.Most)/1e9)
	}
	m, err := e.dev.Alloc(int(4 * n))
	if err != nil {
		return engine.Mat{}, fmt.Errorf("%s: no memory for a matrix of %d x %d (%w), of %.2f GB %.2f are taken", info.Name,
			rows, cols, err, float64(info.Memory)/1e9, float64(e.used)/1e9)
	}
	b := &buffer{e, m, int(n)}
	e.used += int64(4 * n)
	out := engine.Over(b, 0, rows, cols)
	if n == 0 {
		return out, nil
	}
	return out, e.issue(new(batch).launch("zeros", int(n), 1, m, uint64(0), n))
}

// Free frees memory once all queued work is done. It ignores memory of other engines and memory freed before.
func (e *Engine) Free(m engine.Mat) {
	b, _ := m.Behind()
	if b, ok := b.(*buffer); ok && b.e == e && b.m != 0 {
		if e.dev != nil {
			e.dev.Free(b.m)
		}
		e.used -= int64(4 * b.n)
		b.m, b.n = 0, 0
	}
}

// held reports whether m is memory of this engine.
func (e *Engine) held(m engine.Mat) bool {
	b, at := m.Behind()
	own, ok := b.(*buffer)
	return ok && own.e == e && own.m != 0 && at+m.Rows*m.Cols <= own.n
}

// behind returns the memory of a checked matrix, and the offset of its first element.
func behind(m engine.Mat) (Memory, uint64) {
	b, at := m.Behind()
	if own, ok := b.(*buffer); ok {
		return own.m, uint64(at)
	}
	return 0, 0
}

// Write queues a copy of p into the elements of dst, row by row.
func (e *Engine) Write(ctx context.Context, dst engine.Span, p []byte) error {
	if err := e.span(ctx, dst, p); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	m, at := first(dst)
	if whole(dst) {
		return e.fail("write", e.dev.Write(m, 4*int(at), p))
	}
	stage, err := e.scratchMemory("window", len(p))
	if err != nil {
		return err
	}
	if err := e.fail("write", e.dev.Write(stage, 0, p)); err != nil {
		return err
	}
	wide := dst.Hi - dst.Lo
	return e.issue(new(batch).launch("move", wide, dst.Rows, m, at, uint64(dst.Mat.Cols), stage, uint64(0),
		uint64(wide), uint64(wide)))
}

// Read copies elements of src to p, row by row, once all queued work is done.
func (e *Engine) Read(ctx context.Context, p []byte, src engine.Span) error {
	if err := e.span(ctx, src, p); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if err := e.settle(); err != nil || len(p) == 0 {
		return err
	}
	m, at := first(src)
	if !whole(src) {
		stage, err := e.scratchMemory("window", len(p))
		if err != nil {
			return err
		}
		wide := src.Hi - src.Lo
		if err := e.issue(new(batch).launch("move", wide, src.Rows, stage, uint64(0), uint64(wide), m, at,
			uint64(src.Mat.Cols), uint64(wide))); err != nil {
			return err
		}
		m, at = stage, 0
	}
	return e.fail("read", e.dev.Read(p, m, 4*int(at)))
}

// first returns the memory of a span and the offset of its first element.
func first(s engine.Span) (Memory, uint64) {
	m, at := behind(s.Mat)
	return m, at + uint64(int(s.Row)*s.Mat.Cols+s.Lo)
}

// whole reports whether the elements of a span are contiguous.
func whole(s engine.Span) bool { return s.Rows <= 1 || s.Lo == 0 && s.Hi == s.Mat.Cols }

func (e *Engine) span(ctx context.Context, s engine.Span, p []byte) error {
	if err := e.open(ctx); err != nil {
		return err
	}
	if err := s.Check(); err != nil {
		return err
	}
	if len(p) != s.Bytes() {
		return fmt.Errorf("%d bytes for %d elements", len(p), s.Bytes()/4)
	}
	if !e.held(s.Mat) {
		return fmt.Errorf("a matrix of %d x %d has no memory here: it was freed, or is another engine's", s.Mat.Rows,
			s.Mat.Cols)
	}
	return nil
}

// scratchMemory returns named scratch memory of at least this many bytes. Growing loses its contents. A batch may ask
// for each name once.
func (e *Engine) scratchMemory(name string, bytes int) (Memory, error) {
	s := e.scratch[name]
	if s == nil {
		s = &spare{}
		e.scratch[name] = s
	}
	if s.bytes >= bytes && s.m != 0 {
		return s.m, nil
	}
	if s.m != 0 {
		e.old = append(e.old, s.m)
	}
	m, err := e.dev.Alloc(bytes)
	if err != nil {
		s.m, s.bytes = 0, 0
		return 0, e.fail("take memory for "+name, err)
	}
	s.m, s.bytes = m, bytes
	return m, nil
}
