package tui

import (
	"fmt"

	"brood/tui/cell"
)

// replayLine shows where a recording stands: state, speed, bar and ends.
func (m *model) replayLine(g *cell.Grid, y int) {
	on, speed := m.replay.Playing()
	e := m.replay.Extent()
	state := "▶ playing"
	switch {
	case m.feed.ended:
		state = "■ at the end"
	case !on:
		state = "‖ paused"
	}
	x := g.Text(1, y, 14, cell.Strong, pad(state, 13))
	x = g.Text(x, y, 8, cell.Plain, pad(fmt.Sprintf("%gx", speed), 8))
	right := fmt.Sprintf("%s / %s", span(m.live.Elapsed()), span(e.Elapsed)) // as the line at the top: of training alone
	if !e.Whole {
		right += " …"
	}
	right = lead(right, 22)
	if cut, ok := m.replay.Cut(); ok && g.W-x > 55 {
		x = g.Text(x, y, 30, cell.Staged, "pause of "+span(cut)+" was cut") + 2
	}
	w := g.W - 2 - x - len([]rune(right))
	at := 0
	if e.Records > 0 {
		at = int(float64(w-1) * float64(min(m.live.Position, e.Records)) / float64(e.Records))
	}
	for i := range w {
		switch {
		case i == at:
			g.Set(x+i, y, '●', cell.Focus)
		case i < at:
			g.Set(x+i, y, '━', cell.Focus)
		default:
			g.Set(x+i, y, '─', cell.Border)
		}
	}
	g.Right(g.W-1, y, 24, cell.Faint, right)
}
