package runs

import (
	"fmt"
	"strings"

	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// foot draws the details of the chosen line, the line that starts the run with its estimate, and the command line.
func (l *Launch) foot(m *panel.Host, g *cell.Grid, in cell.Rect, c launchColumns) {
	if in.H < launchFoot {
		return
	}
	for x := in.X; x < in.X+in.W; x++ {
		g.Set(x, in.Y, '─', cell.Border)
	}
	command := textfmt.Wrap(l.command, in.W-c.name-1)
	about := max(2, min(4, in.H-6-len(command)))
	l.about(m, g, cell.Rect{X: in.X + c.name, Y: in.Y + 1, W: in.W - c.name - 1, H: about})
	y := in.Y + 1 + about
	if in.H > launchFoot+2 { // leave a blank line
		y++
	}
	role := cell.Key
	if l.Chosen() == startLine {
		role = cell.FocusTitle
		g.Set(in.X, y, '▸', role)
	}
	l.Rows = append(l.Rows, launchRow{cell.Rect{X: in.X, Y: y, W: in.W, H: 1}, startLine})
	g.Text(in.X+c.name, y, c.value-c.name-1, role, startLine.Name)
	needs, of := l.needs()
	for i, text := range textfmt.Wrap(needs, in.W-c.value-1) {
		if i > 0 && in.H <= launchFoot+2 {
			break
		}
		if i > 0 {
			y++
		} else if in.H <= launchFoot+2 {
			text = needs // one line, cut with a mark
		}
		g.Text(in.X+c.value, y, in.W-c.value-1, of, text)
	}
	if y++; in.H > launchFoot+2 {
		y++
	}
	last := in.Y + in.H - 1
	for i, text := range command {
		if y == last && i < len(command)-1 {
			text += " …"
		}
		if y <= last {
			g.Text(in.X+c.name, y, in.W-c.name-1, cell.Plain, text)
		}
		y++
	}
}

// needs returns the estimate as text, faint while a new one is computed.
func (l *Launch) needs() (string, cell.Role) {
	at, err := l.refusal()
	switch {
	case l.Starting:
		return "starting", cell.Staged
	case err != nil && at.Name == "":
		return err.Error(), cell.Alert
	case err != nil:
		return "invalid: see " + at.Name, cell.Alert
	case l.estimated < 0 || l.estimate.Err != nil:
		return "estimating", cell.Faint
	}
	e := l.estimate
	text := textfmt.Size(e.Memory) + " of memory"
	if e.Device > 0 {
		text += ", " + textfmt.Size(e.Device) + " on the device"
	}
	if e.Took > 0 {
		text += ", last run " + textfmt.Estimate(e.Took)
	}
	if e.Parameters > 0 {
		text += fmt.Sprintf("; %s of %s parameters", textfmt.Count(e.Members, "member"),
			textfmt.Grouped(e.Parameters))
	} else {
		text += "; " + textfmt.Count(e.Members, "member")
	}
	if !l.Fresh() {
		return "previous: " + text, cell.Faint
	}
	return text, cell.Good
}

// about draws the doc or the error of the chosen line; while a choice is typed, the offers.
func (l *Launch) about(m *panel.Host, g *cell.Grid, in cell.Rect) {
	of, role := l.Chosen(), cell.Faint
	text := l.formLine(of).Doc
	at, err := l.refusal()
	switch {
	case l.typing != nil && len(l.offers()) > 0:
		l.drawOffers(g, in)
		return
	case err != nil && (at == of || at.Name == "" || of == startLine):
		text, role = err.Error(), cell.Alert
	case of == startLine:
		text = "enter trains on this machine in a new process and opens the run. The command below does the same in " +
			"a shell: y copies it."
	case of.Knob:
		k, _ := l.draft.Knobs.Algorithm.Knob(of.Name)
		text = m.KnobTitle(k) + ": " + k.Doc + "; bounds" + panel.BoundsText(k) + ", default " + k.Initial()
		if way := l.rangeText(k); way != "" {
			text += "; over the run " + way
		}
	case l.formLine(of).Paths:
		text += "; a path is valid too"
	}
	lines := textfmt.Wrap(text, in.W)
	for i, line := range lines {
		if i == in.H-1 && i < len(lines)-1 {
			line = strings.Join(lines[i:], " ") // cut with a mark
		}
		if i < in.H {
			g.Text(in.X, in.Y+i, in.W, role, line)
		}
	}
}

// drawOffers draws the offered choices around the typed one, which is highlighted.
func (l *Launch) drawOffers(g *cell.Grid, in cell.Rect) {
	text := l.typing.Text()
	var rows [][]string
	used, at := in.W, 0
	for _, w := range l.offers() {
		if n := cell.Width(w); used+n > in.W {
			rows, used = append(rows, nil), 0
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], w)
		used += cell.Width(w) + 2
		if w == text {
			at = len(rows) - 1
		}
	}
	first := min(max(0, at-in.H/2), max(0, len(rows)-in.H))
	for i := 0; i < in.H && first+i < len(rows); i++ {
		x := in.X
		for _, w := range rows[first+i] {
			role := cell.Faint
			if w == text {
				role = cell.Chosen
			}
			x = g.Text(x, in.Y+i, in.X+in.W-x, role, w) + 2
		}
	}
	if first+in.H < len(rows) {
		g.Set(in.X+in.W-1, in.Y+in.H-1, '↓', cell.Faint)
	}
}
