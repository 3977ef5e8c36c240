package alerts

import (
	"cmp"
	"slices"

	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view"
	"brood/tui/panel"
)

// mergedLog caches the lines that pass the filter, with the inputs that they were computed from.
type mergedLog struct {
	entries []view.Entry
	all     int // number of lines without the filter
	key     mergeKey
	stale   bool // the lines have changed since
}

type mergeKey struct {
	gen    int         // generation of the feed
	first  *view.Entry // address of the first event: a view copies its events before it changes one
	events int
	ends   int64
	filter string
}

// SetLines stores the lines of the processes. A line of a file without timestamps keeps the time at which it was
// first seen, since the time of the file is that of its last line.
func (p *logView) SetLines(lines []session.Line) {
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
	if slices.Equal(lines, p.lines) {
		return
	}
	p.lines, p.hosted, p.merged.stale = lines, make([]view.Entry, len(lines)), true
	at := int64(0)
	for i, l := range lines { // a line without a time gets that of the line before it
		at = cmp.Or(l.At, at)
		p.hosted[i] = view.Entry{When: at, Level: event.LevelInfo, Kind: processKind, Text: l.Text}
	}
	slices.SortStableFunc(p.hosted, compareTime)
}

func compareTime(a, b view.Entry) int { return cmp.Compare(a.When, b.When) }

// Entries returns the events and process lines that pass the filter, in the order of time. The caller must not modify
// them. It skips lines later than the shown position of a recording. It recomputes them only when an event, an answer
// or the filter changes, and then keeps the scroll position at the same line.
func (p *logView) Entries(m *panel.Host) []view.Entry {
	events := m.Shown.Lane
	key := mergeKey{gen: m.Feed.Gen, events: len(events), ends: 1 << 62, filter: m.Filters.Text["log"]}
	if len(events) > 0 {
		key.first = &events[0]
	}
	if m.Replay != nil && !atEnd(m) {
		key.ends = m.Shown.Last
	}
	if key == p.merged.key && !p.merged.stale {
		return p.merged.entries
	}
	if !slices.IsSortedFunc(events, compareTime) { // the clock was set back during the run
		events = slices.Clone(events)
		slices.SortStableFunc(events, compareTime)
	}
	was, all := p.merged, 0
	out := make([]view.Entry, 0, len(events)+len(p.hosted))
	take := func(e view.Entry) {
		if all++; key.filter == "" || m.MatchesFilter("log", string(e.Level), e.Kind, e.Text) {
			out = append(out, e)
		}
	}
	i := 0
	for _, e := range p.hosted {
		if e.When > key.ends {
			break
		}
		for ; i < len(events) && events[i].When <= e.When; i++ {
			take(events[i])
		}
		take(e)
	}
	for _, e := range events[i:] {
		take(e)
	}
	p.merged = mergedLog{entries: out, all: all, key: key}
	if k := len(was.entries) - 1 - p.back; p.back > 0 && k >= 0 && key.gen == was.key.gen &&
		key.filter == was.key.filter {
		p.back = max(0, len(out)-1-indexOfEntry(out, was.entries[k]))
	}
	return out
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
