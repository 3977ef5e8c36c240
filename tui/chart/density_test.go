package chart

import (
	"testing"

	"brood/runtime/view"
	"brood/tui/cell"
)

// TestDensity checks that a cell is full if half of the curves pass through it, lightest for few and empty for none;
// values outside of the axis are marked.
func TestDensity(t *testing.T) {
	const w = 4
	var rows [][]view.Bucket
	for i := range 16 {
		row := make([]view.Bucket, w)
		for x := range row {
			v := 0.0 // all at the bottom
			switch {
			case x == 1 && i == 0:
				v = 10 // one at the top
			case x == 2 && i < 8:
				v = 10 // half of them
			case x == 3 && i == 0:
				v = 99
			}
			row[x] = Of([]float64{v})[0]
		}
		rows = append(rows, row)
	}
	rows[15][0] = view.Bucket{} // measured nothing there
	g := cell.New(gutter+w, 4)
	Draw(g, cell.Rect{W: gutter + w, H: 4}, Chart{Density: rows, To: w, Axis: Axis{Lo: 0, Hi: 10}})
	for x, want := range []string{"  █", "░ █", "█ █", "▲ █"} {
		got := ""
		for y := range 3 {
			got += string(g.At(gutter+x, y).R)
		}
		if got != want {
			t.Errorf("column %d is %q, want %q", x, got, want)
		}
	}
}
