package tui

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
)

// sets writes what was sent: eta=0.2 members=8.
func sets(all []event.Command) (out []string) {
	for _, c := range all {
		out = append(out, strings.ReplaceAll(words(c), " = ", "="))
	}
	return out
}

// follow puts into the log what the run would say of a command.
func (d *desk) follow(c event.Command) {
	var rs []event.Record
	for _, s := range c.Set {
		rs = append(rs, event.Record{At: 2e18, Edit: &event.Edit{At: 402, Algorithm: "sample", Knob: s.Knob, Expr: s.Expr, By: c.By}})
	}
	d.Update(batchMsg{gen: d.feed.gen, batch: view.Batch{Records: rs}})
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
		{"gamma=7 z", []string{"gamma=7", "gamma=exp:100*0.999/round"}},
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
		if got := sets(d.sent); !slices.Equal(got, c.want) {
			t.Errorf("%q sends %q, want %q", c.does, got, c.want)
		}
	}
}

// What the rail applies as one transaction is undone as one.
func TestUndoTakesTheTransactionBack(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
	d.press("k", "l", "j", "l", "j", "l", "a")
	d.follow(d.sent[0])
	d.press("z")
	if got := sets(d.sent); !slices.Equal(got, []string{"members=7, eta=0.125, ell=13", "members=6, eta=0.1, ell=10"}) {
		t.Fatalf("sent %q", got)
	}
	d.shows("undo: members = 6, eta = 0.1, ell = 10 accepted, effective from round 403")
}

func TestUndoSaysWhyNot(t *testing.T) {
	d := open(t, 120, 40, sourcetest.Run(6, 400), nil)
	for key, want := range map[string]string{"z": "nothing to undo", "Z": "nothing to redo"} {
		if d.press(key); !strings.Contains(d.toast.text, want) {
			t.Errorf("%s says %q", key, d.toast.text)
		}
	}
	d.say1 = func(c event.Command) (event.Receipt, error) {
		return event.Receipt{ID: c.ID, Reason: "no"}, nil
	}
	d.press(":").write("set eta 0.2").press("enter", "z")
	if len(d.sent) != 1 || !strings.Contains(d.toast.text, "nothing to undo") {
		t.Errorf("a refused change can be undone: %v, %q", sets(d.sent), d.toast.text)
	}
	d.say1 = nil
	d.press(":").write("set eta 0.2").press("enter")
	d.say1 = func(event.Command) (event.Receipt, error) { return event.Receipt{}, errors.New("the pipe is broken") }
	d.press("z")
	d.shows("undo: eta = 0.1: the pipe is broken")
	d.say1 = nil
	if d.press("z"); d.sent[len(d.sent)-1].Set[0].Expr != "0.1" {
		t.Errorf("an undo that was not sent cannot be tried again: %v", sets(d.sent))
	}
	// One that is not answered yet.
	d.press(":").write("set eta 0.5").Update(keyMsg("enter"))
	d.Update(keyMsg("z"))
	if !strings.Contains(d.toast.text, "not answered yet") {
		t.Errorf("before the answer z says %q", d.toast.text)
	}
	look := open(t, 120, 40, sourcetest.Run(6, 400), func(o *Options) { o.Commander = nil })
	if look.press("z"); !strings.Contains(look.toast.text, "looking only") {
		t.Errorf("who looks only is told %q", look.toast.text)
	}
}
