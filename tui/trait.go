package tui

import (
	"cmp"
	"slices"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/view"
	"brood/tui/cell"
)

// kin are the series whose values are members: lines of descent, and no quantities.
var kin = []string{view.Parent, view.Founder, view.Partner}

// traits are the names of what was measured of each member, in the order of the first points.
func (m *model) traits() (names []string) {
	for i := range m.shown.Series {
		if s := &m.shown.Series[i]; len(s.Members) > 0 && !slices.Contains(kin, s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

// strip is the series of the members' panels: the one that a person chose, or else the members' losses, then their
// fitness, then what the algorithm measures first, and of these none that is not measured any more before one that is.
func (m *model) strip() (best *view.Series) {
	if s := m.shown.Find(m.trait); s != nil && len(s.Members) > 0 {
		return s
	}
	names := []string{m.mainSeries(), view.Fitness}
	if names[0] != "loss" {
		slices.Reverse(names)
	}
	for _, name := range names {
		if s := m.shown.Find(name); s != nil && len(s.Members) > 0 && (best == nil || m.shown.Dropped(best)) {
			best = s
		}
	}
	return best
}

// turnTrait goes on to the next quantity of the members' panels.
func (m *model) turnTrait() tea.Cmd {
	names := m.traits()
	s := m.strip()
	if len(names) < 2 || s == nil {
		m.say(cell.Warn, "nothing else is measured of each member")
		return nil
	}
	m.trait = names[(slices.Index(names, s.Name)+1)%len(names)]
	m.say(cell.Plain, "members are shown by "+m.trait)
	return nil
}

// inOrder are the members that have a value of s, at the cursor or now: by fitness the highest first, by anything else
// the lowest, and those that are not finite last.
func (m *model) inOrder(s *view.Series) []view.Value {
	l := m.ranked(s)
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

// placeBy moves the focus by so many places of the ranking.
func (m *model) placeBy(d int) {
	s := m.strip()
	if s == nil {
		return
	}
	l := m.inOrder(s)
	at := slices.IndexFunc(l, func(v view.Value) bool { return v.Member == m.member })
	if len(l) > 0 {
		m.member = l[min(max(at+d, 0), len(l)-1)].Member
	}
}
