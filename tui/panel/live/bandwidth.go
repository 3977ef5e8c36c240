package live

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// NewBandwidth returns the panel of the bytes per round by operation.
func NewBandwidth() panel.Panel {
	return panel.Panel{ID: panel.Bandwidth, Title: bandwidthTitle, Draw: drawBandwidth,
		Export: panel.ViewExport(bandwidthRows),
		Plot:   plotBytes}
}

func bandwidthTitle(m *panel.Host) (string, string) {
	r := m.Shown.Members()
	if len(r.Members) == 0 {
		return "bandwidth", ""
	}
	note := textfmt.Count(len(r.Workers()), "worker")
	if exchangedInMemory(m) {
		note += ", in memory"
	}
	if m.Cursor.On {
		note = "round " + textfmt.Grouped(m.Cursor.Round)
	}
	return "bandwidth  per round", note
}

// exchangedInMemory reports whether all exchanges stayed in the memory of one process: bytes were exchanged without
// overhead.
func exchangedInMemory(m *panel.Host) bool {
	return m.Shown.Ledger.Overhead == 0 && m.Shown.Ledger.Total().Sent > 0
}

// oneWorkerText explains why nothing is sent.
const oneWorkerText = "nothing is sent: one worker hosts all members, which exchange data in its memory"

// Least sizes of the panel in cells: with columns for the prediction and the share, and of the chart below the table.
const (
	wideBandwidth = 54
	leastBytesH   = 6
)

// bytesArea returns the area of the chart of bytes over rounds in the panel with the inside r: what the table and the
// two lines at the foot leave free. It is empty if that is too low, and on the screen Network, which has a chart of
// each operation.
func bytesArea(m *panel.Host, r cell.Rect) cell.Rect {
	if m.HasPanel(panel.Traffic) {
		return cell.Rect{}
	}
	ops, _, _, _ := m.RecentTraffic()
	table := len(ops) + 1 // with the overhead
	if r.W >= wideBandwidth {
		table++
	}
	_, free := r.Top(table)
	if free, _ = free.Top(free.H - 2); free.H < leastBytesH {
		return cell.Rect{}
	}
	return free
}

// plotBytes returns the plot of the chart of bytes.
func plotBytes(m *panel.Host, r cell.Rect, x, y int) cell.Rect {
	return panel.TilePlot([]cell.Rect{bytesArea(m, r)}, x, y)
}

// drawBandwidth lists the bytes per round of each operation with the prediction of the algorithm's formula, and below
// them the bytes over the rounds. Only a difference is highlighted.
func drawBandwidth(m *panel.Host, g *cell.Grid, r cell.Rect) {
	l := &m.Shown.Ledger
	ops, overhead, rounds, known := m.RecentTraffic()
	switch {
	case known && rounds == 0:
		panel.Explain(g, r, m.WaitingText("traffic"))
		return
	case m.NothingSent():
		panel.Explain(g, r, oneWorkerText)
		return
	case !known:
		panel.Explain(g, r, outsideLedger(m, l))
		return
	}
	chartArea := bytesArea(m, r)
	wide := r.W >= wideBandwidth
	rows := r.H - 2
	if wide {
		g.Text(r.X+2, r.Y, 12, cell.Faint, "operation")
		g.Right(r.X+25, r.Y, 10, cell.Faint, "measured")
		g.Right(r.X+38, r.Y, 10, cell.Faint, "predicted")
		g.Text(r.X+40, r.Y, r.W-41, cell.Faint, "of total")
		r.Y, r.H = r.Y+1, r.H-1
		rows--
	}
	per := float64(rounds)
	total := float64(overhead)
	for _, b := range ops {
		total += float64(b.Sent)
	}
	edge := r.X + 25
	if !wide {
		edge = r.X + 23
	}
	line := func(i int, name string, sent, predicted int64, formula bool) {
		y := r.Y + i
		g.Text(r.X+2, y, 12, cell.Plain, name)
		g.Right(edge, y, 9, cell.Centre, textfmt.Size(float64(sent)/per))
		role, text := cell.Faint, "= predicted"
		switch {
		case !formula:
			text = "–"
		case sent != predicted:
			role, text = cell.Alert, "≠ by "+textfmt.Size(sent-predicted)
		case wide:
			text = textfmt.Size(float64(predicted) / per)
		}
		if !wide {
			g.Text(edge+2, y, r.X+r.W-edge-2, role, text)
			return
		}
		g.Right(r.X+38, y, 12, role, text)
		if total > 0 {
			chart.Bar(g, r.X+40, y, r.W-42, float64(sent)/total, cell.Centre)
		}
	}
	n := len(ops)
	if n+1 > rows {
		n = max(0, min(n, rows-1))
	}
	for i, b := range ops[:n] {
		line(i, string(b.Op), b.Sent, b.Predicted, true)
	}
	if n < len(ops) {
		g.Text(r.X+2, r.Y+n, r.W-3, cell.Faint, fmt.Sprintf("and %d more: e expands", len(ops)-n))
	} else {
		line(n, "overhead", overhead, 0, false)
	}
	if chartArea.H > 0 {
		m.DrawTile(g, chartArea, m.BytesTile(), false)
	}
	traffic(m, g, cell.Rect{X: r.X + 2, Y: r.Y + r.H - 2, W: r.W - 3, H: 2}, l, chartArea.H == 0)
}

