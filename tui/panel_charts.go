package tui

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/view"
	"brood/tui/cell"
)

const chartsPanel panelID = "charts"

// charts is the state of the Charts screen. The list of charts is in the settings.
type charts struct {
	at   string // metric id of the chart under the cursor
	full bool   // that chart fills the screen
}

func newCharts() *charts { return &charts{} }

func (c *charts) panel() panel {
	move := func(d int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { c.move(m, d); return nil }
	}
	near := func(d int) func(*model) tea.Cmd { return func(m *model) tea.Cmd { return c.near(m, d) } }
	shift := func(d int) func(*model) tea.Cmd { return func(m *model) tea.Cmd { return c.shift(m, d) } }
	return panel{
		id: chartsPanel, title: c.title, draw: c.draw, point: c.point, back: c.leaveFull, export: c.export,
		screen: &screen{digit: 7, name: "Charts", charts: true}, reset: func() { *c = charts{} },
		group: "charts (on their screen)",
		keys: []binding{
			{keys: []string{"j", "down"}, title: "next chart", do: move(1)},
			{keys: []string{"up"}, title: "chart before", do: move(-1)},
			{keys: []string{"enter"}, title: "one alone, then all", do: func(*model) tea.Cmd { c.full = !c.full; return nil }},
			{keys: []string{"a"}, title: "add a chart", do: c.choose},
			{keys: []string{"d", "delete"}, title: "take this one away", do: c.remove},
			{keys: []string{"("}, title: "move it forward", do: shift(-1)},
			{keys: []string{")"}, title: "move it back", do: shift(1)},
			{keys: []string{"v"}, title: "narrow the y axis", do: near(1)},
			{keys: []string{"V"}, title: "widen it", do: near(-1)},
			{keys: []string{"L"}, title: "layouts that are kept", do: c.chooseLayout},
			{keys: []string{"D"}, title: "charts as they were at first", do: c.defaults},
		},
		hints: func(*model) [][2]string {
			if c.full {
				return [][2]string{{"enter", "all charts"}, {"↑↓", "chart"}, {"v V", "y axis"}, {"+-", "zoom"}, {"a", "add"},
					{"d", "take away"}}
			}
			return [][2]string{{"↑↓", "chart"}, {"enter", "alone"}, {"a", "add"}, {"d", "take away"}, {"v V", "y axis"},
				{"+-", "zoom"}}
		},
		commands: []command{
			{
				name:  "chart",
				args:  "METRIC",
				title: "add a chart to the screen Charts",
				complete: func(m *model, words []string) (out []string) {
					for _, x := range c.absent(m) {
						out = append(out, x.id)
					}
					return out
				},
				do: func(m *model, args []string) (tea.Cmd, error) {
					for _, x := range m.metrics() {
						if len(args) == 1 && x.id == args[0] {
							return tea.Batch(m.run("screen charts"), c.add(m, x.id)), nil
						}
					}
					var all []string
					for _, x := range m.metrics() {
						all = append(all, x.id)
					}
					if len(all) == 0 {
						return nil, errors.New("nothing is measured yet: charts come with the first rounds")
					}
					return nil, fmt.Errorf("give one of what is measured: %s", strings.Join(all, ", "))
				},
			},
			c.layoutCommand(),
		},
	}
}

// shown returns the metrics of the shown charts: the chosen ones that have values, or all metrics if none was chosen.
func (c *charts) shown(m *model) []metric {
	all := m.metrics()
	set := m.opt.Settings.Charts
	if len(set) == 0 {
		return all
	}
	var out []metric
	for _, id := range set {
		if i := slices.IndexFunc(all, func(x metric) bool { return x.id == id }); i >= 0 {
			out = append(out, all[i])
		}
	}
	return out
}

// absent returns the metrics without a chart.
func (c *charts) absent(m *model) (out []metric) {
	has := c.shown(m)
	for _, x := range m.metrics() {
		if !slices.ContainsFunc(has, func(o metric) bool { return o.id == x.id }) {
			out = append(out, x)
		}
	}
	return out
}

func (c *charts) index(all []metric) int {
	return max(0, slices.IndexFunc(all, func(x metric) bool { return x.id == c.at }))
}

func (c *charts) move(m *model, d int) {
	if all := c.shown(m); len(all) > 0 {
		c.at = all[(c.index(all)+d+len(all))%len(all)].id
	}
}

// set returns a copy of the chosen metric ids, or those of the shown charts if none was chosen.
func (c *charts) set(m *model) []string {
	if set := m.opt.Settings.Charts; len(set) > 0 {
		return slices.Clone(set)
	}
	var out []string
	for _, x := range c.shown(m) {
		out = append(out, x.id)
	}
	return out
}

// settle stores the chosen metric ids in the settings and saves them.
func (c *charts) settle(m *model, set []string) tea.Cmd {
	m.opt.Settings.Charts = set
	return m.remember()
}

// choose opens a palette with the metrics that have no chart.
func (c *charts) choose(m *model) tea.Cmd {
	var all []choice
	for _, x := range c.absent(m) {
		all = append(all, choice{strings.Join(strings.Fields(x.title), " "), x.id,
			func(m *model) tea.Cmd { return c.add(m, x.id) }})
	}
	if len(all) == 0 {
		m.say(cell.Plain, "all that is measured has a chart here")
		return nil
	}
	m.popup = &palette{title: "add a chart", all: all}
	return nil
}

// add inserts a chart after the one under the cursor and moves the cursor to it. It refuses more than maxCharts.
func (c *charts) add(m *model, id string) tea.Cmd {
	set := c.set(m)
	at := c.place(m, set) + 1
	c.full = false
	if slices.Contains(set, id) {
		c.at = id
		return nil
	}
	if len(set) >= maxCharts {
		m.say(cell.Warn, fmt.Sprintf("there are %d charts: d takes one away", maxCharts))
		return nil
	}
	c.at = id
	return c.settle(m, slices.Insert(set, min(at, len(set)), id))
}

