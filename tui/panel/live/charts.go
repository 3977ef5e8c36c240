package live

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/panel"
)

// chartsPanel is the state of the Charts screen. The list of charts is in the settings.
type chartsPanel struct {
	chosen string // metric id of the chart under the cursor
	full   bool   // that chart fills the screen
}

// NewCharts returns the panel of the Charts screen.
func NewCharts() panel.Panel {
	c := &chartsPanel{}
	move := panel.Steps(c.move)
	near := func(d int) func(*panel.Host) tea.Cmd { return func(m *panel.Host) tea.Cmd { return c.narrow(m, d) } }
	shift := func(d int) func(*panel.Host) tea.Cmd { return func(m *panel.Host) tea.Cmd { return c.shift(m, d) } }
	return panel.Panel{
		ID: panel.Charts, Title: c.title, Draw: c.draw, Point: c.point, Plot: c.plot, Back: c.leaveFull, Export: c.export,
		Screen: &panel.Screen{Digit: 7, Name: "Charts", Charts: true}, Reset: func() { *c = chartsPanel{} },
		Group: "charts (on their screen)", Example: "a spread enter: add its chart",
		Keys: []panel.Binding{
			{Keys: []string{"j", "down"}, Title: "next chart", Do: move(1)},
			{Keys: []string{"up"}, Title: "previous chart", Do: move(-1)},
			{Keys: []string{"enter"}, Title: "one chart, then all",
				Do: func(*panel.Host) tea.Cmd { c.full = !c.full; return nil }},
			{Keys: []string{"a"}, Title: "add a chart", Do: c.choose},
			{Keys: []string{"d", "delete"}, Title: "remove this chart", Do: c.remove},
			{Keys: []string{"("}, Title: "move it forward", Do: shift(-1)},
			{Keys: []string{")"}, Title: "move it back", Do: shift(1)},
			{Keys: []string{"v"}, Title: "narrow the y axis", Do: near(1)},
			{Keys: []string{"V"}, Title: "widen it", Do: near(-1)},
			{Keys: []string{"L"}, Title: "saved layouts", Do: c.chooseLayout},
			{Keys: []string{"D"}, Title: "default charts", Do: c.defaults},
		},
		Hints: func(*panel.Host) [][2]string {
			if c.full {
				return [][2]string{{"enter", "all charts"}, {"↑↓", "chart"}, {"v V", "y axis"}, {"+-", "zoom"},
					{"a", "add"},
					{"d", "remove"}}
			}
			return [][2]string{{"↑↓", "chart"}, {"enter", "one"}, {"a", "add"}, {"d", "remove"}, {"v V", "y axis"},
				{"+-", "zoom"}}
		},
		Commands: []panel.Command{
			{
				Name:  "chart",
				Args:  "METRIC",
				Title: "add a chart to the screen Charts",
				Values: func(m *panel.Host) (out []panel.Value) {
					for _, x := range m.Metrics() {
						title := strings.Join(strings.Fields(x.Title), " ")
						out = append(out, panel.Value{Word: x.ID, Title: title + ": show its chart"})
					}
					return out
				},
				Do: func(m *panel.Host, args []string) (tea.Cmd, error) {
					for _, x := range m.Metrics() {
						if len(args) == 1 && x.ID == args[0] {
							return tea.Batch(m.Run("screen charts"), c.add(m, x.ID)), nil
						}
					}
					var all []string
					for _, x := range m.Metrics() {
						all = append(all, x.ID)
					}
					if len(all) == 0 {
						return nil, errors.New("chart: nothing is measured yet: charts appear with the first rounds")
					}
					return nil, fmt.Errorf("chart: write chart and one of %s", strings.Join(all, ", "))
				},
			},
			c.layoutCommand(),
		},
	}
}

// shown returns the metrics of the shown charts: the chosen ones that have values, or all metrics if none was chosen.
func (c *chartsPanel) shown(m *panel.Host) []panel.Metric {
	all := m.Metrics()
	set := m.Opt.Settings.Charts
	if len(set) == 0 {
		return all
	}
	var out []panel.Metric
	for _, id := range set {
		if i := slices.IndexFunc(all, func(x panel.Metric) bool { return x.ID == id }); i >= 0 {
			out = append(out, all[i])
		}
	}
	return out
}

