package tui

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"brood/runtime/archive"
	"brood/runtime/event"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// title returns the title of the run: its name, else what it trains.
func (m *model) title() string {
	switch {
	case m.Opt.Source == nil:
		return "runs"
	case m.Opt.Title != "":
		return m.Opt.Title
	case m.Opt.Session != "":
		return archive.ShortName(filepath.Base(m.Opt.Session))
	}
	return cmp.Or(m.trains(), "waiting for a run")
}

// trains returns the algorithm, the model and the data of the run; "" before they are known.
func (m *model) trains() string {
	c := m.Live.Config
	if c == nil {
		return ""
	}
	var parts []string
	for _, s := range []string{m.Live.Algorithm(), c.ModelName(), c.Data, c.Augment} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, " · ")
}

// segment is a part of the status line. If space is short, those of the lowest weight go first. The state, the round,
// the remaining time, the test error and the elapsed time have the highest weights.
type segment struct {
	text   string
	width  int // least width in cells
	weight int
	role   cell.Role
}

// narrowStatus is the width below which the status line abbreviates.
const narrowStatus = 110

func (m *model) statusLine(g *cell.Grid) {
	if m.Opt.Source == nil {
		x := g.Text(1, 0, g.W-2, cell.Strong, "brood")
		g.Text(x+2, 0, g.W-x-4, cell.Faint,
			"no run is open: enter attaches to a running one and replays any other; N starts one")
		return
	}
	v := m.Shown
	glyph, word, role := m.phase()
	r, e := textfmt.Grouped(v.Progress.Rounds), fmt.Sprintf("%.1f", v.Progress.Epochs)
	if v.Limit.Rounds > 0 {
		r = textfmt.PadLeft(r, len(textfmt.Grouped(v.Limit.Rounds))) + "/" + textfmt.Grouped(v.Limit.Rounds)
	}
	if v.Limit.Epochs > 0 {
		e = textfmt.PadLeft(e, len(fmt.Sprintf("%.1f", v.Limit.Epochs))) + fmt.Sprintf("/%g", v.Limit.Epochs)
	}
	_, test := m.ScoreSeries()
	rounds, epochs := "round ", "epoch "
	if g.W < narrowStatus {
		rounds, epochs, test = "r ", "ep ", "test"
	}
	segs := []segment{
		{"brood", 5, 2, cell.Strong},
		{glyph + " " + word, 10, 10, role},
		{m.title(), 0, 5, cell.Plain},
		{rounds + r, len(rounds) + 4, 9, cell.Plain},
		{epochs + e, len(epochs) + 3, 4, cell.Plain},
		{textfmt.Duration(m.Elapsed()), 7, 6, cell.Plain},
	}
	if text := m.trains(); text != "" && text != m.title() {
		segs = slices.Insert(segs, 3, segment{text, 0, 2, cell.Faint})
	}
	if text := m.RoundProgress(); text != "" {
		width := cell.Width("100 % of round " + textfmt.Grouped(v.Progress.Rounds+1)) // does not change within the round
		segs = append(segs, segment{text, width, 7, cell.Plain})
	}
	if left, ok := m.RemainingTime(); ok && m.Running() && m.Replay == nil {
		segs = append(segs, segment{textfmt.Duration(left) + " left", 12, 8, cell.Plain})
	}
	if v.Evaluation != nil {
		segs = append(segs, segment{test + " " + m.LastScoreText(), len(test) + 8, 7, cell.Plain})
	}
	if v.Rates.Weight > 0 && m.Running() {
		x, unit := v.Rates.Samples, " samples/s"
		if !m.HasTestSet() {
			x, unit = v.Rates.Rounds, " rounds/s"
		}
		segs = append(segs, segment{textfmt.PadLeft(textfmt.Rate(x), 5) + unit, 15, 1, cell.Faint})
	}
	tail, special := m.statusTail()
	room := g.W - 2
	if tail != "" {
		segs = append(segs, segment{tail, 0, 3, cell.Faint})
		if special {
			segs[len(segs)-1].weight = 11
		} else if g.W < narrowStatus {
			segs[len(segs)-1].weight = 5 // the writer has a higher weight than the epoch
		}
	}
	segs = fit(segs, room)
	if n := len(segs); tail != "" && segs[n-1].text == tail {
		segs, room = segs[:n-1], room-cell.Width(tail)-2
	} else {
		tail = ""
	}
	x := 1
	for _, s := range segs {
		g.Text(x, 0, room-x+1, s.role, s.text)
		x += max(s.width, cell.Width(s.text)) + 2
	}
	role = cell.Faint
	if special && m.Replay == nil {
		role = cell.Warn
	}
	g.Right(g.W-1, 0, g.W-2, role, tail)
}

