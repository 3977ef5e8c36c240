package tui

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"brood/tui/cell"
)

// Layout is a choice of what the Charts screen shows, under a name.
type Layout struct {
	Charts []string        `json:"charts,omitempty"` // as in [Settings]
	Near   map[string]uint `json:"near,omitempty"`
	Linear bool            `json:"linear,omitempty"` // losses on a linear axis
	Last   uint64          `json:"last,omitempty"`   // rounds that are in view, up to the newest; 0: the whole run
}

const (
	maxLayouts    = 32
	maxLayoutName = 32 // bytes
)

// layoutWord says why a layout cannot be called so, "" where it can.
func layoutWord(name string) string {
	switch {
	case name == "save":
		return "a layout cannot be called save, which saves one: write layout save NAME"
	case len(name) > maxLayoutName:
		return fmt.Sprintf("the name of a layout has %d letters at most", maxLayoutName)
	case !nameable(name) || strings.ContainsFunc(name, unicode.IsSpace):
		return "the name of a layout is one word of letters that can be printed"
	}
	return ""
}

// layoutCommand saves a layout, shows one, or tells which there are.
func (c *charts) layoutCommand() command {
	names := func(m *model) []string { return slices.Sorted(maps.Keys(m.opt.Settings.Layouts)) }
	return command{
		name: "layout", args: "[save] NAME", optional: true, title: "show or save a layout of Charts; alone: which there are",
		complete: func(m *model, words []string) []string {
			if len(words) == 2 {
				return names(m) // save over one
			}
			return append(names(m), "save")
		},
		do: func(m *model, args []string) (tea.Cmd, error) {
			all := names(m)
			list := "layouts: " + strings.Join(all, ", ")
			if len(all) == 0 {
				list = "there is no layout yet: layout save NAME keeps the charts as they are"
			}
			switch {
			case len(args) == 0:
				m.say(cell.Plain, list)
				return nil, nil
			case args[0] == "save" && len(args) == 2:
				return c.save(m, args[1])
			case len(args) != 1 || args[0] == "save":
				return nil, errors.New("layout: write layout NAME, or layout save NAME with a name of one word")
			}
			l, ok := m.opt.Settings.Layouts[args[0]]
			if !ok {
				return nil, fmt.Errorf("layout: there is no %q; %s", args[0], list)
			}
			return tea.Batch(m.run("screen charts"), c.lay(m, l)), nil
		},
	}
}

// save keeps the charts as they are under a name.
func (c *charts) save(m *model, name string) (tea.Cmd, error) {
	s := &m.opt.Settings
	if why := layoutWord(name); why != "" {
		return nil, errors.New("layout: " + why)
	}
	if _, over := s.Layouts[name]; !over && len(s.Layouts) >= maxLayouts {
		return nil, fmt.Errorf("layout: there are %d already: save over one of them", maxLayouts)
	}
	all := maps.Clone(s.Layouts) // the one before may be on its way to a file
	if all == nil {
		all = map[string]Layout{}
	}
	all[name] = Layout{Charts: slices.Clone(s.Charts), Near: maps.Clone(s.Near), Linear: !m.logAxis, Last: m.window.span}
	s.Layouts = all
	m.say(cell.Good, fmt.Sprintf("layout %s shows this again", name))
	return m.remember(), nil
}

// lay makes the charts those of a layout.
func (c *charts) lay(m *model, l Layout) tea.Cmd {
	*c = charts{}
	m.opt.Settings.Near = maps.Clone(l.Near)
	m.logAxis, m.window = !l.Linear, window{span: l.Last}
	return c.settle(m, slices.Clone(l.Charts))
}