// absent returns the metrics without a chart.
func (c *chartsPanel) absent(m *panel.Host) (out []panel.Metric) {
	has := c.shown(m)
	for _, x := range m.Metrics() {
		if !slices.ContainsFunc(has, func(o panel.Metric) bool { return o.ID == x.ID }) {
			out = append(out, x)
		}
	}
	return out
}

func (c *chartsPanel) index(all []panel.Metric) int {
	return max(0, slices.IndexFunc(all, func(x panel.Metric) bool { return x.ID == c.chosen }))
}

func (c *chartsPanel) move(m *panel.Host, d int) {
	if all := c.shown(m); len(all) > 0 {
		c.chosen = all[(c.index(all)+d+len(all))%len(all)].ID
	}
}

// set returns a copy of the chosen metric ids, or those of the shown charts if none was chosen.
func (c *chartsPanel) set(m *panel.Host) []string {
	if set := m.Opt.Settings.Charts; len(set) > 0 {
		return slices.Clone(set)
	}
	var out []string
	for _, x := range c.shown(m) {
		out = append(out, x.ID)
	}
	return out
}

// store stores the chosen metric ids in the settings and saves them.
func (c *chartsPanel) store(m *panel.Host, set []string) tea.Cmd {
	m.Opt.Settings.Charts = set
	return m.SaveSettings()
}

// choose opens a palette with the metrics that have no chart.
func (c *chartsPanel) choose(m *panel.Host) tea.Cmd {
	var all []panel.PaletteEntry
	for _, x := range c.absent(m) {
		all = append(all, panel.PaletteEntry{Title: strings.Join(strings.Fields(x.Title), " "), Key: x.ID,
			Do: func(m *panel.Host) tea.Cmd { return c.add(m, x.ID) }})
	}
	if len(all) == 0 {
		m.Say(cell.Plain, "all measured series have a chart already")
		return nil
	}
	m.Popup = &panel.Palette{Title: "add a chart", Choices: all}
	return nil
}

// add inserts a chart after the one under the cursor and moves the cursor to it. It refuses more than
// [panel.MaxCharts].
func (c *chartsPanel) add(m *panel.Host, id string) tea.Cmd {
	set := c.set(m)
	at := c.place(m, set) + 1
	c.full = false
	if slices.Contains(set, id) {
		c.chosen = id
		return nil
	}
	if len(set) >= panel.MaxCharts {
		m.Say(cell.Warn, fmt.Sprintf("there are %d charts, the maximum: d removes one", panel.MaxCharts))
		return nil
	}
	c.chosen = id
	return c.store(m, slices.Insert(set, min(at, len(set)), id))
}

// place returns the index of the chart under the cursor in set, -1 if there is none.
func (c *chartsPanel) place(m *panel.Host, set []string) int {
	all := c.shown(m)
	if len(all) == 0 {
		return -1
	}
	return slices.Index(set, all[c.index(all)].ID)
}

func (c *chartsPanel) remove(m *panel.Host) tea.Cmd {
	all, set := c.shown(m), c.set(m)
	i := c.place(m, set)
	if len(all) < 2 || i < 0 {
		m.Say(cell.Warn, "this is the last chart: a adds others")
		return nil
	}
	at := c.index(all)
	c.chosen = all[min(at+1, len(all)-1)].ID
	if at == len(all)-1 {
		c.chosen = all[at-1].ID
	}
	return c.store(m, slices.Delete(set, i, i+1))
}

// shift swaps the chart under the cursor with its shown neighbour.
func (c *chartsPanel) shift(m *panel.Host, d int) tea.Cmd {
	all, set := c.shown(m), c.set(m)
	at := c.index(all)
	if at+d < 0 || at+d >= len(all) {
		return nil
	}
	i := c.place(m, set)
	j := slices.Index(set, all[at+d].ID)
	c.chosen = all[at].ID
	set[i], set[j] = set[j], set[i]
	return c.store(m, set)
}

// narrow narrows the y axis of the chart to the values of its last columns for d > 0, or widens it. Each step halves
// the columns.
func (c *chartsPanel) narrow(m *panel.Host, d int) tea.Cmd {
	all := c.shown(m)
	if len(all) == 0 {
		return nil
	}
	id := all[c.index(all)].ID
	n := int(m.Opt.Settings.Near[id]) + d
	switch {
	case n < 0:
		m.Say(cell.Plain, "the y axis covers all shown rounds: v narrows it to the last ones")
		return nil
	case n > panel.MaxNear:
		m.Say(cell.Plain, "the y axis cannot be narrower")
		return nil
	}
	m.Opt.Settings.Narrow(id, uint(n))
	return m.SaveSettings()
}

