package runs

import (
	"slices"

	"brood/runtime/archive"
	"brood/runtime/view"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// overlayRows returns a function that writes the overlaid curves with every measured point, not at the resolution of
// the charts. It captures names and curves, so that the function can run in another goroutine.
func (r *Runs) overlayRows(m *panel.Host) func(*view.View) panel.Rows {
	o := r.layOut(m)
	set, plots, axis := slices.Clone(o.Set), slices.Clone(o.Plots), o.Axis
	names := make([]string, len(set)) // copies: renaming a run changes them
	for i, run := range set {
		names[i] = run.Name
	}
	return func(*view.View) panel.Rows {
		out := panel.Rows{{"run", "quantity", axis.String(), "round", "points", "min", "mean", "max"}}
		for _, p := range plots {
			for i, run := range set {
				for _, x := range p.All(run) {
					out = append(out, []string{names[i], p.Title, textfmt.Exact(x.X), textfmt.Uint(x.Round),
						textfmt.Uint(x.Count), textfmt.Exact(x.Min),
						textfmt.Exact(x.Mean()), textfmt.Exact(x.Max)})
				}
			}
		}
		return out
	}
}

// figureTable returns a function that writes the table of settings and results, with all digits.
func (r *Runs) figureTable(m *panel.Host) func(*view.View) panel.Rows {
	o := r.layOut(m)
	differing, set := archive.Differences(o.Set), slices.Clone(o.Set)
	head := []string{"run"}
	for _, d := range differing {
		head = append(head, d.Name)
	}
	for _, metric := range archive.Metrics {
		head = append(head, metric.Name)
	}
	out := panel.Rows{head}
	for i, run := range set {
		row := []string{run.Name}
		for _, d := range differing {
			row = append(row, d.Values[i])
		}
		for _, metric := range archive.Metrics {
			text := ""
			if x, ok := run.Metric(metric.Name); ok {
				text = textfmt.Exact(x)
			}
			row = append(row, text)
		}
		out = append(out, row)
	}
	return func(*view.View) panel.Rows { return out }
}
