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

	"brood/runtime/axis"
	"brood/tui/cell"
)

// Settings are what a person chose of the workbench, for the next time.
type Settings struct {
	Layout                         // of the Charts screen now
	Layouts map[string]NamedLayout `json:"layouts,omitempty"`
	Broken  string                 `json:"-"` // why nothing of what was kept can be read; "" where it can
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
	s.Layout = read.Layout.sound()
	for _, name := range slices.Sorted(maps.Keys(read.Layouts)) {
		l := read.Layouts[name]
		if !named(name) || slices.Contains(layoutWords, name) || len(s.Layouts) >= maxLayouts {
			continue
		}
		if l.Layout = l.Layout.sound(); !slices.Contains(smoothings(), l.Smoothing) {
			l.Smoothing = 0
		}
		if _, err := axis.Parse(l.Axis); err != nil {
			l.Axis = ""
		}
		if s.Layouts == nil {
			s.Layouts = map[string]NamedLayout{}
		}
		s.Layouts[name] = l
	}
	return s
}

// named says that a name can be shown.
func named(name string) bool {
	return name != "" && len(name) <= maxMetric && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
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