// place returns the index of the chart under the cursor in set, -1 if there is none.
func (c *charts) place(m *model, set []string) int {
	all := c.shown(m)
	if len(all) == 0 {
		return -1
	}
	return slices.Index(set, all[c.index(all)].id)
}

func (c *charts) remove(m *model) tea.Cmd {
	all, set := c.shown(m), c.set(m)
	i := c.place(m, set)
	if len(all) < 2 || i < 0 {
		m.say(cell.Warn, "this is the last chart: a adds others")
		return nil
	}
	at := c.index(all)
	c.at = all[min(at+1, len(all)-1)].id
	if at == len(all)-1 {
		c.at = all[at-1].id
	}
	return c.settle(m, slices.Delete(set, i, i+1))
}

// shift swaps the chart under the cursor with its shown neighbour.
func (c *charts) shift(m *model, d int) tea.Cmd {
	all, set := c.shown(m), c.set(m)
	at := c.index(all)
	if at+d < 0 || at+d >= len(all) {
		return nil
	}
	i := c.place(m, set)
	j := slices.Index(set, all[at+d].id)
	c.at = all[at].id
	set[i], set[j] = set[j], set[i]
	return c.settle(m, set)
}

// near narrows the y axis of the chart to the values of its last columns for d > 0, or widens it. Each step halves the
// columns.
func (c *charts) near(m *model, d int) tea.Cmd {
	all := c.shown(m)
	if len(all) == 0 {
		return nil
	}
	id := all[c.index(all)].id
	n := int(m.opt.Settings.Near[id]) + d
	switch {
	case n < 0:
		m.say(cell.Plain, "the y axis holds all that is shown: v narrows it to the last rounds")
		return nil
	case n > maxNear:
		m.say(cell.Plain, "this is as narrow as the y axis goes")
		return nil
	}
	m.opt.Settings.narrow(id, uint(n))
	return m.remember()
}

func (c *charts) defaults(m *model) tea.Cmd {
	*c = charts{}
	m.opt.Settings.Near = nil
	return c.settle(m, nil)
}

// leaveFull returns from one chart to all charts. It reports whether one chart was shown alone.
func (c *charts) leaveFull(*model) bool {
	full := c.full
	c.full = false
	return full
}

// window returns the page of charts with the cursor that fits into an area: index of the first, number, and columns.
func (c *charts) window(all []metric, r cell.Rect) (first, n, cols int) {
	if c.full && len(all) > 0 {
		return c.index(all), 1, 1
	}
	n, cols = tiling(r, len(all), tileH)
	if n == 0 {
		return 0, 0, 1
	}
	first = c.index(all) / n * n
	rest := min(n, len(all)-first)
	if rest < n { // the charts of the last page fill the area
		n, cols = tiling(r, rest, tileH)
	}
	return first, n, cols
}

func (c *charts) title(m *model) (string, string) {
	all := c.shown(m)
	first, n := 0, len(all)
	for _, p := range m.placed {
		if p.panel == chartsPanel {
			first, n, _ = c.window(all, p.at.Inset())
		}
	}
	var series []*view.Series
	for _, x := range all {
		series = append(series, x.series...)
	}
	note := m.smoothNote(series...) + m.windowNote()
	switch {
	case n == 1 && len(all) > 1:
		note = fmt.Sprintf("%d of %d · ", first+1, len(all)) + note
	case n < len(all):
		note = fmt.Sprintf("%d–%d of %d · ", first+1, first+n, len(all)) + note
	}
	return "charts", note
}

func (c *charts) draw(m *model, g *cell.Grid, r cell.Rect) {
	all := c.shown(m)
	if len(all) == 0 {
		text := m.waiting("what is measured")
		if len(m.metrics()) > 0 {
			text = "none of the charts that you chose has anything to say here: a adds others, D is what there is"
		}
		explain(g, r, text)
		return
	}
	first, n, cols := c.window(all, r)
	for i, at := range tiled(r, n, cols) {
		x := all[first+i]
		t := m.tileOf(x, m.opt.Settings.Near[x.id])
		if t.near > 0 {
			t.title += fmt.Sprintf("  last 1/%d", 1<<t.near)
		}
		m.drawTile(g, at, t, first+i == c.index(all) && len(all) > 1)
	}
}

// point selects the chart under the mouse and the round there.
func (c *charts) point(m *model, r cell.Rect, x, y int) {
	all := c.shown(m)
	first, n, cols := c.window(all, r)
	if i := m.pointTile(tiled(r, n, cols), x, y); i >= 0 {
		c.at = all[first+i].id
	}
}

// export returns a function that writes the measured values of the shown charts.
func (c *charts) export(m *model) func(*view.View) rows {
	var members, speed []string
	var machines, traffic bool
	for _, x := range c.shown(m) {
		for _, s := range x.series {
			switch {
			case m.isOfMembers(s):
				members = append(members, s.Name)
			case x.id == bytesMetric:
				traffic = true
			case strings.HasPrefix(x.id, "machine."):
				machines = true
			default:
				speed = append(speed, s.Name)
			}
		}
	}
	return func(v *view.View) rows {
		out := seriesRows(v, members...)
		for i := range v.Speed {
			if slices.Contains(speed, v.Speed[i].Name) {
				out = append(out, pointRows(&v.Speed[i])[1:]...)
			}
		}
		for i := range v.Traffic {
			if traffic {
				out = append(out, pointRows(&v.Traffic[i])[1:]...)
			}
		}
		if machines {
			out = append(out, machineRows(v)[1:]...)
		}
		return out
	}
}