func (c *chartsPanel) defaults(m *panel.Host) tea.Cmd {
	*c = chartsPanel{}
	m.Opt.Settings.Near = nil
	return c.store(m, nil)
}

// leaveFull returns from one chart to all charts. It reports whether one chart was shown alone.
func (c *chartsPanel) leaveFull(*panel.Host) bool {
	full := c.full
	c.full = false
	return full
}

// window returns the page of charts with the cursor that fits into an area: index of the first, number, and columns.
func (c *chartsPanel) window(all []panel.Metric, r cell.Rect) (first, n, cols int) {
	if c.full && len(all) > 0 {
		return c.index(all), 1, 1
	}
	n, cols = panel.FitTiles(r, len(all), panel.TileH)
	if n == 0 {
		return 0, 0, 1
	}
	first = c.index(all) / n * n
	rest := min(n, len(all)-first)
	if rest < n { // the charts of the last page fill the area
		n, cols = panel.FitTiles(r, rest, panel.TileH)
	}
	return first, n, cols
}

func (c *chartsPanel) title(m *panel.Host) (string, string) {
	all := c.shown(m)
	first, n := 0, len(all)
	for _, p := range m.Placed {
		if p.Panel == panel.Charts {
			first, n, _ = c.window(all, p.Area.Inset())
		}
	}
	var series []*view.Series
	for _, x := range all {
		series = append(series, x.Series...)
	}
	note := m.SmoothNote(series...) + m.WindowNote()
	switch {
	case n == 1 && len(all) > 1:
		note = fmt.Sprintf("%d of %d · ", first+1, len(all)) + note
	case n < len(all):
		note = fmt.Sprintf("%d–%d of %d · ", first+1, first+n, len(all)) + note
	}
	return "charts", note
}

func (c *chartsPanel) draw(m *panel.Host, g *cell.Grid, r cell.Rect) {
	all := c.shown(m)
	if len(all) == 0 {
		text := m.WaitingText("the measurements")
		if len(m.Metrics()) > 0 {
			text = "none of the charts that you chose has values here: a adds others, D shows the default charts"
		}
		panel.Explain(g, r, text)
		return
	}
	first, n, cols := c.window(all, r)
	for i, at := range panel.LayoutTiles(r, n, cols) {
		x := all[first+i]
		t := m.MetricTile(x, m.Opt.Settings.Near[x.ID])
		if t.Near > 0 {
			t.Title += fmt.Sprintf("  last 1/%d", 1<<t.Near)
		}
		m.DrawTile(g, at, t, first+i == c.index(all) && len(all) > 1)
	}
}

// point selects the chart under the mouse.
func (c *chartsPanel) point(m *panel.Host, r cell.Rect, x, y int) {
	all := c.shown(m)
	first, n, cols := c.window(all, r)
	if i := slices.IndexFunc(panel.LayoutTiles(r, n, cols), func(at cell.Rect) bool { return at.Has(x, y) }); i >= 0 {
		c.chosen = all[first+i].ID
	}
}

// plot returns the plot of the chart under the mouse.
func (c *chartsPanel) plot(m *panel.Host, r cell.Rect, x, y int) cell.Rect {
	_, n, cols := c.window(c.shown(m), r)
	return panel.TilePlot(panel.LayoutTiles(r, n, cols), x, y)
}

// export returns a function that writes the measured values of the shown charts.
func (c *chartsPanel) export(m *panel.Host) func(*view.View) panel.Rows {
	var members, speed []string
	var machines, traffic bool
	for _, x := range c.shown(m) {
		for _, s := range x.Series {
			switch {
			case m.IsMemberSeries(s):
				members = append(members, s.Name)
			case x.ID == panel.BytesMetric:
				traffic = true
			case strings.HasPrefix(x.ID, "machine."):
				machines = true
			default:
				speed = append(speed, s.Name)
			}
		}
	}
	return func(v *view.View) panel.Rows {
		out := panel.SeriesRows(v, members...)
		for i := range v.Speed {
			if slices.Contains(speed, v.Speed[i].Name) {
				out = append(out, panel.PointRows(&v.Speed[i])[1:]...)
			}
		}
		for i := range v.Traffic {
			if traffic {
				out = append(out, panel.PointRows(&v.Traffic[i])[1:]...)
			}
		}
		if machines {
			out = append(out, panel.MachineRows(v)[1:]...)
		}
		return out
	}
}
