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

// Settings are what a person chose of the workbench, for the next time.
type Settings struct {
	Layout                         // of the Charts screen now
	Layouts map[string]NamedLayout `json:"layouts,omitempty"`
	Broken  string                 `json:"-"` // why nothing of what was kept can be read; "" where it can
}

const (
	MaxLayouts = 32
	MaxCharts  = 48
	MaxMetric  = 64 // bytes of a name
	MaxNear    = 6
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
	s.Layout = read.Layout.valid()
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

// ValidName says that a name can be shown.
func ValidName(name string) bool {
	return name != "" && len(name) <= MaxMetric && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// Keeper returns the library's Keeper, which can change runs; nil if the library has none.
func (m *Host) Keeper() Keeper {
	k, _ := m.Opt.Library.(Keeper)
	return k
}

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

// valid is the layout without what cannot be used of it.
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

// Narrow is how often the y axis of a metric is narrowed from now on.
func (l *Layout) Narrow(metric string, n uint) {
	l.Near = maps.Clone(l.Near) // the one before may be on its way to a file
	if l.Near == nil {
		l.Near = map[string]uint{}
	}
	if l.Near[metric] = n; n == 0 {
		delete(l.Near, metric)
	}
}

// Layouts are the names that layouts are kept under.
func (m *Host) Layouts() []string { return slices.Sorted(maps.Keys(m.Opt.Settings.Layouts)) }

// LayoutsText says which there are.
func (m *Host) LayoutsText() string {
	if all := m.Layouts(); len(all) > 0 {
		return "layouts: " + strings.Join(all, ", ")
	}
	return "no layout is kept: :layout save NAME keeps the charts as they are"
}

// LayoutVerbs are what may stand behind :layout in place of a name.
var LayoutVerbs = []string{"save", "drop"}
