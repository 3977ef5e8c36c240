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
}

const (
	maxCharts = 48
	maxMetric = 64 // bytes of a name
	maxNear   = 6
)

// ParseSettings reads what was kept. What cannot be used of it is left out: a workbench begins whatever a file says.
func ParseSettings(text []byte) (s Settings) {
	var read Settings
	if json.Unmarshal(text, &read) != nil {
		return s
	}
	fine := func(name string) bool {
		return name != "" && len(name) <= maxMetric && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
	}
	for _, name := range read.Charts {
		if fine(name) && len(s.Charts) < maxCharts && !slices.Contains(s.Charts, name) {
			s.Charts = append(s.Charts, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(read.Near)) {
		if fine(name) && len(s.Near) < maxCharts && read.Near[name] > 0 {
			s.narrow(name, min(read.Near[name], maxNear))
		}
	}
	return s
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
