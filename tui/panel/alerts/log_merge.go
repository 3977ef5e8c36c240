package alerts

import (
	"cmp"
	"slices"

	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view"
	"brood/tui/panel"
)

// setLines stores the lines of the processes. A line of a file without timestamps keeps the time at which it was
// first seen, since the time of the file is that of its last line.
func (p *logView) setLines(lines []session.Line) {
	lines = slices.Clone(lines)
	was := slices.DeleteFunc(slices.Clone(p.lines), func(l session.Line) bool { return !l.Late })
	for i, l := range lines {
		if !l.Late {
			continue
		}
		if k := slices.IndexFunc(was, func(w session.Line) bool { return w.Text == l.Text }); k >= 0 {
			lines[i].At, was = was[k].At, was[k+1:]
		}
	}
	p.lines, p.hosted = lines, make([]view.Entry, len(lines))
	at := int64(0)
	for i, l := range lines { // a line without a time gets that of the line before it
		at = cmp.Or(l.At, at)
		p.hosted[i] = view.Entry{When: at, Level: event.LevelInfo, Kind: processKind, Text: l.Text}
	}
	slices.SortStableFunc(p.hosted, compareTime)
}

func compareTime(a, b view.Entry) int { return cmp.Compare(a.When, b.When) }

// output returns the lines of the processes up to the shown position of a recording.
func (p *logView) output(m *panel.Host) []view.Entry {
	if m.Replay == nil || atEnd(m) {
		return p.hosted
	}
	n, _ := slices.BinarySearchFunc(p.hosted, view.Entry{When: m.Shown.Last + 1}, compareTime)
	return p.hosted[:n]
}

// entries returns the events and process lines that pass the filter, in the order of time.
func (p *logView) entries(m *panel.Host) []view.Entry {
	out := slices.Concat(m.Shown.Lane, p.output(m))
	slices.SortStableFunc(out, compareTime)
	if m.Filters.Text["log"] == "" {
		return out
	}
	return slices.DeleteFunc(out, func(e view.Entry) bool {
		return !m.MatchesFilter("log", string(e.Level), e.Kind, e.Text)
	})
}

// lowest returns the index of the lowest shown line.
func (p *logView) lowest(entries []view.Entry) int {
	if p.at == nil {
		return len(entries) - 1
	}
	return indexOfEntry(entries, *p.at)
}

// indexOfEntry returns the index of an entry among others in the order of time, or else of the first one after its
// time.
func indexOfEntry(entries []view.Entry, e view.Entry) int {
	i, _ := slices.BinarySearchFunc(entries, e, compareTime)
	for k := i; k < len(entries) && entries[k].When == e.When; k++ {
		if x := entries[k]; x.At == e.At && x.Kind == e.Kind && x.Text == e.Text {
			return k
		}
	}
	return min(i, max(0, len(entries)-1))
}
