package tui

import (
	"slices"
	"strings"
	"testing"
	"time"

	"brood/runtime/event"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
)

// TestForkEventsNameTheParent: in a fork the effect of a change is followed by what the parent did without it, as far
// as its log reaches, and the changes with which the fork began have an effect too.
func TestForkEventsNameTheParent(t *testing.T) {
	s := studyLibrary()
	edit := func(at uint64) event.Record {
		return event.Record{Edit: &event.Edit{At: at, Algorithm: "sample", Knob: "eta", Expr: "0.05", By: "ann", ID: 7}}
	}
	rs := s.records["/s/fork"]
	first := slices.IndexFunc(rs, func(r event.Record) bool { return r.Commit != nil && r.Commit.To == 104 })
	second := slices.IndexFunc(rs, func(r event.Record) bool { return r.Commit != nil && r.Commit.To == 160 })
	fork := slices.Concat(rs[:first], []event.Record{edit(100)}, rs[first:second], []event.Record{edit(160)}, rs[second:],
		[]event.Record{{State: &event.State{Phase: event.Stopped, Round: 200}}})
	s.records["/s/seed-1"] = recordsUntil(s.records["/s/seed-1"], 170)
	d := openLibrary(t, 200, 50, s, "")
	d.deliver(panel.OpenedMsg{Opened: panel.Opened{Session: "/s/fork", Source: sourcetest.NewMemory(fork...),
		Commander: d}})
	d.shows("at round 161: centre loss")
	d.hides("without it", "eta 0.05 at round 101")
	d.now = d.now.Add(time.Second)
	d.Update(tickMsg(d.now))
	d.settle()
	text := d.screenText()
	line := func(has string) string {
		for l := range strings.Lines(text) {
			if strings.Contains(l, has) {
				return l
			}
		}
		t.Errorf("no line has %q:\n%s", has, text)
		return ""
	}
	if l := line("eta 0.05 at round 101: centre loss"); !strings.Contains(l, "in 50 rounds, without it -") {
		t.Errorf("the start of the fork: %s", l)
	}
	if l := line("at round 161: centre loss"); strings.Contains(l, "without it") {
		t.Errorf("the parent ended at round 170: %s", l)
	}
}
