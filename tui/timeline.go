package tui

import (
	"fmt"
	"iter"

	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/replay"
	"brood/tui/textfmt"
)

// markStyles are the glyphs of the marks on the timeline, distinct also where they are folded to ASCII, by kind.
var markStyles = [...]struct {
	glyph rune
	role  cell.Role
	title string
}{
	replay.Evaluation: {'┴', cell.Faint, "evaluation"},
	replay.Checkpoint: {'◇', cell.Strong, "checkpoint, a cheap branch"},
	replay.Note:       {'"', cell.Good, "note"},
	replay.Edit:       {'▲', cell.Marks, "knob, algorithm or size"},
	replay.Alert:      {'!', cell.Alert, "alert"},
}

// timeScale maps the rounds 0 to total of a run to the cells of a line, and back.
type timeScale struct {
	at, total uint64 // the round of the user, and the last one
	w         int    // cells
}

// column returns the cell of a round.
func (t timeScale) column(round uint64) int {
	if t.total == 0 {
		return 0
	}
	return int((float64(min(round, t.total))*float64(t.w-1))/float64(t.total) + 0.5)
}

// round returns the round in the middle of a cell; for the first and the last cell the ends of the run.
func (t timeScale) round(column int) uint64 {
	return uint64(float64(t.total)*float64(min(max(column, 0), t.w-1))/float64(max(1, t.w-1)) + 0.5)
}

// kinds returns the most important kind of mark in each cell, 0 for none.
func (t timeScale) kinds(marks iter.Seq[replay.Mark]) []replay.Kind {
	out := make([]replay.Kind, t.w)
	for k := range marks {
		at := &out[t.column(k.Round)]
		*at = max(*at, k.Kind)
	}
	return out
}

// showsTimeline reports whether the frame has the timeline: in a recording, and in a live run while the cursor of the
// charts is at a past round.
func (m *model) showsTimeline() bool {
	return m.Replay != nil || m.Cursor.On && m.screens()[m.screen].Charts
}

// timeScaleOf returns the scale of the shown run over w cells.
func (m *model) timeScaleOf(w int) timeScale {
	t := timeScale{at: m.Shown.Progress.Rounds, total: m.Shown.Progress.Rounds, w: w}
	switch {
	case m.Replay != nil:
		t.total = max(t.total, m.Replay.Extent().Rounds)
	case m.Cursor.On:
		t.at = m.Cursor.Round
	}
	return t
}

// marks returns the marks of the shown run, in no order. Checkpoints are those that are stored, if this machine has the
// session; else those that were recorded. It omits evaluations if more than every second cell would show one.
func (m *model) marks() iter.Seq[replay.Mark] {
	var recorded []replay.Mark
	if m.Replay != nil {
		recorded = m.Replay.Marks()
	} else {
		recorded = append(replay.ViewMarks(m.Shown), m.evaluations()...)
	}
	scored := 0
	for _, k := range recorded {
		if k.Kind == replay.Evaluation {
			scored++
		}
	}
	dense := scored > max(1, m.timelineBar().W/2)
	t := m.timeScaleOf(1)
	onRound := func(kind replay.Kind, round uint64) replay.Mark {
		k := replay.Mark{Kind: kind, Round: round}
		if m.Replay != nil {
			k.At = m.Replay.Known(round)
		}
		return k
	}
	return func(yield func(replay.Mark) bool) {
		for _, k := range recorded {
			skip := k.Kind == replay.Evaluation && dense || k.Kind == replay.Checkpoint && m.Checkpoints != nil
			if !skip && !yield(k) {
				return
			}
		}
		for _, round := range m.Checkpoints {
			if round <= t.total && !yield(onRound(replay.Checkpoint, round)) {
				return
			}
		}
		for _, n := range m.Notes {
			if n.Round <= t.total && !yield(onRound(replay.Note, n.Round)) {
				return
			}
		}
	}
}