// outsideLedger returns the message that the ledger does not cover the round at the cursor.
func outsideLedger(m *panel.Host, l *view.Ledger) string {
	why := "the traffic of round " + textfmt.Grouped(m.Cursor.Round) + " is not in this view"
	if len(l.Ring) == 0 {
		return why
	}
	first := l.Ring[0]
	return why + ", which starts at round " + textfmt.Grouped(first.To-first.Rounds+1)
}

// traffic draws the two lines at the foot: bytes of the last commits, unless a chart shows them, totals and rates.
func traffic(m *panel.Host, g *cell.Grid, r cell.Rect, l *view.Ledger, commits bool) {
	what, w := "/s exchanged", 20
	if exchangedInMemory(m) {
		what = "/s in memory"
	}
	if r.W < 40 {
		what, w = "/s", 10
	}
	if commits {
		lastCommits(g, g.Text(r.X, r.Y, r.W, cell.Faint, "commits "), r.Y, r.W-w-10, l)
	}
	if m.Running() { // the rate is 0 otherwise
		g.Right(r.X+r.W, r.Y, w, cell.Plain, textfmt.Size(m.Shown.Rates.Bytes)+what)
	}
	total := "total "
	if m.Cursor.On { // the table above is for the round at the cursor
		total = "all rounds "
	}
	a := evaluation(l)
	if total += textfmt.Size(l.Total().Sent + a); a > 0 {
		total += " (evaluation " + textfmt.Size(a) + ")"
	}
	x := g.Text(r.X, r.Y+1, r.W, cell.Faint, total)
	if l.Aborted > 0 {
		x = g.Text(x, r.Y+1, r.X+r.W-x, cell.Warn, ", aborted "+textfmt.Size(l.Aborted))
	}
	if percent := 100 * l.Waiting(); percent >= 0.5 && !exchangedInMemory(m) && !m.Cursor.On {
		if text := fmt.Sprintf("waiting %.0f %%", percent); x+2+len(text) <= r.X+r.W {
			g.Right(r.X+r.W, r.Y+1, len(text), cell.Plain, text)
		}
	}
}

// lastCommits draws the bytes per round of the last commits in at most 24 cells.
func lastCommits(g *cell.Grid, x, y, room int, l *view.Ledger) {
	room = min(24, room)
	from := max(0, len(l.Ring)-room)
	cols, top := make([]view.Bucket, room), 0.0
	for i, c := range l.Ring[from:] {
		b := float64(c.Sent) / math.Max(1, float64(c.Rounds))
		cols[i] = view.Bucket{Min: b, Max: b, Sum: b, Count: 1}
		top = max(top, b)
	}
	chart.Spark(g, x, y, cols, nil, chart.Axis{Lo: 0, Hi: max(top, 1)}, cell.Centre)
}

func evaluation(l *view.Ledger) (n int64) {
	for _, b := range l.Evaluation {
		n += b.Sent
	}
	return n
}

func bandwidthRows(v *view.View) panel.Rows {
	out := panel.Rows{{"round", "rounds", "seconds", "operation", "sent_bytes", "predicted_bytes"}}
	for _, c := range v.Ledger.Ring {
		for _, b := range c.Ops {
			out = append(out, []string{textfmt.Uint(c.To), textfmt.Uint(c.Rounds),
				textfmt.Exact(float64(c.Nanos) / 1e9), string(b.Op),
				strconv.FormatInt(b.Sent, 10), strconv.FormatInt(b.Predicted, 10)})
		}
	}
	return out
}

// networkFoot is the largest height of the table of operations on the Network screen.
const networkFoot = 13

// placeNetwork lays out the Network screen. The history of links is only placed in runs that have links, their current
// state only in live runs.
func placeNetwork(m *panel.Host, b cell.Rect) []panel.Placement {
	linked := m.Shown.MachinesOf(view.Between) != nil
	main, links := b, cell.Rect{}
	if linked {
		main, links = b.Left(b.W / 2)
	}
	top, low := main.Top(main.H - min(networkFoot, main.H/2))
	out := []panel.Placement{{Panel: panel.Traffic, Area: top}, {Panel: panel.Bandwidth, Area: low}}
	switch {
	case linked && m.CanSurvey():
		past, now := links.Top((links.H + 1) / 2)
		return slices.Insert(append(out, panel.Placement{Panel: panel.Links, Area: now}), 1,
			panel.Placement{Panel: panel.LinkHistory, Area: past})
	case linked:
		return slices.Insert(out, 1, panel.Placement{Panel: panel.LinkHistory, Area: links})
	case m.CanSurvey():
		out[1].Area, low = low.Left(low.W / 2)
		return append(out, panel.Placement{Panel: panel.Links, Area: low})
	}
	return out
}
