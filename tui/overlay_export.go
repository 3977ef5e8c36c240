package tui

import (
	"slices"

	"brood/runtime/archive"

	"brood/runtime/view"
)

// overlayRows returns a function that writes the overlaid curves with every measured point, not at the resolution of
// the charts. It captures names and curves, so that the function can run in another goroutine.
func (r *runs) overlayRows(m *model) func(*view.View) rows {
	o := r.lay(m)
	set, plots, axis := slices.Clone(o.set), slices.Clone(o.plots), o.axis
	names := make([]string, len(set)) // copies: renaming a run changes them
	for i, run := range set {
		names[i] = run.Name
	}
	return func(*view.View) rows {
		out := rows{{"run", "quantity", axis.String(), "round", "points", "min", "mean", "max"}}
		for _, p := range plots {
			for i, run := range set {
				for _, x := range p.all(run) {
					out = append(out, []string{names[i], p.title, exact(x.X), uints(x.Round), uints(x.Count), exact(x.Min),
						exact(x.Mean()), exact(x.Max)})
				}
			}
		}
		return out
	}
}

// figureTable returns a function that writes the table of settings and results, with all digits.
func (r *runs) figureTable(m *model) func(*view.View) rows {
	o := r.lay(m)
	differing, set := archive.Differences(o.set), slices.Clone(o.set)
	head := []string{"run"}
	for _, d := range differing {
		head = append(head, d.Name)
	}
	for _, metric := range archive.Metrics {
		head = append(head, metric.Name)
	}
	out := rows{head}
	for i, run := range set {
		row := []string{run.Name}
		for _, d := range differing {
			row = append(row, d.Values[i])
		}
		for _, metric := range archive.Metrics {
			text := ""
			if x, ok := run.Metric(metric.Name); ok {
				text = exact(x)
			}
			row = append(row, text)
		}
		out = append(out, row)
	}
	return func(*view.View) rows { return out }
}
