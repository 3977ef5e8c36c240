package live

import (
	"fmt"

	"brood/models/engine"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// NewReplicas returns the panel with a sparkline for each member.
func NewReplicas() panel.Panel {
	return panel.Panel{ID: panel.Replicas, Title: replicasTitle, Draw: DrawReplicas, Export: replicaRows}
}

// NewPopulation returns the heat map of the members over the rounds.
func NewPopulation() panel.Panel {
	return panel.Panel{ID: panel.Population, Title: heatTitle, Draw: DrawHeat, Export: populationRows, Plot: plotHeat}
}

// plotHeat returns the area of the map without its labels.
func plotHeat(m *panel.Host, r cell.Rect, _, _ int) cell.Rect {
	at := labelWidth(m)
	return cell.Rect{X: r.X + at, Y: r.Y, W: r.W - at - 1, H: r.H - 1}
}

func replicasTitle(m *panel.Host) (string, string) {
	if m.Shown.Plan == nil {
		return "members", ""
	}
	return textfmt.Count(len(m.Shown.Members().Members), "member"), "by id · [ ] focus, b best"
}

// Heights of a member's curve in lines: enough to do with fewer columns, and the largest.
const (
	enoughCurveH = 6
	maxCurveH    = 16
)

// DrawReplicas draws a cell for each member, in columns: id, worker, curve, value. If not all fit, it shows those
// around the focused one. If there is space for more lines, the curves are higher, instead of a sparkline.
func DrawReplicas(m *panel.Host, g *cell.Grid, r cell.Rect) {
	s, roster := m.TraitSeries(), m.Shown.Members()
	if s == nil {
		panel.Explain(g, r, m.WaitingText("a line for each member"))
		return
	}
	n := len(roster.Members)
	cols := max(1, min((r.W-1)/30, (n*enoughCurveH+r.H-1)/max(1, r.H)))
	h := max(1, min(r.H*cols/max(cols, n+cols-1), maxCurveH)) // lines for each member
	rows := r.H / h
	cols = min(cols, (n+rows-1)/rows)
	w := (r.W - 1) / cols
	first := 0
	if n > rows*cols {
		first = min(max(0, roster.Rank(m.Member)-rows*cols/2), n-rows*cols)
	}
	spark := max(0, w-19)
	edges, lines := m.Edges(spark), m.LineMembers(s) != nil
	axis, void := m.FitAxis(m.LogAxis, nil, s.Band(edges)), s.Unmeasured(edges)
	for i := range min(rows*cols, n-first) {
		id := roster.Members[first+i]
		x, y := r.X+1+i/rows*w, r.Y+i%rows*h
		role, line := cell.Plain, m.LineRole(s, id)
		if id == m.Member {
			role = cell.Member
			g.Set(x, y, '▸', role)
		}
		name := role
		if lines {
			name = line
		}
		g.Text(x+1, y, 4, name, fmt.Sprintf("m%d", id))
		g.Text(x+7, y, 4, cell.Faint, fmt.Sprintf("w%d", roster.Owner[first+i]))
		if f, ok := m.Shown.Find(view.Founder).Last(id); ok && id < 1000 {
			letter, role := chart.KindLetter(int(f))
			g.Set(x+5, y, letter, role)
		}
		if h == 1 {
			chart.Spark(g, x+11, y, s.Columns(id, edges), void, axis, line)
		} else {
			dots := m.Edges(2 * spark)
			layer := chart.Layer{Columns: s.Columns(id, dots), Void: s.Unmeasured(dots), Role: line,
				Style: chart.Thin}
			chart.Curve(g, cell.Rect{X: x + 11, Y: y, W: spark, H: h}, axis, m.Opt.ASCII, layer)
		}
		if v, ok := m.ShownValue(s, id); ok {
			if v != v {
				role = cell.Alert
			} else if !m.Fresh(s) {
				role = cell.Faint
			}
			g.Right(x+w-1, y, 6, role, textfmt.Number(v))
		}
	}
}

func heatTitle(m *panel.Host) (string, string) {
	what := m.MainSeries()
	if s := m.TraitSeries(); s != nil {
		what = s.Name
	}
	return "population  " + m.SeriesName(what), "░ lower ▒ similar ▓█ higher"
}

// isOneModel reports whether the members are candidates or parts of a batch, as far as the view shows it: a probe found
// no separate models. Such members have no state between rounds, so a map over the rounds would show no more than the
// distribution.
func isOneModel(m *panel.Host) bool {
	return m.Shown.Find(view.CentreLoss) != nil && m.Shown.Find(view.Spread) == nil
}

// DrawHeat draws a map of members (down) by rounds (across) over the full height. With more members than rows, each
// row is the mean of a block of members of equal size. The lower half shows the pairings of an algorithm that pairs
// members, or the lineages of one that breeds.
func DrawHeat(m *panel.Host, g *cell.Grid, r cell.Rect) {
	s, roster := m.TraitSeries(), m.Shown.Members()
	if s == nil || len(roster.Members) < 2 || r.W < 20 || r.H < 3 {
		panel.Explain(g, r, m.WaitingText("the population"))
		return
	}
	upper, lower := r, cell.Rect{}
	line := m.Shown.Find(view.Founder)
	if r.H >= 8 && (line != nil || m.Shown.Meetings != nil) {
		upper, lower = r.Top(r.H / 2)
	}
	switch {
	case lower.H == 0:
	case m.Shown.Meetings != nil:
		drawMeetings(m, g, lower)
	default:
		drawLineage(m, g, lower, line)
	}
	at := labelWidth(m)
	w := upper.W - at - 1
	edges := m.Edges(w)
	void := s.Unmeasured(edges)
	rows := memberRows(m, g, upper, func(ids []engine.Member) []view.Bucket {
		return chart.FillGaps(meanOf(s, ids,
			edges), void)
	})
	if x, even := chart.AllEqual(rows); even {
		panel.Explain(g, cell.Rect{
			X: upper.X + at,
			Y: upper.Y,
			W: w + 1,
			H: len(rows),
		}, fmt.Sprintf("%s is %s for all members in all of these rounds", m.SeriesName(s.Name), textfmt.Number(x)))
	} else {
		chart.DrawHeat(g, upper.X+at, upper.Y, rows)
	}
	if lower.H == 0 || m.Shown.Meetings != nil { // else the axis of the lineages below serves both
		roundAxis(m, g, upper.X, upper.Y+len(rows), upper.W)
	}
}

// drawLineage draws the founder of each member over the rounds.
func drawLineage(m *panel.Host, g *cell.Grid, r cell.Rect, line *view.Series) {
	left := map[int]bool{}
	for _, v := range line.Latest(m.Shown.Members()) {
		left[int(v.X)] = true
	}
	title := "lineage  " + textfmt.Count(len(left), "founder") + " left" // the initial number is unknown after a resize
	g.Text(r.X+1, r.Y, r.W-2, cell.Faint, title)
	_, body := r.Top(1)
	at := labelWidth(m)
	edges := m.Edges(r.W - at - 1)
	rows := memberRows(m, g, body, func(ids []engine.Member) []view.Bucket { return line.Columns(ids[0], edges) })
	chart.DrawKinds(g, r.X+at, body.Y, rows)
	roundAxis(m, g, r.X, body.Y+len(rows), r.W)
}

// memberRows returns the columns of each row of a map and draws the labels. A member has several rows, or several
// members share one, depending on the height. The last line of r stays free.
func memberRows(m *panel.Host, g *cell.Grid, r cell.Rect,
	of func(ids []engine.Member) []view.Bucket) (rows [][]view.Bucket) {
	members := m.Shown.Members().Members
	n, h := len(members), r.H-1
	each, tall := (n+h-1)/h, max(1, h/n)
	for from := 0; from < n; from += each {
		to, y := min(n, from+each), len(rows)
		rows = append(rows, of(members[from:to]))
		for range tall - 1 {
			rows = append(rows, rows[y])
		}
		role := cell.Faint
		if members[from] <= m.Member && m.Member <= members[to-1] {
			role = cell.Member
		}
		g.Text(r.X+1, r.Y+y, labelWidth(m)-1, role, panel.MemberRange(members[from:to]))
	}
	return rows
}

// labelWidth returns the width of the labels of members, or of blocks of members.
func labelWidth(m *panel.Host) int {
	if ids := m.Shown.Members().Members; len(ids) >= 100 {
		return cell.Width(panel.MemberRange(ids[len(ids)-2:])) + 2
	}
	return 8
}

// roundAxis labels both ends of the axis in a line of w cells.
func roundAxis(m *panel.Host, g *cell.Grid, x, y, w int) {
	lo, hi := m.Rounds()
	first, last := m.AxisPositionText(lo), m.AxisPositionText(max(hi, 1)-1)
	from := x + labelWidth(m)
	at := m.DrawCursorMark(g, from, y, w-labelWidth(m)-1)
	if at < 0 || at > from+len(first) {
		g.Text(from, y, 20, cell.Faint, first)
	}
	if at < x+w-2-len(last) {
		g.Right(x+w-1, y, 20, cell.Faint, last)
	}
}

// meanOf sums the columns of several members.
func meanOf(s *view.Series, ids []engine.Member, edges []uint64) []view.Bucket {
	row := s.Columns(ids[0], edges)
	for _, id := range ids[1:] {
		for i, b := range s.Columns(id, edges) {
			if row[i].Empty() {
				row[i] = b
			} else if !b.Empty() {
				row[i] = view.Bucket{Min: min(row[i].Min, b.Min), Max: max(row[i].Max, b.Max), Sum: row[i].Sum + b.Sum,
					Count: row[i].Count + b.Count}
			}
		}
	}
	return row
}

func replicaRows(m *panel.Host) func(*view.View) panel.Rows {
	name := m.MainSeries()
	if s := m.TraitSeries(); s != nil {
		name = s.Name
	}
	return func(v *view.View) panel.Rows { return panel.SeriesRows(v, name) }
}

func populationRows(m *panel.Host) func(*view.View) panel.Rows {
	replicas := replicaRows(m)
	return func(v *view.View) panel.Rows { return append(replicas(v), meetingRows(v)...) }
}

// PlacePopulation lays out the Population screen. For candidates of one model the distribution replaces the map.
func PlacePopulation(m *panel.Host, b cell.Rect) []panel.Placement {
	if isOneModel(m) {
		main, ranks := b.Left(b.W - max(34, b.W/4))
		return []panel.Placement{{Panel: panel.Distribution, Area: main}, {Panel: panel.Ranking, Area: ranks}}
	}
	if b.W < panel.FullW {
		top, low := b.Top((b.H*11 + 9) / 20)
		heat, ranks := low.Left(low.W - 34)
		return []panel.Placement{{Panel: panel.Distribution, Area: top}, {Panel: panel.Population, Area: heat},
			{Panel: panel.Ranking, Area: ranks}}
	}
	main, ranks := b.Left(b.W - max(panel.RailW, b.W/4))
	top, low := main.Top((main.H + 1) / 2)
	placed := []panel.Placement{{Panel: panel.Distribution, Area: top}, {Panel: panel.Population, Area: low}}
	const curve = 12 // least lines of the curves of members below their ranking
	if n := len(m.Shown.Members().Members) + 4; b.H-n >= max(curve, n) {
		var each cell.Rect
		ranks, each = ranks.Top(n)
		return append(placed, panel.Placement{Panel: panel.Ranking, Area: ranks},
			panel.Placement{Panel: panel.Replicas, Area: each})
	}
	return append(placed, panel.Placement{Panel: panel.Ranking, Area: ranks})
}
