package ram

import (
	"context"
	"fmt"
	"math/bits"

	"brood/models/engine"
)

// Hollow is memory of sizes alone: there is nothing behind its matrices. What is written to it is lost, and reading
// leaves the reader's bytes as they are. It is for engines that count or time what a run would do. The zero Hollow is
// ready.
type Hollow struct{}

// extent is the elements that a matrix would have.
type extent int

func (n extent) Len() int { return int(n) }

// Alloc takes no memory. It fails where [Memory] would, for more than any machine has.
func (Hollow) Alloc(rows, cols int) (engine.Mat, error) {
	if hi, lo := bits.Mul64(uint64(rows), uint64(cols)); rows < 0 || cols < 0 || hi > 0 || lo > most {
		return engine.Mat{}, tooMany(rows, cols)
	}
	return engine.Over(extent(rows*cols), 0, rows, cols), nil
}

// Free does nothing.
func (Hollow) Free(engine.Mat) {}

// Write checks that p is as long as dst.
func (Hollow) Write(ctx context.Context, dst engine.Span, p []byte) error { return fits(ctx, dst, p) }

// Read checks that p is as long as src.
func (Hollow) Read(ctx context.Context, p []byte, src engine.Span) error { return fits(ctx, src, p) }

// Wait returns at once.
func (Hollow) Wait(ctx context.Context) error { return ctx.Err() }

func fits(ctx context.Context, s engine.Span, p []byte) error {
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
	return fmt.Errorf("a matrix of %d x %d is more than a machine holds: take fewer members or a smaller model", rows, cols)
}
