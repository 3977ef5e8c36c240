package tui

import (
	"strings"
	"testing"

	"brood/optim"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
	"brood/tui/panel/knobs"
	"brood/tui/textfmt"
)

// rivalAlgorithm shares two knobs with the algorithm of sourcetest.
func rivalAlgorithm() *optim.Algorithm {
	return &optim.Algorithm{Name: "rival", Title: "Rival", Knobs: []optim.Knob{
		{Name: "gamma", Min: 1e-9, Max: 1e12, Default: 100}, {Name: "ell", Min: 1, Max: 10000, Default: 25,
			Integer: true},
		{Name: "eta", Max: 100, Default: 0.1}, {Name: "own", Max: 1}}}
}

func (d *desk) apply(rs ...event.Record) {
	d.Update(batchMsg{gen: d.Feed.Gen, batch: view.Batch{Records: rs}})
}

// TestSwapListsResets checks that a swap lists the knobs that it resets: those of the same name in the running
// algorithm, the user's before the preset's, and earlier ones of the next algorithm.
func TestSwapListsResets(t *testing.T) {
	both := func(o *panel.Options) { o.Algorithms = append(o.Algorithms, rivalAlgorithm()) }
	d := open(t, 120, 40, sourcetest.Run(6, 400), both) // ell is ann's, gamma the preset's
	d.press(":").write("swap rival").press("enter")
	if got, want := d.Toast.Text, "swap to rival from round 403, reset to defaults: ell, gamma"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	d.Toast = panel.Toast{}
	d.shows("swap to rival from round 403", "reset to defaults: ell, gamma") // in the rail, until the next receipt
	d.apply(event.Record{Plan: &event.Plan{Epoch: 2, At: 402, Old: d.Live.Members(), New: d.Live.Members(),
		OldAlg: "sample", Algorithm: "rival", Cause: "swap"}},
		event.Record{Commit: &event.Commit{Epoch: 2, To: 410, Rounds: 8, Progress: event.Progress{Rounds: 410}}})
	if a := d.rail.Answer; !a.Done ||
		a.Text != "in effect since round 403: swap to rival, reset to defaults: ell, gamma" {
		t.Errorf("in effect: %+v", a)
	}
	for _, k := range rivalAlgorithm().Knobs {
		if x := d.KnobValue(k); x != k.Default {
			t.Errorf("%s is shown as %g, not its default %g", k.Name, x, k.Default)
		}
	}

	d.apply(event.Record{Edit: &event.Edit{At: 410, Algorithm: "rival", Knob: "eta", Expr: "0.3", By: "ann"}},
		// the next algorithm has no such knob
		event.Record{Edit: &event.Edit{At: 410, Algorithm: "rival", Knob: "own", Expr: "0.3", By: "ann"}})
	d.press(":").write("swap sample").press("enter")
	if got := d.Toast.Text; !strings.HasSuffix(got, "reset to defaults: eta, ell, gamma") {
		t.Errorf("the way back says %q", got)
	}

	d = open(t, 120, 40, sourcetest.Run(6, 90), both)
	d.apply(event.Record{Edit: &event.Edit{Algorithm: "sample", Knob: "ell", Expr: "25", By: "ann"}},
		event.Record{Edit: &event.Edit{Algorithm: "sample", Knob: "gamma", Expr: "100", By: "ann"}})
	if d.press(":").write("swap rival").press("enter"); d.Toast.Text != "swap to rival accepted, from round 403" ||
		d.rail.Answer.Text != "" {
		t.Errorf("with all at their defaults it says %q and %q", d.Toast.Text, d.rail.Answer.Text)
	}
	d.say1 = func(c event.Command) (event.Receipt, error) {
		return event.Receipt{ID: c.ID, Reason: "rival pairs members"}, nil
	}
	d.apply(event.Record{Edit: &event.Edit{Algorithm: "sample", Knob: "ell", Expr: "7", By: "ann"}})
	if d.press(":").write("swap rival").press("enter"); d.Toast.Text != "swap to rival rejected: rival pairs members" ||
		d.rail.Answer.Text != "" {
		t.Errorf("a refused one says %q and %q", d.Toast.Text, d.rail.Answer.Text)
	}
}