// evaluations returns the evaluations of the shown view, at most one in each cell of the widest timeline.
func (m *model) evaluations() (out []replay.Mark) {
	id, _ := m.ScoreSeries()
	s := m.Shown.Find(id)
	if s == nil {
		return nil
	}
	edges := view.Even(0, m.Shown.Progress.Rounds+1, panel.MaxWidth)
	for i, b := range s.Columns(view.Whole, edges) {
		if b.Empty() {
			continue
		}
		if _, round, ok := s.At(view.Whole, edges[i+1]-1); ok {
			out = append(out, replay.Mark{Kind: replay.Evaluation, Round: round})
		}
	}
	return out
}

// Texts around the line have a constant width, so that it does not move.
const (
	playStateW = len("x playing 0.0156x")
	historyW   = len("x history")
	timesW     = 100 // width of the screen from which it shows times too
)

// timelineText returns the round and its share of the run, and in a wide recording the training times.
func (m *model) timelineText(t timeScale) string {
	text := textfmt.Grouped(t.at) + " of " + textfmt.Grouped(t.total)
	if m.Replay != nil && !m.Replay.Extent().Whole {
		text += " …"
	} else if t.total > 0 {
		text += fmt.Sprintf(" (%d %%)", 100*t.at/t.total)
	}
	text = textfmt.PadLeft(text, 2*len(textfmt.Grouped(t.total))+len(" of  (100 %)"))
	if m.Replay != nil && m.W >= timesW {
		text += " · " + textfmt.PadLeft(textfmt.Duration(m.Live.Elapsed())+" / "+
			textfmt.Duration(m.Replay.Extent().Elapsed), 17)
	}
	return text
}

// timelineBar returns the cells of the timeline between its ends, in the row above the keys.
func (m *model) timelineBar() cell.Rect {
	left := historyW
	if m.Replay != nil {
		left = playStateW
	}
	x := 1 + left + 2
	right := cell.Width(m.timelineText(m.timeScaleOf(1))) + len(" ! ")
	return cell.Rect{X: x, Y: m.H - 2, W: max(0, m.W-2-right-x), H: 1}
}

// drawTimeline draws the state of a recording or of the live history, the line with the marks and the position, and the
// position as text after the glyph of the mark there.
func (m *model) drawTimeline(g *cell.Grid) {
	bar := m.timelineBar()
	x := m.drawTravel(g, bar.Y)
	if x > bar.X-2 { // of the note about a shortened pause
		bar = cell.Rect{X: x + 1, Y: bar.Y, W: bar.W - (x + 1 - bar.X), H: 1}
	}
	t := m.timeScaleOf(bar.W)
	text := m.timelineText(t)
	g.Right(g.W-1, bar.Y, g.W-2, cell.Faint, text)
	if bar.W < 2 {
		return
	}
	m.timelineAt = bar
	g.Set(bar.X-1, bar.Y, '├', cell.Border)
	g.Set(bar.X+bar.W, bar.Y, '┤', cell.Border)
	here := t.column(t.at)
	for i, kind := range t.kinds(m.marks()) {
		r, role := '─', cell.Border
		if i < here {
			r, role = '━', cell.Focus
		}
		if kind > 0 {
			r, role = markStyles[kind].glyph, markStyles[kind].role
		}
		if i == here {
			if kind > 0 {
				g.Set(bar.X+bar.W+2, bar.Y, r, role)
			}
			r, role = '●', cell.Focus
		}
		g.Set(bar.X+i, bar.Y, r, role)
	}
}

// drawTravel draws the left end of the row and returns the column after it.
func (m *model) drawTravel(g *cell.Grid, y int) int {
	if m.Replay == nil {
		g.Text(1, y, historyW, cell.Strong, "◂ history")
		return 1 + historyW
	}
	on, speed := m.Replay.Playing()
	state := "▶ playing"
	switch {
	case m.Feed.Ended:
		state = "■ at end"
	case !on:
		state = "‖ paused"
	}
	x := g.Text(1, y, playStateW, cell.Strong, textfmt.PadRight(state, len("x playing ")))
	g.Text(x, y, playStateW, cell.Plain, fmt.Sprintf("%.3gx", speed))
	x = 1 + playStateW
	if cut, ok := m.Replay.Cut(); ok && g.W-x > 55 {
		x = g.Text(x+1, y, 30, cell.Staged, "pause of "+textfmt.Duration(cut)+" shortened") + 1
	}
	return x
}
