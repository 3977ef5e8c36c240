package ram

import (
	"context"
	"fmt"
	"math/bits"

	"brood/models/engine"
)

// Meta allocates meta tensors: matrices that have sizes but no storage. Writes are discarded, and reads leave p
// unchanged. Engines that count or time the operations of a run use it. The zero Meta is ready to use.
type Meta struct{}

// extent is a buffer without storage: the number of its elements.
type extent int

func (n extent) Len() int { return int(n) }

// Alloc returns a matrix without storage. Like [Memory.Alloc] it fails for more than maxElements elements.
func (Meta) Alloc(rows, cols int) (engine.Mat, error) {
	if hi, lo := bits.Mul64(uint64(rows), uint64(cols)); rows < 0 || cols < 0 || hi > 0 || lo > maxElements {
		return engine.Mat{}, tooMany(rows, cols)
	}
	return engine.Over(extent(rows*cols), 0, rows, cols), nil
}

// Free does nothing.
func (Meta) Free(engine.Mat) {}

// Write only checks that dst is valid and p has its size.
func (Meta) Write(ctx context.Context, dst engine.Span, p []byte) error {
	return checkTransfer(ctx, dst, p)
}

// Read only checks that src is valid and p has its size.
func (Meta) Read(ctx context.Context, p []byte, src engine.Span) error {
	return checkTransfer(ctx, src, p)
}

// Wait returns at once.
func (Meta) Wait(ctx context.Context) error { return ctx.Err() }

func checkTransfer(ctx context.Context, s engine.Span, p []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.Check(); err != nil {
		return err
	}
	if len(p) != s.Bytes() {
		return fmt.Errorf("%d bytes for %d elements", len(p), s.Bytes()/4)
	}
	return nil
}

func tooMany(rows, cols int) error {
	return fmt.Errorf("a matrix of %d x %d is more than a machine holds: take fewer members or a smaller model",
		rows, cols)
}
