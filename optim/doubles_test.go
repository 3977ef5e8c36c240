package optim

import (
	"math"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/native"
)

// memoryCounter is an engine that sums the host memory that programs report.
type memoryCounter struct {
	engine.Engine
	bytes int
}

func (c *memoryCounter) CountHostMemory(width, bytes int) { c.bytes += width * bytes }

// TestDoubles: rows longer than a piece are read and written with the same bits, each round reuses the memory of the
// round before, and the engine counts that memory once.
func TestDoubles(t *testing.T) {
	const n = 2*doublesPiece + 7
	vectors, err := native.New(engine.Layout{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	counter := &memoryCounter{Engine: vectors}
	e := &Env{Engine: counter}
	a, b := ram.New(1, n), ram.New(1, n)
	for i := range n {
		ram.View(a).F[i], ram.View(b).F[i] = math.Float32frombits(uint32(i)*2654435761), float32(1+i)
	}
	for range 3 {
		e.Recycle()
		x, err := e.Doubles(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		y, err := e.Doubles(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if f := ram.View(a).F[i]; x[i] != float64(f) && f == f || y[i] != float64(1+i) {
				t.Fatalf("element %d is %v and %v, want %v and %d", i, x[i], y[i], f, 1+i)
			}
			y[i] += 1e-12 // less than half of the last bit of a float32
		}
		if err := e.SetDoubles(t.Context(), b, y); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if ram.View(b).F[i] != float32(1+i) {
				t.Fatalf("element %d is %v, want %v", i, ram.View(b).F[i], 1+i)
			}
		}
	}
	if counter.bytes != 2*8*n {
		t.Errorf("the engine counted %d bytes, want %d", counter.bytes, 2*8*n)
	}
	again := testing.AllocsPerRun(3, func() {
		e.Recycle()
		if _, err := e.Doubles(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	})
	if again > 1 {
		t.Errorf("a row of the round before takes %v allocations", again)
	}
	e.Recycle()
	if x, err := e.Doubles(t.Context(), ram.New(1, 5)); err != nil || len(x) != 5 {
		t.Errorf("a row of 5 has %d elements, %v", len(x), err)
	}
}
