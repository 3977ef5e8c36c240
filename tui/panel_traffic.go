package tui

import (
	"slices"
	"strings"

	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
)

const trafficPanel panelID = "traffic"

// newTraffic is the chart of what is exchanged, which leads the Network screen.
func newTraffic() panel {
	return panel{
		id: trafficPanel, title: trafficTitle, draw: drawTraffic,
		export: plainly(func(v *view.View) rows {
			var all []*view.Series
			for i := range v.Traffic {
				all = append(all, &v.Traffic[i])
			}
			return pointRows(all...)
		}),
		point:  pointRound,
		screen: &screen{digit: 5, name: "Network", short: "Net", charts: true, place: placeNetwork},
	}
}

func trafficTitle(m *model) (string, string) {
	note := m.windowNote()
	if m.logAxis {
		note = "log y · " + note
	}
	return "traffic  bytes a round, all workers", note
}

// drawTraffic is a line for each operation that sends anything, as measured: no average smooths it. Rounds in which
// more or less was sent than the algorithm's formula says are marked.
func drawTraffic(m *model, g *cell.Grid, r cell.Rect) {
	if len(m.shown.Ledger.Ring) > 0 && m.nothingSent() {
		explain(g, r, aloneText)
		return
	}
	if len(m.shown.Traffic) == 0 || r.H < 5 {
		explain(g, r, m.waiting("traffic"))
		return
	}
	area, legend := r.Top(r.H - 1)
	area, _ = area.Left(area.W - 1)
	w := chart.Plot(area).W
	cells, edges := m.edges(w), m.edges(2*w)
	marks := m.unlabelledMarks()
	var layers []chart.Layer
	var sets [][]view.Bucket
	var entries []entry
	ops, _, rounds, known := m.recent()
	for i := range m.shown.Traffic {
		s := &m.shown.Traffic[i]
		if s.Name == view.Excess {
			for k, b := range s.Columns(view.Whole, cells) {
				if b.Min < 0 || b.Max > 0 {
					marks = append(marks, chart.Mark{Round: cells[k], Role: cell.Alert})
				}
			}
			continue
		}
		letter, role := chart.Letter(i)
		cols := s.Columns(view.Whole, edges)
		layers = append(layers, chart.Layer{Columns: cols, Void: s.Unmeasured(edges), Role: role, Glyph: letter})
		sets = append(sets, cols)
		value := "–"
		if at := slices.IndexFunc(ops, func(b view.Bytes) bool { return string(b.Op) == s.Name }); known && at >= 0 {
			value = Size(float64(ops[at].Sent) / float64(rounds)) // as the table has it
		} else if x, ok := m.last(s, view.Whole); ok && !m.dropped(s) {
			value = m.dated(s, Size(x))
		}
		entries = append(entries, entry{string(letter), strings.ReplaceAll(s.Name, "_", " "), value, role})
	}
	chart.Draw(g, area, m.scaled(chart.Chart{Layers: layers, Marks: marks, Axis: m.fit(m.logAxis, sets)}))
	m.legendLine(g, legend, append(entries, m.againstFormula()))
}

// againstFormula says whether all that was ever sent is what the formulas say.
func (m *model) againstFormula() entry {
	total := m.shown.Ledger.Total()
	if total.Sent == total.Predicted {
		return entry{"", "all as predicted", "", cell.Faint}
	}
	return entry{"≠", "predicted by", Size(float64(total.Sent - total.Predicted)), cell.Alert}
}
