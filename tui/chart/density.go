package chart

import "brood/tui/cell"

// density draws many curves as shades: a cell is the darker the more of them pass through it, and full where half of
// those of its column do. Curves are means of their columns. What lies outside of the axis is in the row at its end.
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
				g.Set(p.X+x, p.Y+y, Shade(float64(k), float64(n)/2), cell.Band)
			}
		}
	}
}
