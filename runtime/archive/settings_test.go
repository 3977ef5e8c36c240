package archive

import (
	"slices"
	"testing"

	"brood/runtime/event"
)

// swap replaces the current algorithm.
func (m *maker) swap(from, to string) {
	m.plan(event.Workers, m.at, to, m.members)
	m.out[len(m.out)-1].Plan.OldAlg = from
}

// TestKnobsBeforeASwap: the knobs in effect before a swap are settings too, with the name of their algorithm.
func TestKnobsBeforeASwap(t *testing.T) {
	swapped := func(seed uint64, eta string) *maker {
		m := begin(seed, nil)
		m.edit(0, "eta", eta)
		m.rounds(10)
		m.edit(15, "eta", "0.9") // of a round that its algorithm did not reach
		m.swap("dp-sgd", "parle")
		m.put(event.Record{Edit: &event.Edit{At: 10, Algorithm: "parle", Knob: "eta", Expr: "0.3", By: "ann"}})
		m.rounds(10)
		return m
	}
	runs := []*Run{swapped(1, "0.2").run(t, "a"), swapped(2, "0.4").run(t, "b")}
	d := Differences(runs)
	if i := slices.IndexFunc(d, func(d Difference) bool { return d.Name == "dp-sgd eta" }); i < 0 ||
		!slices.Equal(d[i].Values, []string{"0.2", "0.4"}) {
		t.Errorf("differences %v", d)
	}
	if len(Groups(runs)) != 2 {
		t.Error("runs with different settings are one group")
	}
	if got := runs[0].Value("parle eta"); got != "0.3" {
		t.Errorf("eta of parle is %q", got)
	}
	if runs[0].Value("eta") != "" {
		t.Error("eta has no name of an algorithm")
	}

	again := swapped(1, "0.2")
	again.edit(25, "eta", "0.7") // before the swap, which resets it to its default
	again.swap("parle", "dp-sgd")
	again.rounds(10)
	again.edit(34, "eta", "0.05")
	again.rounds(10)
	plain := begin(1, nil)
	plain.rounds(4)
	first := plain.run(t, "p").Value("eta")
	if got, want := again.run(t, "c").Value("dp-sgd eta"), "0.2 → "+first+" @21 → 0.05 @35"; got != want {
		t.Errorf("eta is %q, want %q", got, want)
	}

	back := swapped(1, "0.2")
	back.plan(event.Saved, 5, "dp-sgd", 4)
	back.out[len(back.out)-1].Plan.OldAlg = "parle"
	back.out[len(back.out)-1].Plan.Timeline = []event.Edit{{
		At:        0,
		Algorithm: "dp-sgd",
		Knob:      "eta",
		Expr:      "0.2",
		By:        "ann",
	}}
	back.rounds(10)
	r := back.run(t, "d")
	if r.Value("eta") != "0.2" || r.Value("algorithm") != "dp-sgd" || r.Value("parle eta") != "" {
		t.Errorf("an undone swap is a setting: %v", r.Settings)
	}
}

// TestValuesAreCompared: different spellings of a number are the same setting; different numbers are different
// settings, however close.
func TestValuesAreCompared(t *testing.T) {
	var runs []*Run
	for _, expr := range []string{"0.10", ".1", "1e-1", "0.1", " 0.1 "} {
		m := begin(1, nil)
		m.edit(0, "eta", expr)
		m.rounds(4)
		runs = append(runs, m.run(t, expr))
	}
	if d := Differences(runs); len(d) > 0 {
		t.Errorf("differences %v", d)
	}
	if got := runs[0].Value("eta"); got != "0.1" {
		t.Errorf("eta is %q", got)
	}
	runs = nil
	for _, expr := range []string{"0.12345671", "0.12345672", "linear:0.1..0.01@4"} {
		m := begin(1, nil)
		m.edit(0, "eta", expr)
		m.rounds(4)
		r := m.run(t, expr)
		if r.Value("eta") != expr {
			t.Errorf("%s is %q", expr, r.Value("eta"))
		}
		runs = append(runs, r)
	}
	if len(Groups(runs)) != 3 {
		t.Error("close values count as equal")
	}
}

// TestSchedulesAreShownAsTyped: a schedule is shown as the user typed it and compared in the units of the log.
func TestSchedulesAreShownAsTyped(t *testing.T) {
	const typed, logged = "exp:1*(1-1/(2B))/round..0.1", "exp:1*0.999/round..0.1"
	var runs []*Run
	for _, c := range [][2]string{{logged, typed}, {logged, ""}, {"exp:1*0.99/round..0.1", typed}} {
		m := begin(1, nil)
		first := event.Edit{Algorithm: "dp-sgd", Knob: "eta", Expr: c[0], Typed: c[1]}
		half := first
		half.At, half.Obeys, half.Expr = 10, 1, half.Expr+",from0,x0.5"
		if c[1] != "" {
			half.Typed += ",from0,x0.5"
		}
		for _, e := range []*event.Edit{&first, &half} {
			m.put(event.Record{Edit: e})
			m.rounds(10)
		}
		runs = append(runs, m.run(t, c[0]))
	}
	if got, want := runs[0].Value("eta"), typed+" → "+typed+" x 0.5 @11"; got != want {
		t.Errorf("eta is %q, want %q", got, want)
	}
	if len(Groups(runs[:2])) != 1 || len(Differences(runs[:2])) != 0 {
		t.Errorf("another spelling is another setting: %v", Differences(runs[:2]))
	}
	if len(Groups(runs)) != 2 || len(Differences(runs)) != 1 {
		t.Errorf("one spelling hides two schedules: %v", Differences(runs))
	}
}
