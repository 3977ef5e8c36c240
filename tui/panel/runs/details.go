package runs

import (
	"brood/runtime/archive"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/textfmt"
	"slices"
	"strings"
)

// details are what is known of the chosen run, of which its row shows a part.
type details struct {
	name, text string // the text of no name takes the whole width
	role       cell.Role
}

// detailsOf returns what is known of a run: what it trains, its note, the knobs that were set, the results, and all
// other settings, at last those at their defaults.
func (r *Runs) detailsOf(e archive.Entry) (out []details) {
	x := r.row(e)
	add := func(role cell.Role, name, text string) {
		if text != "" && text != "–" {
			out = append(out, details{name, text, role})
		}
	}
	switch {
	case x.Summary == nil:
		return []details{{"", "reading the run", cell.Faint}}
	case e.Folder != "":
		return []details{{"runs", textfmt.Grouped(x.Runs), cell.Plain}, {"folder", e.Dir, cell.Plain}}
	}
	trains := []string{x.Algorithm, x.Model, x.Data}
	add(cell.Alert, "", x.Err)
	known := slices.DeleteFunc(slices.Clone(trains), func(s string) bool { return s == "" })
	add(cell.Plain, "", strings.Join(known, " · "))
	add(cell.Title, "", x.About.Note)
	add(cell.Plain, "tags", strings.Join(x.About.Tags, " "))
	for _, s := range x.Settings {
		if !s.Default && archive.IsKnob(s) {
			add(cell.Plain, s.Name, s.Value)
		}
	}
	for _, c := range archive.Columns {
		if c.Text != nil && c.Name != archive.StateColumn && c.Name != archive.TitleColumn &&
			c.Name != "tag" && !slices.Contains(trains, c.Cell(x)) {
			add(cell.Plain, c.Title, c.Cell(x))
		}
	}
	for _, f := range archive.Metrics {
		key, _ := strings.CutPrefix(f.Name, "validation")
		scored := x.Score != nil && (f.Name == x.Score.Key || "test"+key == x.Score.Key) // has a column
		if v, ok := x.Figures[f.Name]; ok && !scored && f.Name != "seconds" {
			add(cell.Plain, f.Title, textfmt.Figure(f.Name, v))
		}
	}
	add(cell.Plain, "directory", e.Name)
	for _, s := range x.Settings {
		known := slices.ContainsFunc(out, func(d details) bool { return d.name == s.Name && d.text == s.Value })
		if !s.Default && !known && !slices.Contains(trains, s.Value) {
			add(cell.Plain, s.Name, s.Value)
		}
	}
	for _, s := range x.Settings {
		if s.Default {
			add(cell.Faint, s.Name, s.Value)
		}
	}
	return out
}

// drawDetails draws the details of the chosen run in as many columns as fit.
func (r *Runs) drawDetails(m *panel.Host, g *cell.Grid, in cell.Rect) {
	e, why := r.chosenEntry(m)
	if why != "" {
		panel.Explain(g, in, "settings and results of the runs appear here")
		return
	}
	all := r.detailsOf(e)
	names := 0
	for _, d := range all {
		names = max(names, min(cell.Width(d.name), 18))
	}
	const least = 42 // cells of a column
	cols := max(1, in.W/least)
	width := in.W / cols
	var lines []details
	for _, d := range all {
		room := width - names - 4
		if d.name == "" {
			room = width - 2
		}
		for i, text := range textfmt.Wrap(d.text, max(1, room)) {
			if i > 0 && d.name != "" {
				d.name = " "
			}
			lines = append(lines, details{d.name, text, d.role})
		}
	}
	fit := in.H * cols
	for i, d := range lines[:min(fit, len(lines))] {
		x, y := in.X+1+i/in.H*width, in.Y+i%in.H
		if i == fit-1 && len(lines) > fit {
			g.Text(x, y, width-2, cell.Faint, textfmt.Count(len(lines)-i, "more line")+": v shows them")
			break
		}
		if d.name == "" {
			g.Text(x, y, width-2, d.role, d.text)
			continue
		}
		g.Text(x, y, names, cell.Faint, panel.Distinct([]string{d.name}, names)[0])
		g.Text(x+names+2, y, width-names-3, d.role, d.text)
	}
}
