package live

import (
	"fmt"
	"math"
	"strconv"

	"brood/models/engine"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// Widths in cells: of the names left of the matrix, and of a column of the scale right of it.
const (
	meetNames = 8
	meetScale = 23
)

// meetingGrid is the layout of the matrix.
type meetingGrid struct {
	At   cell.Rect // of the matrix
	each int       // members per row and per column
	Size int       // height of a row in lines; a column is 2*size cells wide
}

// FitMeetings returns the largest layout of the matrix of n members in r: first as few members per row as possible,
// then rows as high as possible.
func FitMeetings(r cell.Rect, n int) meetingGrid {
	room := max(1, min(r.H, (r.W-meetNames-meetScale)/2))
	each := (n + room - 1) / room
	k := (n + each - 1) / each
	size := room / k
	return meetingGrid{cell.Rect{X: r.X + meetNames, Y: r.Y, W: 2 * size * k, H: size * k}, each, size}
}

// drawMeetings draws the matrix of meetings of members. Darker cells met more often.
func drawMeetings(m *panel.Host, g *cell.Grid, r cell.Rect) {
	met, roster := m.Shown.Meetings, m.Shown.Members()
	rounds := "last round"
	if n := met.Rounds(); n != 1 {
		rounds = "last " + textfmt.Grouped(n) + " rounds"
	}
	title, body := r.Top(1)
	names, body := body.Top(1)
	f := FitMeetings(body, len(roster.Members))
	rows, even := met.Between(roster, f.each)
	if even == 0 {
		why := "no members met in the " + rounds
		if met.Rounds() == 0 {
			why = m.WaitingText("the matrix of meetings")
		}
		g.Text(title.X+1, title.Y, title.W-2, cell.Faint, "meetings")
		panel.Explain(g, body, why)
		return
	}
	least, most := math.Inf(1), 0.0
	bounds, free := meetingBounds(even, f.each), f.At.W
	for i, row := range rows {
		ids := roster.Members[i*f.each:]
		ids = ids[:min(f.each, len(ids))]
		y, role := f.At.Y+i*f.Size, cell.Faint
		if at := roster.Rank(m.Member); at >= 0 && at/f.each == i {
			role = cell.Member
			g.Set(r.X, y, '▸', role)
		}
		name := panel.MemberRange(ids)
		g.Text(r.X+1, y, meetNames-1, role, name)
		for j, x := range row {
			if x == x {
				least, most = min(least, x), max(most, x)
				meetingCell(g, cell.Rect{X: f.At.X + 2*f.Size*j, Y: y, W: 2 * f.Size, H: f.Size},
					chart.ShadeBy(x, bounds))
			}
		}
		switch {
		case i == 0:
			free -= g.Text(f.At.X, names.Y, r.W-meetNames, cell.Faint, name) + 1 - f.At.X
		case i == len(rows)-1 && cell.Width(name) <= free:
			g.Right(f.At.X+f.At.W, names.Y, free, cell.Faint, name)
		}
	}
	g.Text(title.X+1, title.Y, title.W-2, cell.Faint,
		fmt.Sprintf("meetings  %s  %s–%s a pair", rounds, meetingCount(least, f.each), meetingCount(most, f.each)))
	x := f.At.X + f.At.W + 2
	DrawMeetingScale(g, cell.Rect{X: x, Y: body.Y, W: r.X + r.W - x, H: body.H}, even, f.each)
}

// meetingCell fills a cell with a shade, or with dots for a pair that never met.
func meetingCell(g *cell.Grid, r cell.Rect, shade rune) {
	for y := range r.H {
		for x := range r.W {
			switch {
			case shade != ' ':
				g.Set(r.X+x, r.Y+y, shade, chart.ShadeRole(shade))
			case x%2 == 0:
				g.Set(r.X+x, r.Y+y, '·', cell.Faint)
			}
		}
	}
}

// meetingBounds returns the bounds between shades. even is the number of meetings of each pair if all pairs met equally
// often. Values within three standard deviations of it have the same shade, so that random differences are not visible;
// the last bound is at four times as much. The standard deviation of a pair is sqrt(even), as for a Poisson
// distribution, and less for a mean over pairs. A diagonal block has the fewest pairs, which determines the bounds.
func meetingBounds(even float64, each int) [chart.Shades - 1]float64 {
	chance := 3 * math.Sqrt(even/float64(max(1, each*(each-1)/2)))
	return [...]float64{even - chance, even + chance, 4*even + chance}
}

// DrawMeetingScale draws the legend of the shades in as many columns as needed. It omits shades that no number of
// meetings has.
func DrawMeetingScale(g *cell.Grid, r cell.Rect, even float64, each int) {
	type line struct {
		shade rune
		text  string
	}
	all := []line{{'·', "never"}}
	bounds := meetingBounds(even, each)
	from := math.SmallestNonzeroFloat64
	if each == 1 { // whole numbers
		from = 1
	}
	for _, b := range bounds {
		if each == 1 {
			b = math.Ceil(b)
		}
		if b > from {
			all, from = append(all, line{chart.ShadeBy(from, bounds), "below " + meetingCount(b, each)}), b
		}
	}
	all = append(all, line{chart.ShadeBy(from, bounds), meetingCount(from, each) + " and more"},
		line{' ', "if all equal: " + average(even)})
	if each > 1 {
		all = append(all, line{' ', fmt.Sprintf("%d members a row:", each)}, line{' ', "mean of their pairs"})
	}
	for i, l := range all {
		if x := i / r.H * meetScale; x+meetScale-2 <= r.W {
			g.Set(r.X+x, r.Y+i%r.H, l.shade, cell.Faint)
			g.Text(r.X+x+2, r.Y+i%r.H, meetScale-2, cell.Faint, l.text)
		}
	}
	chart.TintShades(g, r)
}

// meetingCount formats the number of meetings of a pair, or the mean over several pairs.
func meetingCount(x float64, each int) string {
	if each > 1 {
		return average(x)
	}
	return textfmt.Grouped(uint64(x))
}

func average(x float64) string {
	if x >= 9.95 {
		return textfmt.Grouped(uint64(math.Round(x)))
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}

// meetingRows returns the recorded meetings for an export, as points of the series partner. A row has the member with
// the lower id and, as its value, the other one.
func meetingRows(v *view.View) (out panel.Rows) {
	if v.Meetings == nil {
		return nil
	}
	v.Meetings.Pairs(func(round uint64, a, b engine.Member) {
		at, with := textfmt.Uint(round), textfmt.MemberID(b)
		out = append(out, []string{view.Partner, textfmt.MemberID(a), at, at, "1", with, with, with})
	})
	return out
}
