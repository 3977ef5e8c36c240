package tui

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
)

// settingsOf formats the sent settings: eta=0.2 members=8.
func settingsOf(all []event.Command) (out []string) {
	for _, c := range all {
		out = append(out, strings.ReplaceAll(panel.SettingsText(c), " = ", "="))
	}
	return out
}

// follow appends the records that the run would write for a command.
func (d *desk) follow(c event.Command) {
	var rs []event.Record
	for _, s := range c.Set {
		rs = append(rs, event.Record{At: 2e18, Edit: &event.Edit{At: 402, Algorithm: "sample", Knob: s.Knob,
			Expr: s.Expr, By: c.By}})
	}
	d.Update(batchMsg{gen: d.Feed.Gen, batch: view.Batch{Records: rs}})
}

func TestUndoAndRedo(t *testing.T) {
	for _, c := range []struct {
		does string // words: commands and keys
		want []string
	}{
		{"eta=0.2 z", []string{"eta=0.2", "eta=0.1"}},
		{"eta=0.2 z Z", []string{"eta=0.2", "eta=0.1", "eta=0.2"}},
		{"eta=0.2 eta=0.3 z z", []string{"eta=0.2", "eta=0.3", "eta=0.2", "eta=0.1"}},
		{"eta=0.2 ell=50 z Z z z", []string{"eta=0.2", "ell=50", "ell=10", "ell=50", "ell=10", "eta=0.1"}},
		{"eta=0.2 z eta=0.5 Z", []string{"eta=0.2", "eta=0.1", "eta=0.5"}},
		{"eta=0.2 z z", []string{"eta=0.2", "eta=0.1"}},
		{"gamma=7 z", []string{"gamma=7", "gamma=exp:100*0.999/round,from0"}},
		{"gamma=*0.8 z Z", []string{"gamma x 0.8", "gamma / 0.8", "gamma x 0.8"}},
		{"members=9 z", []string{"members=9", "members=6"}},
		{"alpha=0.5 z", []string{"alpha=0.5", "alpha=0.75"}},
		{"variant=paper z", []string{"variant=paper", "variant=arxiv"}},
		{"z Z", nil},
	} {
		d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
		for _, w := range strings.Fields(c.does) {
			n := len(d.sent)
			if knob, expr, ok := strings.Cut(w, "="); ok {
				d.press(":").write("set " + knob + " " + expr).press("enter")
			} else {
				d.press(w)
			}
			for _, x := range d.sent[n:] {
				d.follow(x)
			}
		}
		if got := settingsOf(d.sent); !slices.Equal(got, c.want) {
			t.Errorf("%q sends %q, want %q", c.does, got, c.want)
		}
	}
}

// TestUndoOfATransaction checks that a transaction of the rail is undone as one.
func TestUndoOfATransaction(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
	d.press("k", "l", "j", "l", "j", "l", "a")
	d.follow(d.sent[0])
	d.press("z")
	if got := settingsOf(d.sent); !slices.Equal(got, []string{"members=7, eta=0.125, ell=13",
		"members=6, eta=0.1, ell=10"}) {
		t.Fatalf("sent %q", got)
	}
	d.shows("undo: members = 6, eta = 0.1, ell = 10 accepted, from round 403")
}

func TestUndoRejections(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
	for key, want := range map[string]string{"z": "nothing to undo", "Z": "nothing to redo"} {
		if d.press(key); !strings.Contains(d.Toast.Text, want) {
			t.Errorf("%s says %q", key, d.Toast.Text)
		}
	}
	d.say1 = func(c event.Command) (event.Receipt, error) {
		return event.Receipt{ID: c.ID, Reason: "no"}, nil
	}
	d.press(":").write("set eta 0.2").press("enter", "z")
	if len(d.sent) != 1 || !strings.Contains(d.Toast.Text, "nothing to undo") {
		t.Errorf("a refused change can be undone: %v, %q", settingsOf(d.sent), d.Toast.Text)
	}
	d.say1 = nil
	d.press(":").write("set eta 0.2").press("enter")
	d.say1 = func(event.Command) (event.Receipt, error) { return event.Receipt{}, errors.New("the pipe is broken") }
	d.press("z")
	d.shows("undo: eta = 0.1: the pipe is broken")
	d.say1 = nil
	if d.press("z"); d.sent[len(d.sent)-1].Set[0].Expr != "0.1" {
		t.Errorf("an undo that was not sent cannot be tried again: %v", settingsOf(d.sent))
	}
	// A change without a receipt.
	d.press(":").write("set eta 0.5").Update(keyMsg("enter"))
	d.Update(keyMsg("z"))
	if !strings.Contains(d.Toast.Text, "still pending") {
		t.Errorf("before the answer z says %q", d.Toast.Text)
	}
	look := open(t, 120, 40, sourcetest.Run(6, 400), func(o *panel.Options) { o.Commander = nil })
	if look.press("z"); !strings.Contains(look.Toast.Text, "read-only") {
		t.Errorf("a read-only viewer sees %q", look.Toast.Text)
	}
}

// TestUndoStopsAtASwap checks that changes before a swap cannot be undone, neither in the next algorithm nor after a
// swap back.
func TestUndoStopsAtASwap(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 400), func(o *panel.Options) {
		o.Algorithms = append(o.Algorithms,
			rivalAlgorithm())
	})
	d.press(":").write("set eta 0.2").press("enter")
	d.follow(d.sent[0])
	d.press("k", "j", "j", "l")
	swap := func(epoch uint32, from, to string) {
		d.apply(event.Record{Plan: &event.Plan{Epoch: epoch, At: 402, Old: d.Live.Members(), New: d.Live.Members(),
			OldAlg: from, Algorithm: to, Cause: "swap"}})
	}
	swap(2, "sample", "rival")
	if len(d.rail.Staged) != 0 || !strings.Contains(d.Toast.Text,
		"swap to rival: discarded ell = 13, staged for sample") {
		t.Errorf("what was staged for the other algorithm: %v, %q", d.rail.Staged, d.Toast.Text)
	}
	const why = "eta = 0.2 cannot be undone: it changed sample, and the algorithm was swapped since"
	if d.press("z"); len(d.sent) != 1 || d.Toast.Text != why {
		t.Errorf("after a swap z sends %q and says %q", settingsOf(d.sent[1:]), d.Toast.Text)
	}
	swap(3, "rival", "sample")
	if d.press("z"); len(d.sent) != 1 || !strings.HasSuffix(d.Toast.Text, "the algorithm was swapped since") {
		t.Errorf("after a swap back z sends %q and says %q", settingsOf(d.sent[1:]), d.Toast.Text)
	}
	d.press(":").write("set eta 0.3").press("enter")
	if d.press("z"); len(d.sent) != 3 || d.sent[1].Of != "sample" || d.sent[2].Of != "sample" {
		t.Errorf("what came after the swap: %+v", d.sent[1:])
	}
}

// TestUndoOfAnEndedSchedule checks that undo replaces an ended schedule by its last value, since the run would
// reject it.
func TestUndoOfAnEndedSchedule(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
	d.apply(event.Record{Edit: &event.Edit{At: 100, Algorithm: "sample", Knob: "eta", Expr: "linear:0.5..0.25@200"}})
	d.press(":").write("set eta 0.2").press("enter")
	d.follow(d.sent[0])
	if d.press("z"); !slices.Equal(settingsOf(d.sent), []string{"eta=0.2", "eta=0.25"}) {
		t.Errorf("sent %q", settingsOf(d.sent))
	}
}