// TestRailShowsTheLastChange checks that the rail shows the last change wherever it was made, and not a change that
// was superseded, also by another user.
func TestRailShowsTheLastChange(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 400), func(o *panel.Options) {
		o.Algorithms = append(o.Algorithms,
			rivalAlgorithm())
	})
	six := d.Live.Members()
	eight := collective.Place(collective.IDs(8), six.Workers())
	says := func(want string) {
		t.Helper()
		if a := d.rail.Answer; a.Text != want {
			t.Errorf("the rail says %q, want %q", a.Text, want)
		}
	}
	commit := func(to uint64) event.Record {
		return event.Record{Commit: &event.Commit{Epoch: 2, To: to, Rounds: 8, Progress: event.Progress{Rounds: to}}}
	}
	d.press(":").write("swap rival").press("enter")
	d.apply(event.Record{Plan: &event.Plan{Epoch: 2, At: 402, Old: six, New: six, OldAlg: "sample", Algorithm: "rival",
		Cause: "swap"}}, commit(410))
	says("in effect since round 403: swap to rival, reset to defaults: ell, gamma")
	d.say1 = func(c event.Command) (event.Receipt, error) {
		return event.Receipt{ID: c.ID, Accepted: true, Round: 410}, nil
	}
	d.press(":").write("members 8").press("enter")
	says("accepted, from round 411")
	d.apply(event.Record{Plan: &event.Plan{Epoch: 3, At: 410, Old: six, New: eight, OldAlg: "rival", Algorithm: "rival",
		Cause: event.CauseResize}}, commit(418))
	says("in effect since round 411: members = 8")
	if h := knobs.History(d.Host); len(h) == 0 || h[0].Knob != view.MembersKnob || h[0].Text != "6 → 8" ||
		h[0].Round != 411 {
		t.Errorf("the newest change is %+v", h)
	}
	d.apply(event.Record{Edit: &event.Edit{At: 420, Algorithm: "rival", Knob: "eta", Expr: "0.3", By: "bob"}},
		commit(420))
	says("in effect since round 411: members = 8") // bob's is not in effect yet
	d.apply(commit(428))
	says("")

	// The later edit of a round is the last change; a knob of the previous algorithm does not count.
	set := func(at uint64) {
		t.Helper()
		d.say1 = func(c event.Command) (event.Receipt, error) {
			return event.Receipt{ID: c.ID, Accepted: true, Round: at}, nil
		}
		d.press(":").write("set eta=0.05").press("enter")
		says("accepted, from round " + textfmt.Grouped(at+1))
	}
	edit := func(at uint64, by string, id uint64) event.Record {
		return event.Record{Edit: &event.Edit{At: at, Algorithm: "rival", Knob: "eta", Expr: "0.05", By: by, ID: id}}
	}
	swap := func(epoch uint32, at uint64, from, to string) event.Record {
		return event.Record{Plan: &event.Plan{Epoch: epoch, At: at, Old: eight, New: eight, OldAlg: from, Algorithm: to,
			Cause: "swap"}}
	}
	set(430)
	d.apply(edit(430, "bob", 7), edit(430, "ann", d.lastID), commit(436))
	says("in effect since round 431: eta = 0.05")
	set(438)
	d.apply(edit(438, "ann", d.lastID), edit(438, "bob", 8), commit(444))
	says("")
	set(446)
	d.apply(edit(446, "ann", d.lastID), commit(452))
	says("in effect since round 447: eta = 0.05")
	d.apply(swap(4, 452, "rival", "sample"), swap(5, 452, "sample", "rival"), commit(460))
	says("")
	set(462)
	d.apply(edit(462, "ann", d.lastID), swap(6, 462, "rival", "sample"), commit(468))
	says("")
}

// TestEachKnobShowsItsOwnEdit checks that the line below a knob is about that knob, also for the population size. A
// knob without a change shows its doc.
func TestEachKnobShowsItsOwnEdit(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
	d.say1 = func(c event.Command) (event.Receipt, error) {
		return event.Receipt{ID: c.ID, Accepted: true, Round: 410}, nil
	}
	six := d.Live.Members()
	below := func(knob, want, drawn string) {
		t.Helper()
		for _, k := range d.rail.Knobs(d.model.Host) {
			if k.Name != knob {
				continue
			}
			d.rail.Selected = k.Name
			if x := d.rail.Footnote(d.model.Host, k).Text; x != want {
				t.Errorf("below %s is %q, want %q", knob, x, want)
			}
		}
		d.shows(drawn)
	}
	d.press("k")
	d.apply(event.Record{Edit: &event.Edit{At: 402, Algorithm: "sample", Knob: "eta", Expr: "0.3", By: "bob"}},
		event.Record{Commit: &event.Commit{To: 410, Rounds: 8, Progress: event.Progress{Rounds: 410}}})
	d.press(":").write("members 1024").press("enter")
	below("eta", "accepted, from round 411: members = 1024", "accepted, from round 411:")
	d.apply(event.Record{Plan: &event.Plan{Epoch: 3, At: 410, Old: six,
		New: collective.Place(collective.IDs(1024), six.Workers()), OldAlg: "sample", Algorithm: "sample",
		Cause: event.CauseResize}},
		event.Record{Commit: &event.Commit{Epoch: 3, To: 418, Rounds: 8, Progress: event.Progress{Rounds: 418}}})
	below("members", "in effect since round 411: members = 1024", "in effect since round 411: members =")
	below("eta", "in effect since round 403: eta = 0.3", "in effect since round 403: eta = 0.3")
	d.shows("step size of the outer update") // its doc
	below("alpha", "", "weight of the past in the running")
	below("gamma", "", "divisor of the attraction") // its edit is the preset's
}
