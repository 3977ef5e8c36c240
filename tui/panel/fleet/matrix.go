package fleet

import (
	"fmt"
	"slices"
	"strings"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

func (f *Fleet) linksTitle(m *panel.Host) (string, string) {
	k := linkMeasures()[f.measure]
	if len(f.Now.Links) == 0 || !m.CanSurvey() {
		return "links", ""
	}
	note := "t " + k.next + " · from row to column"
	if _, slow := shape(f.Now.Links); slow {
		note = "◆ slowed down · " + note
	}
	return "links  " + k.title, note
}

// Widths in screen cells. A cell of the matrix has the cursor, two of shade, five of number, and the mark of a slow
// link.
const (
	linkHead = 5
	linkCell = 9
)

// matrixView is the visible part of the matrix. The first row and column, for all workers, are always visible.
type matrixView struct {
	at         cell.Rect // area of the cells
	row, col   int       // indices in ends of the second row and column
	rows, cols int       // visible rows and columns
}

// id returns the index in ends of row or column i. first is the index of row or column 1.
func (v matrixView) id(first, i int) int {
	if i == 0 {
		return 0
	}
	return first + i - 1
}

// Cell returns the area of the cell in row i and column j.
func (v matrixView) Cell(i, j int) cell.Rect {
	return cell.Rect{X: v.at.X + j*linkCell, Y: v.at.Y + i, W: linkCell, H: 1}
}

// Matrix returns the visible part of the matrix around the cursor, in the inside r of the panel.
func (f *Fleet) Matrix(r cell.Rect) (v matrixView) {
	ends := f.ends()
	from, to := f.OnLink()
	part := func(room, at int) (first, n int) {
		n = min(len(ends), max(2, room))
		return min(max(1, at-(n-1)/2), len(ends)-n+1), n
	}
	v.at = cell.Rect{X: r.X + linkHead, Y: r.Y + 1, W: r.W - linkHead, H: r.H - 2}
	v.row, v.rows = part(v.at.H, slices.Index(ends, from))
	v.col, v.cols = part((v.at.W-1)/linkCell, slices.Index(ends, to))
	return v
}

// drawLinks draws the matrix. Row workers send to column workers.
func (f *Fleet) drawLinks(m *panel.Host, g *cell.Grid, r cell.Rect) {
	if len(f.Now.Links) == 0 || !m.CanSurvey() {
		panel.Explain(g, r, f.noLinksText(m))
		return
	}
	ends, v, k := f.ends(), f.Matrix(r), linkMeasures()[f.measure]
	from, to := f.OnLink()
	top := 0.0
	for _, l := range f.Now.Links {
		top = max(top, k.of(l))
	}
	head := func(x, y int, id int, chosen bool) {
		role := cell.Faint
		if chosen {
			role = cell.FocusTitle
		}
		g.Right(x, y, 4, role, EndName(id))
	}
	for j := range v.cols {
		id := ends[v.id(v.col, j)]
		head(v.Cell(0, j).X+linkCell-1, r.Y, id, id == to)
	}
	for i := range v.rows {
		row := ends[v.id(v.row, i)]
		head(r.X+linkHead-1, v.at.Y+i, row, row == from)
		for j := range v.cols {
			col := ends[v.id(v.col, j)]
			cellOfLink(m, g, v.Cell(i, j), f.links(row, col), k, top, row == from && col == to)
		}
	}
	moreLinks(g, r, v, len(ends))
	f.linkFoot(g, cell.Rect{X: r.X + 1, Y: r.Y + r.H - 1, W: r.W - 2, H: 1})
}

// cellOfLink draws a cell. It is empty without links: for a worker with itself or with a worker of the same process.
func cellOfLink(m *panel.Host, g *cell.Grid, r cell.Rect, links []view.Link, k linkMeasure, top float64, chosen bool) {
	if len(links) == 0 {
		g.Set(r.X+7, r.Y, '·', cell.Faint)
	} else {
		x := k.of(links[0])
		for _, l := range links[1:] {
			x = k.join(x, k.of(l))
		}
		role := cell.Plain
		switch {
		case len(links) == 1:
			for i := range 2 {
				g.Set(r.X+1+i, r.Y, chart.Shade(x, top), cell.Gradient(x/max(top, 1e-300)))
			}
		case x > 0:
			role = cell.Strong
		}
		if x == 0 {
			role = cell.Faint
		}
		g.Right(r.X+8, r.Y, 5, role, k.text(x))
		if _, slow := shape(links); slow {
			g.Set(r.X+8, r.Y, '◆', cell.Warn)
		}
	}
	if !chosen {
		return
	}
	if m.Focus == panel.Links {
		g.SetRole(cell.Rect{X: r.X + 1, Y: r.Y, W: r.W - 1, H: 1}, cell.Chosen)
	}
	g.Set(r.X, r.Y, '▸', cell.FocusTitle)
}

// moreLinks draws arrows towards hidden rows and columns.
func moreLinks(g *cell.Grid, r cell.Rect, v matrixView, total int) {
	x, y := v.at.X+v.cols*linkCell, v.at.Y+v.rows-1
	if v.col > 1 {
		g.Set(r.X, r.Y, '←', cell.Faint)
	}
	if v.col+v.cols-1 < total {
		g.Set(min(x, r.X+r.W-1), r.Y, '→', cell.Faint)
	}
	if v.row > 1 {
		g.Set(r.X, v.at.Y+1, '↑', cell.Faint)
	}
	if v.row+v.rows-1 < total {
		g.Set(r.X, y, '↓', cell.Faint)
	}
}

// linkFoot draws the figures of the chosen link, row or column.
func (f *Fleet) linkFoot(g *cell.Grid, r cell.Rect) {
	from, to := f.OnLink()
	links := f.links(from, to)
	name := EndName(from) + " → " + EndName(to)
	if len(links) == 0 {
		g.Text(r.X, r.Y, r.W, cell.Faint, name+"  no link between them")
		return
	}
	fields := []string{name}
	if len(links) > 1 {
		fields = append(fields, fmt.Sprintf("%d links", len(links)))
	}
	var sent, lost float64
	rtt := links[0].RTT
	for _, l := range links {
		sent, lost, rtt = sent+l.Sent, max(lost, l.Lost), max(rtt, l.RTT)
	}
	worst := ""
	if len(links) > 1 {
		worst = "≤ "
	}
	fields = append(fields, textfmt.PadLeft(textfmt.Size(sent), 7)+"/s", worst+Latency(rtt),
		worst+textfmt.ThreeDigits(100*lost)+" % lost")
	text := fields[0]
	for _, t := range fields[1:] { // only those that fit whole
		if cell.Width(text)+2+cell.Width(t) > r.W {
			break
		}
		text += "  " + t
	}
	x := g.Text(r.X, r.Y, r.W, cell.Plain, text)
	if s, slow := shape(links); slow {
		g.Text(x+2, r.Y, r.X+r.W-x-2, cell.Warn, "◆ "+shapeText(s))
	}
}

// shapeText describes the shape of a link. A zero shape means several links with different shapes.
func shapeText(l event.Link) string {
	if !l.Slow() {
		return "some slowed"
	}
	_, how, _ := strings.Cut(l.String(), ": ")
	return how
}
