package tui

import (
	"fmt"

	"brood/tui/cell"
	"brood/tui/textfmt"
)

// replayLine draws the state, speed and position of a recording.
func (m *model) replayLine(g *cell.Grid, y int) {
	on, speed := m.Replay.Playing()
	e := m.Replay.Extent()
	state := "▶ playing"
	switch {
	case m.Feed.Ended:
		state = "■ at the end"
	case !on:
		state = "‖ paused"
	}
	x := g.Text(1, y, 14, cell.Strong, textfmt.PadRight(state, 13))
	x = g.Text(x, y, 8, cell.Plain, textfmt.PadRight(fmt.Sprintf("%gx", speed), 8))
	right := fmt.Sprintf("%s / %s", textfmt.Duration(m.Live.Elapsed()),
		textfmt.Duration(e.Elapsed)) // training time, as in the status line
	if !e.Whole {
		right += " …"
	}
	right = textfmt.PadLeft(right, 22)
	if cut, ok := m.Replay.Cut(); ok && g.W-x > 55 {
		x = g.Text(x, y, 30, cell.Staged, "pause of "+textfmt.Duration(cut)+" shortened") + 2
	}
	w := g.W - 2 - x - len([]rune(right))
	at := 0
	if e.Records > 0 {
		at = int(float64(w-1) * float64(min(m.Live.Position, e.Records)) / float64(e.Records))
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