// fit returns the segments that fit in n cells together, in their order: it takes them by descending weight, always
// the first, and skips those that do not fit.
func fit(segs []segment, n int) (out []segment) {
	keep, order, left := make([]bool, len(segs)), make([]int, len(segs)), n+2
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return segs[b].weight - segs[a].weight })
	for at, i := range order {
		if need := max(segs[i].width, cell.Width(segs[i].text)) + 2; at == 0 || need <= left {
			keep[i], left = true, left-need
		}
	}
	for i, s := range segs {
		if keep[i] {
			out = append(out, s)
		}
	}
	return out
}

// statusTail returns the right end of the status line: the viewers, or a special state of this view.
func (m *model) statusTail() (text string, special bool) {
	switch {
	case m.Feed.Err != nil:
		return "broken", true
	case m.Killed():
		return "", false
	case m.Feed.Lost != nil:
		return "disconnected", true
	case m.Frozen():
		return "frozen", true
	case m.Replay != nil:
		if p := m.Replay.Extent().Phase; p.Over() && !m.Shown.Over() {
			_, word, _ := panel.PhaseStyle(p)
			return "recording, " + word, false
		}
		return "recording", false
	case m.Gone(): // no client can send commands
		return "", false
	}
	if w, ok := m.Opt.Source.(panel.Watchers); ok {
		n, l := w.Watchers()
		role, asked := m.writerText(l)
		if l.Holder != "" && m.W < narrowStatus {
			return role, asked
		}
		return fmt.Sprintf("%s, %s", textfmt.Count(n, "viewer"), role), asked
	}
	return "", false
}

// screenLine draws the names of the screens; if space is short, abbreviated, or with digits alone for those that are
// not shown.
func (m *model) screenLine(g *cell.Grid) {
	all := m.screens()
	names, shorts, badges := make([]string, len(all)), make([]string, len(all)), make([]string, len(all))
	wide, tight := 0, 0
	for i, s := range all {
		if s.Badge != nil {
			badges[i] = s.Badge(m.Host)
		}
		names[i], shorts[i] = s.Name+badges[i], cmp.Or(s.Short, s.Name)+badges[i]
		wide += cell.Width(names[i]) + 4 // mark, digit and blanks
		tight += cell.Width(shorts[i]) + 3
	}
	room := g.W - 8
	gap, end := 0, " "
	switch {
	case wide+len(all) <= room:
		gap = 1
	case wide <= room:
	case tight <= room:
		names, end = shorts, "" // the mark of the next screen separates them
	}
	digits := min(wide, tight) > room
	x := 1
	for i, s := range all {
		mark, name, role := ' ', " "+names[i], cell.Faint
		switch {
		case i == m.screen:
			mark, role = '▸', cell.Chosen
		case badges[i] != "":
			role = cell.Alert
		}
		if digits && i != m.screen {
			name = badges[i]
		}
		text := fmt.Sprintf("%c%d%s%s", mark, s.Digit, name, end)
		from := x
		x = g.Text(x, 1, g.W-x-8, role, text)
		m.tabs = append(m.tabs, cell.Rect{X: from, Y: 1, W: x - from, H: 1})
		x += gap
	}
	n := m.AlertCount()
	for _, text := range []string{textfmt.Count(n, "alert") + ", x acknowledges",
		"x acknowledges"} { // a badge shows their number
		if n > 0 && x+cell.Width(text) < g.W-8 {
			g.Text(x+1, 1, g.W-x-10, cell.Alert, text)
			break
		}
	}
	g.Right(g.W-1, 1, 6, cell.Faint, "? help")
}

// keyLine draws the open prompt, the message, or the hints.
func (m *model) keyLine(g *cell.Grid, y int) {
	switch {
	case m.prompt != nil:
		m.drawPrompt(g, y)
		return
	case m.Toast.Text != "": // a message may be longer than a line, with the advice at its end
		lines := textfmt.Wrap(m.Toast.Text, g.W-2)
		if most := max(3, g.H/4); len(lines) > most {
			lines = append(lines[:most-1], strings.Join(lines[most-1:], " ")) // Text ends it with an ellipsis
		}
		top := y + 1 - len(lines)
		g.Clear(cell.Rect{Y: top, W: g.W, H: len(lines)})
		for i, line := range lines {
			g.Text(1, top+i, g.W-2, m.Toast.Role, line)
		}
		return
	case m.branching != nil:
		m.branchLine(g, y)
		return
	}
	right := "q detach, training continues"
	if m.Opt.Source == nil || m.Gone() || m.StateUnknown() || m.Replay != nil {
		right = "q leave"
	}
	if m.Feed.Lost != nil {
		_, _, role := m.phase()
		g.Text(1, y, g.W-3-cell.Width(right), role, m.lostLine())
		g.Right(g.W-1, y, g.W-2, cell.Faint, right)
		return
	}
	if text := m.endedText(g.W - 4 - cell.Width(right)); text != "" {
		g.Text(1, y, g.W-4-cell.Width(right), cell.Plain, text)
	} else {
		panel.DrawHints(g, 1, y, g.W-2-cell.Width(right), m.hints())
	}
	g.Right(g.W-1, y, g.W-2, cell.Faint, right)
}

