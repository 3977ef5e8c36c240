package fleet

import (
	"fmt"
	"math"
	"strings"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

func (f *Fleet) workerTitle(m *panel.Host) (string, string) {
	rows, at := f.Rows(m)
	if len(rows) == 0 {
		return "worker", ""
	}
	glyph, word, _ := rows[at].status()
	return "worker " + textfmt.WorkerLabel(rows[at].ID), glyph + " " + word
}

// drawWorker draws all data of the chosen worker.
func (f *Fleet) drawWorker(m *panel.Host, g *cell.Grid, r cell.Rect) {
	rows, at := f.Rows(m)
	if len(rows) == 0 {
		panel.Explain(g, r, "choose a worker in the table")
		return
	}
	x, y, end := rows[at], r.Y, r.Y+r.H
	const left = 11
	put := func(name string, role cell.Role, text string) {
		if text == "" {
			return
		}
		for i, l := range textfmt.Wrap(text, r.W-left-1) {
			if y >= end {
				return
			}
			if i == 0 {
				g.Text(r.X+1, y, left-2, cell.Faint, name)
			}
			g.Text(r.X+left, y, r.W-left-1, role, l)
			y++
		}
	}
	text, role := x.summary()
	if role == cell.Faint {
		role = cell.Plain
	}
	put("state", role, text)
	if len(x.Members) > 0 {
		put("hosts", cell.Plain, textfmt.Count(len(x.Members),
			"member")+": "+strings.ReplaceAll(textfmt.MemberRanges(x.Members), ",", ", "))
	}
	if _, unit := runRate(m); !math.IsNaN(x.Rate) {
		put("computes", cell.Plain, fmt.Sprintf("%s %s, %.0f %% of all", textfmt.Rate(x.Rate), unit,
			100*float64(len(x.Members))/float64(max(1, len(m.Shown.Members().Members)))))
	}
	switch {
	case !x.measured:
		return
	case x.inProcess():
		put("machine", cell.Plain, "in the coordinator's process")
		put("device", cell.Plain, f.deviceOf(event.Here))
		put("programs", cell.Warn, f.restartsOf(event.Here))
		put("links", cell.Faint, f.noLinksText(m))
		return
	}
	put("machine", cell.Plain, x.Name)
	put("address", cell.Plain, x.Address)
	put("device", cell.Plain, x.Device)
	put("", cell.Plain, f.deviceOf(x.ID))
	put("programs", cell.Warn, f.restartsOf(x.ID))
	put("kernels", cell.Plain, strings.ReplaceAll(x.Kernels, ",", ", "))
	put("software", cell.Plain, x.Software)
	put("key", cell.Plain, x.Key)
	put("joined", cell.Plain, textfmt.Duration(x.Since)+" ago")
	put("RTT", cell.Plain, Latency(x.RTT)+" to the coordinator")
	put("silent", silenceRole(x), silenceText(x))
	y++
	f.peers(g, cell.Rect{X: r.X, Y: y, W: r.W, H: end - y}, x.ID)
}

// measured returns the last reported values of a worker's process; nil if there are none.
func (f *Fleet) measured(worker int) map[event.Measure]float64 {
	for _, x := range f.Now.Machines {
		if x.Worker == worker {
			return x.Values
		}
	}
	return nil
}

// deviceOf describes the current state of the device of a worker's process; "" if it is not reported.
func (f *Fleet) deviceOf(worker int) string { return MachineRow{Values: f.measured(worker)}.Device() }

// restartsOf describes how often the programs of an objective were restarted in a worker's process; "" for never.
func (f *Fleet) restartsOf(worker int) string {
	n := f.measured(worker)[event.Restarts]
	if n == 0 {
		return ""
	}
	text := textfmt.Count(int(n), "restart")
	if worker == event.Here {
		text += " in this process"
	}
	return text + " (see Alerts)"
}

// peer holds the links between a worker and another one.
type peer struct {
	id      int
	out, in view.Link
	path    string // whether it is relayed or slowed down; "" if neither
}

// peers draws the table of the links of a worker, in both directions.
func (f *Fleet) peers(g *cell.Grid, r cell.Rect, id int) {
	var all []peer
	for _, other := range f.ends() {
		out, in := f.links(id, other), f.links(other, id)
		if other < 0 || len(out)+len(in) == 0 {
			continue
		}
		p := peer{id: other}
		if len(out) > 0 {
			p.out = out[0]
			if p.out.Relayed {
				p.path = "by the coordinator "
			}
			if l := p.out.Shape; l != nil && l.Slow() {
				p.path += "◆ " + shapeText(*l)
			}
		}
		if len(in) > 0 {
			p.in = in[0]
		}
		all = append(all, p)
	}
	if len(all) == 0 || r.H < 2 {
		return
	}
	cols := []panel.Column[peer]{
		panel.FigureColumn("sends/s", 7, 9, func(p peer) string { return textfmt.Size(p.out.Sent) }),
		panel.FigureColumn("gets/s", 7, 8, func(p peer) string { return textfmt.Size(p.in.Sent) }),
		panel.FigureColumn("RTT", 7, 7, func(p peer) string { return Latency(p.out.RTT) }),
		panel.FigureColumn("lost %", 6, 6, func(p peer) string { return textfmt.ThreeDigits(100 * p.out.Lost) }),
		{
			Title:  "path",
			Width:  24,
			Weight: 1,
			Text:   func(p peer) string { return p.path },
			Role:   func(peer) cell.Role { return cell.Warn },
		},
	}
	cols, _ = panel.FitColumns(cols, r.W-7, 0, 0)
	g.Text(r.X+1, r.Y, 5, cell.Faint, "peer")
	panel.DrawTableHead(g, r.X+7, r.Y, cols)
	for i, p := range all {
		y := r.Y + 1 + i
		if y == r.Y+r.H-1 && i < len(all)-1 {
			g.Text(r.X+1, y, r.W-2, cell.Faint, fmt.Sprintf("and %d more: e expands", len(all)-i))
			return
		}
		g.Text(r.X+1, y, 5, cell.Plain, textfmt.WorkerLabel(p.id))
		panel.DrawTableRow(g, r.X+7, y, cols, cell.Plain, p)
	}
}
