package fleet

import (
	"math"
	"slices"

	"brood/models/engine"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// linkHistory is the state of the panel with the recorded traffic of each link.
type linkHistory struct {
	chosen engine.Member // selected link, see [view.LinkOf]; the formula follows the sum of all links
}

// predictedRow is the id of the row with the predicted traffic of all links together. The prediction does not
// distinguish links, and no link has this id.
const predictedRow = view.Whole

// NewLinkHistory returns the panel of recorded traffic per link. It works for recordings too.
func NewLinkHistory() panel.Panel {
	p := &linkHistory{}
	move := panel.Steps(p.move)
	title := func(m *panel.Host) (string, string) { return "links over rounds", m.WindowNote() }
	return panel.Panel{
		ID: panel.LinkHistory, Title: title, Draw: p.draw,
		Group: "links over the rounds",
		Keys: []panel.Binding{
			{Keys: []string{"j", "down"}, Title: "next link", Do: move(1)},
			{Keys: []string{"k", "up"}, Title: "previous link", Do: move(-1)},
			{Keys: []string{"g"}, Title: "first link", Do: move(-1 << 30)},
			{Keys: []string{"G"}, Title: "last link", Do: move(1 << 30)},
		},
		Point:  p.point,
		Plot:   p.plot,
		Export: panel.ViewExport(linkHistoryRows),
		Reset:  func() { *p = linkHistory{} },
	}
}

// rows returns the measured links, and the index of the selected one: first the sum with the formula below it, then
// those of each worker.
func (p *linkHistory) rows(m *panel.Host) (out []engine.Member, at int) {
	s := m.Shown.MachinesOf(view.Between)
	if s == nil {
		return nil, 0
	}
	out = slices.Clone(s.Members)
	if all := view.LinkOf(event.Every, event.Every); len(out) > 0 && out[0] == all && len(m.Operations()) > 0 {
		out = slices.Insert(out, 1, predictedRow)
	}
	return out, max(0, slices.Index(out, p.chosen))
}

func (p *linkHistory) move(m *panel.Host, d int) {
	if rows, at := p.rows(m); len(rows) > 0 {
		p.chosen = rows[min(max(0, at+d), len(rows)-1)]
	}
}

// linkHistoryLayout is the layout of a row.
type linkHistoryLayout struct {
	name, rate, round int // right ends of the last two columns; round: 0 if it does not fit
	spark, w          int
}

// layOutLinkHistory returns the layout of the rows in r.
func layOutLinkHistory(r cell.Rect) (c linkHistoryLayout) {
	c.name = r.X + 2
	c.rate = r.X + 21
	c.spark = c.rate + 1
	if r.W >= 50 {
		c.round = c.rate + 10
		c.spark = c.round + 1
	}
	c.spark++
	c.w = max(0, r.X+r.W-1-c.spark)
	return c
}

// linkHistoryFoot is the number of lines below the links, if they fit.
func linkHistoryFoot(r cell.Rect) int {
	if r.H < 7 {
		return 0
	}
	return 1
}

// draw renders a line for each link. Single links share one scale, the totals of workers another, and the sum with
// its formula a third.
func (p *linkHistory) draw(m *panel.Host, g *cell.Grid, r cell.Rect) {
	rows, at := p.rows(m)
	if len(rows) == 0 {
		panel.Explain(g, r, m.WaitingText("the traffic of links"))
		return
	}
	c := layOutLinkHistory(r)
	g.Text(c.name, r.Y, 8, cell.Faint, "link")
	g.Right(c.rate, r.Y, 9, cell.Faint, "bytes/s")
	if c.round > 0 {
		g.Right(c.round, r.Y, 9, cell.Faint, "a round")
	}
	m.DrawCursorMark(g, c.spark, r.Y, c.w)
	edges := m.Edges(c.w)
	cols, tops := map[engine.Member][]view.Bucket{}, map[int]float64{}
	for _, id := range rows {
		x := linkColumns(m.Shown, id, edges)
		for _, b := range x {
			if !b.Empty() {
				tops[linkScale(id)] = max(tops[linkScale(id)], b.Mean())
			}
		}
		cols[id] = x
	}
	foot := linkHistoryFoot(r)
	first, n := panel.TableWindow(r, len(rows), at, foot)
	for i, id := range rows[first : first+n] {
		y, role := r.Y+1+i, cell.Plain
		if first+i == at && m.Focus == panel.LinkHistory {
			role = cell.FocusTitle
			g.Set(r.X, y, '▸', role)
		}
		name, line := linkName(id), cell.Median
		switch linkScale(id) {
		case totalScale:
			line = cell.Centre
		case workerScale:
			line = cell.Member
		}
		if id == predictedRow {
			line = cell.Predicted
		}
		g.Text(c.name, y, 11, role, name)
		rate, around := linkNow(m, id)
		g.Right(c.rate, y, 9, role, rate)
		if c.round > 0 {
			g.Right(c.round, y, 9, role, around)
		}
		chart.Spark(g, c.spark, y, cols[id], linkVoid(m.Shown, id, edges),
			chart.Axis{Lo: 0, Hi: max(tops[linkScale(id)], 1)},
			line)
	}
	panel.DrawMore(g, r.X+1, r.Y+1, first, n, len(rows))
	if foot > 0 {
		text := "links: packets including probes · formula: payload of rounds"
		if cell.Width(text) > r.W-3 {
			text = "links: packets · formula: payload"
		}
		g.Text(r.X+2, r.Y+r.H-1, r.W-3, cell.Faint, text)
	}
}

// Rows of the same kind share a scale.
const (
	totalScale   = iota // the sum of all links, and its formula
	workerScale         // the total that one worker sends
	linkRowScale        // one link
)

func linkScale(id engine.Member) int {
	from, to := view.LinkEnds(id)
	switch {
	case id == predictedRow || from == event.Every:
		return totalScale
	case to == event.Every:
		return workerScale
	}
	return linkRowScale
}

func linkName(id engine.Member) string {
	if id == predictedRow {
		return "formula"
	}
	from, to := view.LinkEnds(id)
	return EndName(from) + " → " + EndName(to)
}

// linkNow formats the traffic of a link per second and per round, at the cursor or now; a dash if it was not measured
// then.
func linkNow(m *panel.Host, id engine.Member) (rate, around string) {
	at := m.Shown.Progress.Rounds
	if m.Cursor.On {
		at = m.Cursor.Round
	}
	rounds := roundsPerSecond(m.Shown, at, at+1)
	if span := uint64(max(0, rounds)); span > 0 && span < at { // links are measured over a second, which is span rounds
		rounds = roundsPerSecond(m.Shown, at-span, at+1)
	}
	if id == predictedRow {
		x := PredictedAt(m.Shown, at)
		return sizeOrDash(x * rounds), sizeOrDash(x)
	}
	s := m.Shown.MachinesOf(view.Between)
	x, then, ok := s.At(id, at)
	if _, newest, _ := s.At(view.Whole, at); !ok || then != newest || linksGone(m.Shown, s, at) {
		return "–", "–"
	}
	return sizeOrDash(x), sizeOrDash(x / rounds)
}

// sizeOrDash formats a number of bytes; a dash if it is unknown.
func sizeOrDash(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "–"
	}
	return textfmt.Size(x)
}

