package tui

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"brood/tui/cell"
)

// Settings are what a person chose of the workbench, for the next time.
type Settings struct {
	Charts []string        `json:"charts,omitempty"` // metrics of the Charts screen, in their order; none: all there are
	Near   map[string]uint `json:"near,omitempty"`   // of a metric, how often its y axis was narrowed

	Layouts map[string]Layout `json:"layouts,omitempty"` // by name

	Broken string `json:"-"` // why nothing of what was kept can be read; "" where it can
}

const (
	maxCharts = 48
	maxMetric = 64 // bytes of a name
	maxNear   = 6
)

// ParseSettings reads what was kept. What cannot be used of it is left out, and Broken says so of text that is none: a
// workbench begins whatever a file says.
func ParseSettings(text []byte) (s Settings) {
	var read Settings
	if len(text) == 0 {
		return s
	}
	if err := json.Unmarshal(text, &read); err != nil {
		s.Broken = err.Error()
		return s
	}
	s.Charts, s.Near = usable(read.Charts, read.Near)
	for _, name := range slices.Sorted(maps.Keys(read.Layouts)) {
		if layoutWord(name) != "" || len(s.Layouts) >= maxLayouts {
			continue
		}
		if s.Layouts == nil {
			s.Layouts = map[string]Layout{}
		}
		l := read.Layouts[name]
		l.Charts, l.Near = usable(l.Charts, l.Near)
		s.Layouts[name] = l
	}
	return s
}

// nameable says whether a file may call something so.
func nameable(name string) bool {
	return name != "" && len(name) <= maxMetric && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// usable is what can be used of charts and their axes.
func usable(charts []string, near map[string]uint) (cs []string, ns map[string]uint) {
	for _, name := range charts {
		if nameable(name) && len(cs) < maxCharts && !slices.Contains(cs, name) {
			cs = append(cs, name)
		}
	}
	var s Settings
	for _, name := range slices.Sorted(maps.Keys(near)) {
		if nameable(name) && len(s.Near) < maxCharts && near[name] > 0 {
			s.narrow(name, min(near[name], maxNear))
		}
	}
	return cs, s.Near
}

// narrow is how often the y axis of a metric is narrowed from now on.
func (s *Settings) narrow(metric string, n uint) {
	s.Near = maps.Clone(s.Near) // the one before may be on its way to a file
	if s.Near == nil {
		s.Near = map[string]uint{}
	}
	if s.Near[metric] = n; n == 0 {
		delete(s.Near, metric)
	}
}

// remember has the settings kept, beside Update.
func (m *model) remember() tea.Cmd {
	keep, s := m.opt.Keep, m.opt.Settings
	if keep == nil {
		return nil
	}
	before, done := m.kept, make(chan struct{})
	m.kept = done
	return m.job(func() tea.Msg {
		defer close(done)
		if before != nil {
			<-before // the last one holds
		}
		if err := keep(s); err != nil {
			return reply(func(m *model) tea.Cmd {
				m.say(cell.Warn, fmt.Sprintf("the charts are as you chose, but not kept for the next time: %v", err))
				return nil
			})
		}
		return nil
	})
}
