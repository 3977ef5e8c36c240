package chart

import "brood/tui/cell"

// density draws many curves as shades: a cell is darker if more curves pass through it, and full if at least half of
// those of its column do. Values outside of the axis are in its first or last row.
func (c Chart) density(g *cell.Grid, p cell.Rect) {
	if len(c.Density) == 0 {
		return
	}
	held, scale := make([]int, p.H), c.Axis.scale(4*p.H)
	for x := range p.W {
		clear(held)
		n := 0
		for _, row := range c.Density {
			if x < len(row) && !row[x].Empty() {
				held[scale.dot(row[x].Mean())/4]++
				n++
			}
		}
		for y, k := range held {
			if k > 0 {
				share := min(2*float64(k)/float64(n), 1)
				g.Set(p.X+x, p.Y+y, Shade(share, 1), cell.Gradient(share))
			}
		}
	}
}