// roundsPerSecond returns the speed in the rounds [from, end), else the last known value before; NaN if unknown.
func roundsPerSecond(v *view.View, from, end uint64) float64 {
	for i := range v.Speed {
		s := &v.Speed[i]
		if s.Name != view.RoundsASecond {
			continue
		}
		if b := s.Columns(view.Whole, view.Even(from, end, 1))[0]; !b.Empty() {
			return b.Mean()
		}
		if x, _, ok := s.At(view.Whole, from); ok {
			return x
		}
	}
	return math.NaN()
}

// PredictedAt returns the predicted bytes of a round: the sent bytes minus the excess over the prediction, which every
// log records; NaN if nothing is recorded.
func PredictedAt(v *view.View, at uint64) float64 {
	sum, some := 0.0, false
	for i := range v.Traffic {
		s := &v.Traffic[i]
		x, _, ok := s.At(view.Whole, at)
		switch {
		case !ok:
		case s.Name == view.Excess:
			sum -= x
		default:
			sum, some = sum+x, true
		}
	}
	if !some {
		return math.NaN()
	}
	return sum
}

// linksGone reports whether machines, but no links, were measured between the last link measurement and a round: the
// workers of the links have left.
func linksGone(v *view.View, s *view.Series, at uint64) bool {
	_, links, _ := s.At(view.Whole, at)
	_, machines, ok := v.MachinesOf(event.Busy).At(view.Whole, at)
	_, hi := s.Rounds()
	return ok && at >= hi && machines >= hi && machines > links
}

// linkColumns returns the bytes per second of a link in columns of rounds with these edges.
func linkColumns(v *view.View, id engine.Member, edges []uint64) []view.Bucket {
	if id != predictedRow {
		return v.MachinesOf(view.Between).Columns(id, edges)
	}
	out := make([]view.Bucket, len(edges)-1)
	for i := range out {
		from, end := edges[i], edges[i+1]
		if from > v.Progress.Rounds {
			break
		}
		if x := PredictedAt(v, from+(end-from)/2) * roundsPerSecond(v, from, max(end, from+1)); !math.IsNaN(x) {
			out[i] = view.Bucket{Min: x, Max: x, Sum: x, Count: 1}
		}
	}
	return out
}

// linkVoid marks the columns in which other links were measured and this one was not, and those after the last
// measurement of all links.
func linkVoid(v *view.View, id engine.Member, edges []uint64) []bool {
	out := make([]bool, len(edges)-1)
	if id == predictedRow || edges[len(out)] <= edges[0] {
		return out
	}
	s := v.MachinesOf(view.Between)
	all, own := s.Columns(view.Whole, edges), s.Columns(id, edges)
	_, last := s.Rounds()
	for i := range out {
		at := edges[i]
		out[i] = !all[i].Empty() && own[i].Empty() || at >= last && linksGone(v, s, at)
	}
	return out
}

// point selects the link under the mouse.
func (p *linkHistory) point(m *panel.Host, r cell.Rect, x, y int) {
	rows, at := p.rows(m)
	if i, ok := panel.TableRowAt(r, y, len(rows), at, linkHistoryFoot(r)); ok {
		p.chosen = rows[i]
	}
}

// plot returns the area of the lines over rounds.
func (p *linkHistory) plot(_ *panel.Host, r cell.Rect, _, _ int) cell.Rect {
	c := layOutLinkHistory(r)
	return cell.Rect{X: c.spark, Y: r.Y, W: c.w, H: r.H}
}

// linkHistoryRows returns the points of each link for an export.
func linkHistoryRows(v *view.View) panel.Rows {
	out := panel.Rows{{"from", "to", "round", "to_round", "points", "min", "mean", "max"}}
	s := v.MachinesOf(view.Between)
	if s == nil {
		return out
	}
	named := map[string]engine.Member{}
	for _, id := range s.Members {
		named[textfmt.MemberID(id)] = id
	}
	for _, r := range panel.PointRows(s)[1:] {
		if id, ok := named[r[1]]; ok {
			from, to := view.LinkEnds(id)
			out = append(out, append([]string{EndName(from), EndName(to)}, r[2:]...))
		}
	}
	return out
}
