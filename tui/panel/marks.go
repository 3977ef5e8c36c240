package panel

import (
	"fmt"
	"math"
	"strings"

	"brood/optim"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
)

// Marks returns the marks on the axis of the chart. The mark of an edit starts with the label of its knob, and ends
// with its author, if that is another user, and its reason. More is the relative change of the loss since then.
func (m *Host) Marks() (out []chart.Mark) {
	for _, k := range m.Shown.Marks {
		role := cell.Marks
		if k.Alert {
			role = cell.Alert
		}
		text := k.Text
		if name, rest, edit := strings.Cut(text, " "); edit {
			text = m.KnobLabelByName(name) + " " + rest
		}
		if k.Who != m.Opt.By && k.Who != "" {
			text += " " + k.Who
		}
		more := ""
		if e := k.Effect; e != nil && !math.IsNaN(e.Percent()) {
			more = fmt.Sprintf(" %+.2g %%", e.Percent())
		}
		out = append(out, chart.Mark{Round: k.Round, Text: text, More: more, Role: role})
	}
	return append(out, m.noteMarks()...)
}

// LossSeries returns the series to draw on the axis of the centre's loss, with title and unit of the axis: the main
// series; nil for an objective, and for a model whose main series is no loss.
func (m *Host) LossSeries() (s *view.Series, title, unit string) {
	title = "training loss"
	if m.Alg != nil {
		for _, x := range m.Alg.Series {
			if x.Name == m.MainSeries() {
				title, unit = x.Title, x.Unit
			}
		}
	}
	if m.Shown.Config.Maximises() {
		return nil, m.Shown.Config.Fitness() + " of the centre", ""
	}
	if m.Shown.Config != nil && m.Shown.Config.Data != "" && m.Alg != nil && unit != optim.SeriesLoss.Unit {
		return nil, "loss of the centre", m.Shown.Config.Unit(optim.SeriesLoss.Unit)
	}
	return m.Shown.Find(m.MainSeries()), title, m.Shown.Config.Unit(unit)
}

// CentreColumns returns the values of the centre, which are losses. For an objective they are negated to the fitness
// that the user defined.
func (m *Host) CentreColumns(s *view.Series) func(edges []uint64) []view.Bucket {
	of := MemberColumns(s, view.Whole)
	if !m.Shown.Config.Maximises() {
		return of
	}
	return func(edges []uint64) []view.Bucket { return Negate(of(edges)) }
}

// UnlabelledMarks returns the marks without texts, which another panel shows.
func (m *Host) UnlabelledMarks() []chart.Mark {
	out := m.Marks()
	for i := range out {
		out[i].Text, out[i].More = "", ""
	}
	return out
}

// NothingSent reports whether no bytes were sent, predicted or used by the evaluation.
func (m *Host) NothingSent() bool {
	l := &m.Shown.Ledger
	total := l.Total()
	return total.Sent == 0 && total.Predicted == 0 && len(l.Evaluation) == 0
}
