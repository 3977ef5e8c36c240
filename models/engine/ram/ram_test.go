package ram

import (
	"strings"
	"testing"

	"brood/models/engine"
)

// alien is memory of another engine.
type alien struct{}

func (alien) Len() int { return 4 }

// TestForeignMemory: freed memory and memory of other engines give an error and are not accessed.
func TestForeignMemory(t *testing.T) {
	var m Memory
	own, err := m.Alloc(2, 2)
	if err != nil {
		t.Fatal(err)
	}
	view := own.Sub(1, 1)
	m.Free(own)
	m.Free(own) // a second Free is harmless
	foreign := engine.Over(alien{}, 0, 2, 2)
	m.Free(foreign)
	for name, x := range map[string]engine.Mat{"freed": own, "a view of it": view, "another's": foreign,
		"none": {Rows: 1, Cols: 2}} {
		p := make([]byte, x.Bytes())
		if err := m.Write(t.Context(), engine.All(x), p); err == nil || !strings.Contains(err.Error(), "has no memory here") {
			t.Errorf("%s: written: %v", name, err)
		}
		if err := m.Read(t.Context(), p, engine.All(x)); err == nil || !strings.Contains(err.Error(), "has no memory here") {
			t.Errorf("%s: read: %v", name, err)
		}
		if View(x).F != nil {
			t.Errorf("%s: it can be seen", name)
		}
	}
}

// TestSizeOverflow: sizes that overflow are refused instead of ending the process.
func TestSizeOverflow(t *testing.T) {
	for _, size := range [][2]int{{1 << 40, 1 << 40}, {1 << 62, 4}, {-1, 1}, {1, -1}} {
		if _, err := (Memory{}).Alloc(size[0], size[1]); err == nil {
			t.Errorf("%d x %d was allocated", size[0], size[1])
		}
	}
}

// TestViewsShare: a matrix over host memory shares it.
func TestViewsShare(t *testing.T) {
	h := engine.NewHost(3, 2, engine.F32)
	View(Of(h).Sub(1, 2)).Row(1)[1] = 5
	if h.F[5] != 5 {
		t.Errorf("%v", h.F)
	}
}

// TestFoldedRows: a folded row becomes consecutive rows in the same memory; a number that does not divide it panics.
func TestFoldedRows(t *testing.T) {
	h := engine.NewHost(2, 6, engine.F32)
	m := Of(h).Sub(1, 1).Fold(3)
	View(m).Row(2)[1] = 5
	if m.Rows != 3 || m.Cols != 2 || h.F[11] != 5 {
		t.Errorf("%dx%d over %v", m.Rows, m.Cols, h.F)
	}
	for _, n := range []int{0, -1, 4} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("six elements were folded into %d rows", n)
				}
			}()
			Of(h).Sub(1, 1).Fold(n)
		}()
	}
}
