package live

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/axis"
	"brood/tui/cell"
	"brood/tui/panel"
)

func (c *chartsPanel) layoutCommand() panel.Command {
	return panel.Command{
		Name:     "layout",
		Args:     "[save|drop] NAME",
		Optional: true,
		Title:    "open, save or drop a layout of charts; alone: list them",
		Complete: func(m *panel.Host, words []string) []string {
			switch {
			case len(words) <= 1:
				return append(m.Layouts(), panel.LayoutVerbs...)
			case slices.Contains(panel.LayoutVerbs, words[0]):
				return m.Layouts()
			}
			return nil
		},
		Values: func(m *panel.Host) (out []panel.Value) {
			for _, name := range m.Layouts() {
				out = append(out, panel.Value{Word: name, Title: name + ": open the layout of charts"})
			}
			return out
		},
		Do: c.layout,
	}
}

func (c *chartsPanel) layout(m *panel.Host, args []string) (tea.Cmd, error) {
	switch {
	case len(args) == 0:
		m.Say(cell.Plain, m.LayoutsText())
		return nil, nil
	case len(args) == 1 && !slices.Contains(panel.LayoutVerbs, args[0]):
		return c.apply(m, args[0])
	case len(args) != 2 || !slices.Contains(panel.LayoutVerbs, args[0]):
		return nil, errors.New("layout: write layout NAME, layout save NAME or layout drop NAME; a name is one word")
	case args[0] == "drop":
		return c.drop(m, args[1])
	}
	return c.save(m, args[1])
}

// apply replaces the charts and axes by those of a saved layout.
func (c *chartsPanel) apply(m *panel.Host, name string) (tea.Cmd, error) {
	l, ok := m.Opt.Settings.Layouts[name]
	if !ok {
		return nil, fmt.Errorf("there is no layout %q; %s", name, m.LayoutsText())
	}
	*c = chartsPanel{}
	m.Opt.Settings.Layout, m.LogAxis, m.Window = l.Layout, !l.Linear, panel.Window{Span: l.Last}
	m.Smoothing, m.Axis = max(0, slices.Index(panel.Smoothings(), l.Smoothing)), axis.Rounds
	if a, err := axis.Parse(l.Axis); err == nil {
		m.Axis = a
	}
	m.Say(cell.Plain, "layout "+name)
	return tea.Batch(m.Run("screen charts"), m.SaveSettings()), nil
}

func (c *chartsPanel) save(m *panel.Host, name string) (tea.Cmd, error) {
	all := maps.Clone(m.Opt.Settings.Layouts) // a job may be saving the old map
	if all == nil {
		all = map[string]panel.NamedLayout{}
	}
	_, again := all[name]
	switch {
	case !panel.ValidName(name) || slices.Contains(panel.LayoutVerbs, name):
		return nil, fmt.Errorf("layout: %q is not a valid name: use a word of at most %d bytes, but not save or drop",
			name, panel.MaxMetric)
	case !again && len(all) >= panel.MaxLayouts:
		return nil, fmt.Errorf("layout: there are %d layouts, the maximum: layout drop NAME removes one",
			panel.MaxLayouts)
	}
	all[name] = panel.NamedLayout{
		Layout:    m.Opt.Settings.Layout,
		Smoothing: m.SmoothingWeight(),
		Linear:    !m.LogAxis,
		Last:      m.Window.Span,
		Axis:      m.Axis.String(),
	}
	m.Opt.Settings.Layouts = all
	m.Say(cell.Plain, fmt.Sprintf("saved: :layout %s opens it again", name))
	return m.SaveSettings(), nil
}

func (c *chartsPanel) drop(m *panel.Host, name string) (tea.Cmd, error) {
	if _, ok := m.Opt.Settings.Layouts[name]; !ok {
		return nil, fmt.Errorf("there is no layout %q; %s", name, m.LayoutsText())
	}
	m.Opt.Settings.Layouts = maps.Clone(m.Opt.Settings.Layouts)
	delete(m.Opt.Settings.Layouts, name)
	m.Say(cell.Plain, "layout "+name+" removed")
	return m.SaveSettings(), nil
}

// chooseLayout opens a palette of the saved layouts.
func (c *chartsPanel) chooseLayout(m *panel.Host) tea.Cmd {
	var all []panel.PaletteEntry
	for _, name := range m.Layouts() {
		what := "all charts"
		if n := len(m.Opt.Settings.Layouts[name].Charts); n > 0 {
			what = fmt.Sprintf("%d charts", n)
		}
		all = append(all, panel.PaletteEntry{Title: name, Key: what, Do: func(m *panel.Host) tea.Cmd {
			cmd, _ := c.apply(m, name) // the name was just listed
			return cmd
		}})
	}
	if len(all) == 0 {
		m.Say(cell.Plain, m.LayoutsText())
		return nil
	}
	m.Popup = &panel.Palette{Title: "layouts", Choices: all}
	return nil
}
