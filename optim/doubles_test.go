package optim

import (
	"math"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/native"
)

// holding is an engine that is told what programmes hold.
type holding struct {
	engine.Engine
	bytes int
}

func (h *holding) Hold(width, bytes int) { h.bytes += width * bytes }

// TestDoubles: rows longer than a piece come and go with their bits, the memory of a round serves the next one, and the
// engine is told of it once.
func TestDoubles(t *testing.T) {
	const n = 2*doublesPiece + 7
	vectors, err := native.New(engine.Layout{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	told := &holding{Engine: vectors}
	e := &Env{Engine: told}
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
			y[i] += 1e-12 // is rounded away
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
	if told.bytes != 2*8*n {
		t.Errorf("the engine was told of %d bytes, want %d", told.bytes, 2*8*n)
	}
	again := testing.AllocsPerRun(3, func() {
		e.Recycle()
		if _, err := e.Doubles(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	})
	if again > 1 {
		t.Errorf("a row that was held takes %v allocations", again)
	}
	e.Recycle()
	if x, err := e.Doubles(t.Context(), ram.New(1, 5)); err != nil || len(x) != 5 {
		t.Errorf("a row of 5 has %d elements, %v", len(x), err)
	}
}
