package live

import (
	"slices"
	"strings"

	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// NewTraffic returns the chart of the exchanged bytes, which leads the Network screen.
func NewTraffic() panel.Panel {
	return panel.Panel{
		ID: panel.Traffic, Title: trafficTitle, Draw: drawTraffic,
		Export: panel.ViewExport(func(v *view.View) panel.Rows {
			var all []*view.Series
			for i := range v.Traffic {
				all = append(all, &v.Traffic[i])
			}
			return panel.PointRows(all...)
		}),
		Plot:   panel.PlotRound,
		Screen: &panel.Screen{Digit: 5, Name: "Network", Short: "Net", Charts: true, Place: placeNetwork},
	}
}

func trafficTitle(m *panel.Host) (string, string) {
	note := m.WindowNote()
	if m.LogAxis {
		note = "log y · " + note
	}
	return "traffic  bytes a round", "all workers · " + note
}

// drawTraffic draws a line for each operation that sends bytes, without smoothing. It marks rounds in which the bytes
// differ from the algorithm's formula.
func drawTraffic(m *panel.Host, g *cell.Grid, r cell.Rect) {
	if len(m.Shown.Ledger.Ring) > 0 && m.NothingSent() {
		panel.Explain(g, r, oneWorkerText)
		return
	}
	if len(m.Shown.Traffic) == 0 || r.H < 5 {
		panel.Explain(g, r, m.WaitingText("traffic"))
		return
	}
	area, legend := panel.ChartArea(r)
	w := chart.Plot(area).W
	cells, edges := m.Edges(w), m.Edges(2*w)
	marks := m.UnlabelledMarks()
	var layers []chart.Layer
	var sets [][]view.Bucket
	var entries []panel.Entry
	ops, _, rounds, known := m.RecentTraffic()
	for i := range m.Shown.Traffic {
		s := &m.Shown.Traffic[i]
		if s.Name == view.Excess {
			for k, b := range s.Columns(view.Whole, cells) {
				if b.Min < 0 || b.Max > 0 {
					marks = append(marks, chart.Mark{Round: cells[k], Role: cell.Alert})
				}
			}
			continue
		}
		letter, role := chart.KindLetter(i)
		cols := s.Columns(view.Whole, edges)
		layers = append(layers, chart.Layer{Columns: cols, Void: s.Unmeasured(edges), Role: role, Glyph: letter})
		sets = append(sets, cols)
		value := "–"
		if at := slices.IndexFunc(ops, func(b view.Bytes) bool { return string(b.Op) == s.Name }); known && at >= 0 {
			value = textfmt.Size(float64(ops[at].Sent) / float64(rounds)) // the value in the table
		} else if x, ok := m.ShownValue(s, view.Whole); ok && !m.Dropped(s) {
			value = m.WithRound(s, textfmt.Size(x))
		}
		entries = append(entries, panel.Entry{Glyph: string(letter), Name: strings.ReplaceAll(s.Name, "_", " "),
			Value: value, Role: role})
	}
	chart.Draw(g, area, m.WithAxis(chart.Chart{Layers: layers, Marks: marks, Axis: m.FitAxis(m.LogAxis, sets)}))
	m.LegendLine(g, legend, append(entries, predictionEntry(m)))
}

// predictionEntry returns the part of the legend that compares all sent bytes with the prediction.
func predictionEntry(m *panel.Host) panel.Entry {
	total := m.Shown.Ledger.Total()
	if total.Sent == total.Predicted {
		return panel.Entry{Name: "all as predicted", Role: cell.Faint}
	}
	return panel.Entry{Glyph: "≠", Name: "predicted by", Value: textfmt.Size(total.Sent - total.Predicted),
		Role: cell.Alert}
}
