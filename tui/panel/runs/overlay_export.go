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

// listTable returns a function that writes the listed runs with every column, metric and differing setting for which a
// run has a value, numbers with all digits.
func (r *Runs) listTable(m *panel.Host) func(*view.View) panel.Rows {
	var rows []archive.Row
	for _, x := range r.SortedRows(m) {
		if x.Folder == "" && x.Host == "" {
			rows = append(rows, r.row(x.Entry))
		}
	}
	var names []string
	for _, c := range archive.Columns {
		if c.Name != archive.CurveColumn {
			names = append(names, c.Name)
		}
	}
	for _, metric := range archive.Metrics {
		names = append(names, metric.Name)
	}
	columns := slices.DeleteFunc(archive.Chosen(names, rows), func(c archive.Column) bool {
		return !slices.ContainsFunc(rows, func(x archive.Row) bool { return exactCell(c, x) != "" })
	})
	head := []string{"run"}
	for _, c := range columns {
		head = append(head, c.Name)
	}
	out := panel.Rows{head}
	for _, x := range rows {
		row := []string{x.Name}
		for _, c := range columns {
			row = append(row, exactCell(c, x))
		}
		out = append(out, row)
	}
	return func(*view.View) panel.Rows { return out }
}

// exactCell returns the text of a row in a table for programs: a number with all digits, "" for none.
func exactCell(c archive.Column, x archive.Row) string {
	if x.Summary == nil {
		return ""
	}
	if c.Number != nil {
		if n := c.Number(x); n == n {
			return textfmt.Exact(n)
		}
	}
	if s := c.Cell(x); s != "–" {
		return s
	}
	return ""
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
