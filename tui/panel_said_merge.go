package tui

import (
	"cmp"
	"slices"

	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view"
)

// merged are the lines that pass the filter, as they were put together last, and of what.
type merged struct {
	entries []view.Entry
	all     int // lines, without the filter
	of      mergedOf
	stale   bool // other lines were told since
}

type mergedOf struct {
	gen    int         // of the run that is shown
	first  *view.Entry // of so many events: a view copies them before it changes one
	events int
	ends   int64
	filter string
}

// told takes what was said. A line whose file has no times keeps the one at which it was seen first: that of its file
// is of the last line.
func (p *sayings) told(lines []session.Line) {
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
	for i, l := range lines { // one without a time stands beside the one before it
		at = cmp.Or(l.At, at)
		p.hosted[i] = view.Entry{When: at, Level: event.LevelInfo, Kind: saidKind, Text: l.Text}
	}
	slices.SortStableFunc(p.hosted, sooner)
}

func sooner(a, b view.Entry) int { return cmp.Compare(a.When, b.When) }

// entries are the events and what was said that pass the filter, in the order of time; nobody may write to them. What
// was said later than what is shown, as in a recording that stands before its end, is left out. They are put together
// once for each event, answer and filter; who has scrolled back goes on reading the same line.
func (p *sayings) entries(m *model) []view.Entry {
	events := m.shown.Lane
	of := mergedOf{gen: m.feed.gen, events: len(events), ends: 1 << 62, filter: m.filters.text["log"]}
	if len(events) > 0 {
		of.first = &events[0]
	}
	if m.replay != nil && !m.whole() {
		of.ends = m.shown.Last
	}
	if of == p.merged.of && !p.merged.stale {
		return p.merged.entries
	}
	if !slices.IsSortedFunc(events, sooner) { // the clock was set back
		events = slices.Clone(events)
		slices.SortStableFunc(events, sooner)
	}
	was, all := p.merged, 0
	out := make([]view.Entry, 0, len(events)+len(p.hosted))
	take := func(e view.Entry) {
		if all++; of.filter == "" || m.passes("log", string(e.Level), e.Kind, e.Text) {
			out = append(out, e)
		}
	}
	i := 0
	for _, e := range p.hosted {
		if e.When > of.ends {
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
	p.merged = merged{entries: out, all: all, of: of}
	if k := len(was.entries) - 1 - p.back; p.back > 0 && k >= 0 && of.gen == was.of.gen && of.filter == was.of.filter {
		p.back = max(0, len(out)-1-whereIs(out, was.entries[k]))
	}
	return out
}

// whereIs is where an entry stands among others in the order of time, or the one that follows its time.
func whereIs(entries []view.Entry, e view.Entry) int {
	i, _ := slices.BinarySearchFunc(entries, e, sooner)
	for k := i; k < len(entries) && entries[k].When == e.When; k++ {
		if x := entries[k]; x.At == e.At && x.Kind == e.Kind && x.Text == e.Text {
			return k
		}
	}
	return min(i, max(0, len(entries)-1))
}