// endedText returns what can be done with a run that has ended: the longest text that fits in width cells, else the
// shortest; "" if the run has not ended, or another view or prompt has the focus.
func (m *model) endedText(width int) string {
	if m.panel(m.Focus).Hints != nil || m.Replay != nil || !m.Live.Over() || m.Filters.Typing != nil ||
		m.openInput() != nil {
		return ""
	}
	lines := []string{"the run has ended: brood export, brood fork, brood compare, brood run --resume",
		"the run has ended: brood export, fork, compare"}
	if home := m.HomeScreen(); home >= 0 {
		if m.screen == home {
			return ""
		}
		lines = []string{
			"the run has ended: esc lists it; there w writes the model, r resumes it with more rounds, space compares, " +
				"enter and B fork it",
			"ended. esc: w model, r more rounds, space compare",
		}
	}
	for _, l := range lines {
		if cell.Width(l) <= width {
			return l
		}
	}
	return lines[len(lines)-1]
}

// hints returns the keys that matter in the current state.
func (m *model) hints() [][2]string {
	if m.Filters.Typing != nil {
		return m.filterHints()
	}
	if t := m.openInput(); t != nil {
		return t.Hints
	}
	travels := m.showsTimeline() && m.movesInTime()
	switch own := m.panel(m.Focus).Hints; {
	case own != nil && travels:
		return slices.Concat(own(m.Host), m.timeHints())
	case own != nil:
		return own(m.Host)
	case travels:
		return m.HintsAfter(append(m.timeHints(), [2]string{"k", "knobs" + m.stagedHint()}))
	}
	pause := "pause"
	if m.Live.State.Phase == event.Paused {
		pause = "resume"
	}
	out := [][2]string{{"space", pause}, {"k", "knobs" + m.stagedHint()}}
	if m.Brancher() != nil && m.Opt.Session != "" {
		out = append(out, [2]string{"B", "branch"})
	}
	if m.W < panel.PanelsW {
		out = [][2]string{{"tab", "next panel"}, out[0], out[1]}
	}
	return m.HintsAfter(out)
}

// timeHints returns the keys that matter while the user moves in time.
func (m *model) timeHints() [][2]string {
	first := [2]string{"end", "follow"}
	if m.Replay != nil {
		if first = [2]string{"space", "play"}; !m.Feed.Ended {
			if on, _ := m.Replay.Playing(); on {
				first[1] = "pause"
			}
		}
	}
	out := [][2]string{first, {"←→", "1 %"}, {"{ }", "mark"}, {", .", "commit"}}
	if m.Replay == nil {
		out[3][1] = "round"
	}
	if m.Brancher() != nil && m.Opt.Session != "" {
		out = append(out, [2]string{"B", "branch"})
	}
	return out
}

func (m *model) stagedHint() string {
	if n := len(m.rail.Staged); n > 0 {
		return fmt.Sprintf(" (%d staged)", n)
	}
	return ""
}

// phase returns the state of the run as a glyph, a word and a role.
func (m *model) phase() (glyph, word string, role cell.Role) {
	switch {
	case m.Vanished():
		return "✗", "gone", cell.Alert
	case m.Killed():
		return "✗", "killed", cell.Alert
	case m.Feed.Lost != nil:
		return "?", "no answer", cell.Warn
	case m.CutOff():
		return "✗", "cut off", cell.Warn
	case m.Replay != nil && !m.Shown.Over(): // a recording does not train
		return "▶", "replay", cell.Faint
	case m.Preparing():
		return "○", "preparing", cell.Faint
	}
	glyph, word, role = panel.PhaseStyle(m.Shown.State.Phase)
	if waited := m.Waited(); waited > 0 {
		word += " " + textfmt.Duration(waited)
	}
	return glyph, word, role
}
