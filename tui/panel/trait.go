package panel

import (
	"cmp"
	"slices"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/view"
	"brood/tui/cell"
)

// lineageSeries are the series whose values are member ids, not quantities.
var lineageSeries = []string{view.Parent, view.Founder, view.Partner}

// Traits returns the names of the series with a value for each member, in the order of their first points.
func (m *Host) Traits() (names []string) {
	for i := range m.Shown.Series {
		if s := &m.Shown.Series[i]; len(s.Members) > 0 && !slices.Contains(lineageSeries, s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

// TraitSeries returns the series of the member panels: the one that the user chose, else the main series or the
// fitness, whichever is still measured; nil if there is none.
func (m *Host) TraitSeries() (best *view.Series) {
	if s := m.Shown.Find(m.Trait); s != nil && len(s.Members) > 0 {
		return s
	}
	names := []string{m.MainSeries(), view.Fitness}
	if names[0] != "loss" {
		slices.Reverse(names)
	}
	for _, name := range names {
		if s := m.Shown.Find(name); s != nil && len(s.Members) > 0 && (best == nil || m.Shown.Dropped(best)) {
			best = s
		}
	}
	return best
}

// NextTrait selects the next series for the member panels.
func (m *Host) NextTrait() tea.Cmd {
	names := m.Traits()
	s := m.TraitSeries()
	if len(names) < 2 || s == nil {
		m.Say(cell.Warn, "nothing else is measured of each member")
		return nil
	}
	m.Trait = names[(slices.Index(names, s.Name)+1)%len(names)]
	m.Say(cell.Plain, "members are shown by "+m.SeriesName(m.Trait))
	return nil
}

// Ranking returns the members with a value of s at the cursor or now: the highest fitness first, or the lowest value of
// any other series. Values that are not finite are last.
func (m *Host) Ranking(s *view.Series) []view.Value {
	l := m.MemberValues(s)
	if s.Name == view.Fitness {
		return l
	}
	finite := len(l)
	for finite > 0 && l[finite-1].X-l[finite-1].X != 0 {
		finite--
	}
	slices.SortFunc(l[:finite], func(a, b view.Value) int {
		return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(a.Member, b.Member))
	})
	return l
}

// MoveInRanking moves the focused member by d places in the ranking.
func (m *Host) MoveInRanking(d int) {
	s := m.TraitSeries()
	if s == nil {
		return
	}
	l := m.Ranking(s)
	at := slices.IndexFunc(l, func(v view.Value) bool { return v.Member == m.Member })
	if len(l) > 0 {
		m.Member = l[min(max(at+d, 0), len(l)-1)].Member
	}
}
