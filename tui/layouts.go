package tui

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/axis"
	"brood/tui/cell"
)

const maxLayouts = 32

// Layout is what a person chose of the Charts screen.
type Layout struct {
	Charts []string        `json:"charts,omitempty"` // metrics in their order; none: all there are
	Near   map[string]uint `json:"near,omitempty"`   // of a metric, how often its y axis was narrowed
}

// NamedLayout is a layout that is kept under a name, with how curves are drawn.
type NamedLayout struct {
	Layout
	Smoothing float64 `json:"smoothing,omitempty"` // how much of the past curves keep, one of those that can be chosen
	Linear    bool    `json:"linear,omitempty"`    // the loss on a linear axis
	Last      uint64  `json:"last,omitempty"`      // rounds that are in view, up to the newest; 0: the whole run
	Axis      string  `json:"axis,omitempty"`      // that charts are drawn over; none: rounds
}

// sound is the layout without what cannot be used of it.
func (l Layout) sound() (out Layout) {
	for _, name := range l.Charts {
		if named(name) && len(out.Charts) < maxCharts && !slices.Contains(out.Charts, name) {
			out.Charts = append(out.Charts, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.Near)) {
		if named(name) && len(out.Near) < maxCharts && l.Near[name] > 0 {
			out.narrow(name, min(l.Near[name], maxNear))
		}
	}
	return out
}

// narrow is how often the y axis of a metric is narrowed from now on.
func (l *Layout) narrow(metric string, n uint) {
	l.Near = maps.Clone(l.Near) // the one before may be on its way to a file
	if l.Near == nil {
		l.Near = map[string]uint{}
	}
	if l.Near[metric] = n; n == 0 {
		delete(l.Near, metric)
	}
}

// layouts are the names that layouts are kept under.
func (m *model) layouts() []string { return slices.Sorted(maps.Keys(m.opt.Settings.Layouts)) }

// layoutWords are what may stand behind :layout in place of a name.
var layoutWords = []string{"save", "drop"}

func (c *charts) layoutCommand() command {
	return command{
		name:     "layout",
		args:     "[save|drop] NAME",
		optional: true,
		title:    "charts kept under a name, keep these, forget some; alone: which there are",
		complete: func(m *model, words []string) []string {
			switch {
			case len(words) <= 1:
				return append(m.layouts(), layoutWords...)
			case slices.Contains(layoutWords, words[0]):
				return m.layouts()
			}
			return nil
		},
		do: c.layout,
	}
}

func (c *charts) layout(m *model, args []string) (tea.Cmd, error) {
	switch {
	case len(args) == 0:
		m.say(cell.Plain, m.layoutsKept())
		return nil, nil
	case len(args) == 1 && !slices.Contains(layoutWords, args[0]):
		return c.goTo(m, args[0])
	case len(args) != 2 || !slices.Contains(layoutWords, args[0]):
		return nil, errors.New("write :layout NAME, :layout save NAME or :layout drop NAME; a name is one word")
	case args[0] == "drop":
		return c.drop(m, args[1])
	}
	return c.save(m, args[1])
}

// layoutsKept says which there are.
func (m *model) layoutsKept() string {
	if all := m.layouts(); len(all) > 0 {
		return "layouts: " + strings.Join(all, ", ")
	}
	return "no layout is kept: :layout save NAME keeps the charts as they are"
}

func (c *charts) goTo(m *model, name string) (tea.Cmd, error) {
	l, ok := m.opt.Settings.Layouts[name]
	if !ok {
		return nil, fmt.Errorf("there is no layout %q; %s", name, m.layoutsKept())
	}
	*c = charts{}
	m.opt.Settings.Layout, m.logAxis, m.window = l.Layout, !l.Linear, window{span: l.Last}
	m.smoothing, m.axis = max(0, slices.Index(smoothings(), l.Smoothing)), axis.Rounds
	if a, err := axis.Parse(l.Axis); err == nil {
		m.axis = a
	}
	m.say(cell.Plain, "layout "+name)
	return tea.Batch(m.run("screen charts"), m.remember()), nil
}

func (c *charts) save(m *model, name string) (tea.Cmd, error) {
	all := maps.Clone(m.opt.Settings.Layouts) // the one before may be on its way to a file
	if all == nil {
		all = map[string]NamedLayout{}
	}
	_, again := all[name]
	switch {
	case !named(name) || slices.Contains(layoutWords, name):
		return nil, fmt.Errorf("%q is no name of a layout: take a word of at most %d letters that is neither save nor drop",
			name, maxMetric)
	case !again && len(all) >= maxLayouts:
		return nil, fmt.Errorf("%d layouts are kept: :layout drop NAME forgets one", maxLayouts)
	}
	all[name] = NamedLayout{
		Layout:    m.opt.Settings.Layout,
		Smoothing: m.keep(),
		Linear:    !m.logAxis,
		Last:      m.window.span,
		Axis:      m.axis.String(),
	}
	m.opt.Settings.Layouts = all
	m.say(cell.Plain, fmt.Sprintf("kept: :layout %s comes back here", name))
	return m.remember(), nil
}

func (c *charts) drop(m *model, name string) (tea.Cmd, error) {
	if _, ok := m.opt.Settings.Layouts[name]; !ok {
		return nil, fmt.Errorf("there is no layout %q; %s", name, m.layoutsKept())
	}
	m.opt.Settings.Layouts = maps.Clone(m.opt.Settings.Layouts)
	delete(m.opt.Settings.Layouts, name)
	m.say(cell.Plain, "forgotten: "+name)
	return m.remember(), nil
}

// chooseLayout lists the layouts that are kept.
func (c *charts) chooseLayout(m *model) tea.Cmd {
	var all []choice
	for _, name := range m.layouts() {
		what := "all charts"
		if n := len(m.opt.Settings.Layouts[name].Charts); n > 0 {
			what = fmt.Sprintf("%d charts", n)
		}
		all = append(all, choice{name, what, func(m *model) tea.Cmd {
			cmd, _ := c.goTo(m, name) // it was there a moment ago
			return cmd
		}})
	}
	if len(all) == 0 {
		m.say(cell.Plain, m.layoutsKept())
		return nil
	}
	m.popup = &palette{title: "layouts", all: all}
	return nil
}
