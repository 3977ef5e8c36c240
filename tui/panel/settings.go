package panel

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"brood/runtime/axis"
)

// Settings holds what the user configured in the workbench. It is saved for the next start.
type Settings struct {
	Layout                         // current layout of the Charts screen
	Layouts map[string]NamedLayout `json:"layouts,omitempty"`
	Runs    RunList                `json:"runs,omitzero"`
	Broken  string                 `json:"-"` // why the saved settings cannot be read; "": they can
}

const (
	MaxLayouts = 32
	MaxCharts  = 48
	MaxMetric  = 64 // bytes of a name
	MaxNear    = 6
)

// ParseSettings parses saved settings. It drops invalid parts. If text is not valid JSON, it only sets Broken, so that
// the workbench starts in any case.
func ParseSettings(text []byte) (s Settings) {
	var read Settings
	if len(text) == 0 {
		return s
	}
	if err := json.Unmarshal(text, &read); err != nil {
		s.Broken = err.Error()
		return s
	}
	s.Layout, s.Runs = read.Layout.valid(), read.Runs.valid()
	for _, name := range slices.Sorted(maps.Keys(read.Layouts)) {
		l := read.Layouts[name]
		if !ValidName(name) || slices.Contains(LayoutVerbs, name) || len(s.Layouts) >= MaxLayouts {
			continue
		}
		if l.Layout = l.Layout.valid(); !slices.Contains(Smoothings(), l.Smoothing) {
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

// RunList holds how the list of runs is shown. Columns have the names of [archive.Columns].
type RunList struct {
	Columns []string `json:"columns,omitempty"` // in their order; empty: the usual ones
	Sort    string   `json:"sort,omitempty"`    // column; "": running runs, then the last written
	Reverse bool     `json:"reverse,omitempty"`
}

// valid returns the list without its invalid parts.
func (l RunList) valid() (out RunList) {
	for _, name := range l.Columns {
		if ValidName(name) && len(out.Columns) < MaxCharts && !slices.Contains(out.Columns, name) {
			out.Columns = append(out.Columns, name)
		}
	}
	if ValidName(l.Sort) {
		out.Sort, out.Reverse = l.Sort, l.Reverse
	}
	return out
}

// ValidName reports whether a name is short enough and contains only printable text.
func ValidName(name string) bool {
	return name != "" && len(name) <= MaxMetric && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, unicode.IsControl)
}

// Keeper returns the library's Keeper, which can change runs; nil if the library has none.
func (m *Host) Keeper() Keeper {
	k, _ := m.Opt.Library.(Keeper)
	return k
}

// Layout holds the configuration of the Charts screen.
type Layout struct {
	Charts []string        `json:"charts,omitempty"` // metrics in their order; empty: all
	Near   map[string]uint `json:"near,omitempty"`   // how often the y axis of a metric was narrowed
}

// NamedLayout is a saved layout with the settings of the curves.
type NamedLayout struct {
	Layout
	Smoothing float64 `json:"smoothing,omitempty"` // weight of the past, one of Smoothings
	Linear    bool    `json:"linear,omitempty"`    // linear y axis of losses
	Last      uint64  `json:"last,omitempty"`      // shown rounds, up to the newest; 0: all
	Axis      string  `json:"axis,omitempty"`      // x axis; "": rounds
}

// valid returns the layout without its invalid parts.
func (l Layout) valid() (out Layout) {
	for _, name := range l.Charts {
		if ValidName(name) && len(out.Charts) < MaxCharts && !slices.Contains(out.Charts, name) {
			out.Charts = append(out.Charts, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.Near)) {
		if ValidName(name) && len(out.Near) < MaxCharts && l.Near[name] > 0 {
			out.Narrow(name, min(l.Near[name], MaxNear))
		}
	}
	return out
}

// Narrow sets the number of times that the y axis of a metric is narrowed.
func (l *Layout) Narrow(metric string, n uint) {
	l.Near = maps.Clone(l.Near) // a job may be saving the old map
	if l.Near == nil {
		l.Near = map[string]uint{}
	}
	if l.Near[metric] = n; n == 0 {
		delete(l.Near, metric)
	}
}

// Layouts returns the names of the saved layouts, sorted.
func (m *Host) Layouts() []string { return slices.Sorted(maps.Keys(m.Opt.Settings.Layouts)) }

// LayoutsText lists the saved layouts for a message.
func (m *Host) LayoutsText() string {
	if all := m.Layouts(); len(all) > 0 {
		return "layouts: " + strings.Join(all, ", ")
	}
	return "no layout is saved: :layout save NAME saves the present charts"
}

// LayoutVerbs are the subcommands of :layout, which are no valid names.
var LayoutVerbs = []string{"save", "drop"}
