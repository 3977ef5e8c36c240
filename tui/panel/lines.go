package panel

import (
	"fmt"
	"slices"

	"brood/models/engine"
	"brood/runtime/view"
	"brood/tui/cell"
)

// MaxLines is the largest number of members that a chart draws as a line each. More are a band and a median.
const MaxLines = 8

// LineMembers returns the members that a chart of s draws as a line each, the focused one last, so that it covers the
// others; nil if there are too many, or fewer than two.
func (m *Host) LineMembers(s *view.Series) (ids []engine.Member) {
	all := m.Shown.Members().Members
	if len(all) > MaxLines || s == nil {
		return nil
	}
	for _, id := range all {
		if _, ok := slices.BinarySearch(s.Members, id); ok && id != m.Member {
			ids = append(ids, id)
		}
	}
	if _, ok := slices.BinarySearch(s.Members, m.Member); ok {
		ids = append(ids, m.Member)
	}
	if len(ids) < 2 {
		return nil
	}
	return ids
}

// LineRole returns the role of a member's line: one for each of a few members, else one for the focused member and one
// for the others.
func (m *Host) LineRole(s *view.Series, id engine.Member) cell.Role {
	switch {
	case m.LineMembers(s) != nil:
		return cell.Replica(int(id))
	case id == m.Member:
		return cell.Member
	}
	return cell.Median
}

// LineName returns the character that a chart writes on a member's line: the digit of its id, or a letter from 10 on.
func LineName(id engine.Member) rune {
	if id < 10 {
		return '0' + rune(id)
	}
	return 'a' + rune((id-10)%26)
}

// lineGlyph returns the name of a member's line in a legend. The focused member has a marker.
func (m *Host) lineGlyph(id engine.Member) string {
	glyph := fmt.Sprintf("m%d", id)
	if id >= 10 {
		glyph = string(LineName(id)) + " " + glyph
	}
	if id == m.Member {
		glyph = "▸" + glyph
	}
	return glyph
}

// LineEntries returns the legend of the lines of members, by id.
func (m *Host) LineEntries(s *view.Series, ids []engine.Member) (out []Entry) {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	for _, id := range ids {
		if x, ok := m.ShownValue(s, id); ok {
			out = append(out, m.ValueEntry(s, m.lineGlyph(id), "", x, cell.Replica(int(id))))
		}
	}
	return out
}
