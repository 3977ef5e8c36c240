package tui

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/tui/panel"
	"brood/tui/panel/fleet"
)

func TestLinkCursor(t *testing.T) {
	for _, c := range []struct {
		keys     string
		from, to int
	}{
		{"", event.Every, event.Every}, {"j", 1, event.Every}, {"l", event.Every, 1}, {"j l l", 1,
			2}, {"down right right up left", event.Every, 1},
		{"h k", event.Every, event.Every}, {"j j j j j j j j j", 5, event.Every},
	} {
		d, _ := openFleet(t, 120, 40, fleetOf(5), "tab "+c.keys)
		if from, to := d.fleet.OnLink(); from != c.from || to != c.to {
			t.Errorf("%q leads to %d → %d, want %d → %d", c.keys, from, to, c.from, c.to)
		}
	}
	d, c := openFleet(t, 120, 40, fleetOf(5), "tab j j j j j l l")
	c.now = fleetOf(4)
	d.nextSurvey()
	if from, to := d.fleet.OnLink(); from != event.Every || to != 2 {
		t.Errorf("w5 has gone: the cursor is on %d → %d", from, to)
	}
	d.paint()
	for _, p := range d.Placed {
		if p.Panel == panel.Links {
			v := d.fleet.Matrix(p.Area.Inset())
			at := v.Cell(3, 1)
			d.Update(tea.MouseClickMsg{X: at.X + 3, Y: at.Y})
		}
	}
	if from, to := d.fleet.OnLink(); from != 3 || to != 1 {
		t.Errorf("a click leads to %d → %d", from, to)
	}
}

func TestLinkMeasures(t *testing.T) {
	d, _ := openFleet(t, 120, 40, fleetOf(5), "tab")
	d.shows("links  bytes/s", "t round trip", "16.1M◆", "▓▓ 1.2M◆", "◆ slowed down")
	d.press("t")
	d.shows("links  round trip, ms", "t loss", "18.2", " 2.95◆")
	d.press("t")
	d.shows("links  lost packets, %", "██ 0.75◆")
	d.press("t")
	d.shows("links  bytes/s")
}

// TestLinkMatrixFollowsItsCursor checks that every cell of a large matrix can be reached.
func TestLinkMatrixFollowsItsCursor(t *testing.T) {
	for _, size := range [][2]int{{60, 12}, {120, 40}} {
		d, _ := openFleet(t, size[0], size[1], fleetOf(40), "")
		if d.press("tab"); d.Focus != panel.Links {
			t.Fatalf("at %v tab leads to %s", size, d.Focus)
		}
		for i := range 41 {
			d.shows(fleet.EndName(d.fleet.From)+" → "+fleet.EndName(d.fleet.To), "▸")
			s := d.screenText()
			body := s[strings.Index(s, "links"):]
			if id := fleet.EndName(d.fleet.To); !strings.Contains(body, " "+id+" ") {
				t.Errorf("at %v step %d: no column %s:\n%s", size, i, id, s)
			}
			d.press("j", "l")
		}
	}
}

func TestSlowDownALink(t *testing.T) {
	d, _ := openFleet(t, 120, 40, fleetOf(5), "tab j l l enter")
	d.shows("slow down w1 → w2", "only this direction", "full speed", "MB/s", "at most; empty: no limit")
	d.write("12.5").press("tab").write("20").press("down").write("2.5").press("tab").write("1")
	d.shows("at most, 100 Mbit/s", "12.5 MB/s, 20ms delay, up to 2.5ms of jitter, 1% lost")
	d.press("enter")
	want := event.Link{From: 1, To: 2, Rate: 12_500_000, Delay: 20 * time.Millisecond, Jitter: 2500 * time.Microsecond,
		Loss: 0.01}
	if len(d.sent) != 1 || d.sent[0].Link == nil || *d.sent[0].Link != want || d.Popup != nil {
		t.Fatalf("sent %+v, want %+v", d.sent, want)
	}
	d.shows("worker 1 to worker 2: 12.5 MB/s, 20ms delay")
	// The dialog starts with the present shape of a link, and removes it.
	d, _ = openFleet(t, 120, 40, fleetOf(5), "tab j l l l enter")
	d.shows("1.25", "at most, 10 Mbit/s")
	d.press("ctrl+u", "tab", "ctrl+u")
	d.shows("full speed")
	d.press("enter")
	if l := d.sent[0].Link; *l != (event.Link{From: 1, To: 3}) {
		t.Errorf("sent %+v", l)
	}
	d.press("u")
	if l := d.sent[1].Link; *l != (event.Link{From: 1, To: 3}) {
		t.Errorf("u sends %+v", l)
	}
	d.shows("worker 1 to worker 3: no limit: accepted")
}

func TestSlowDownARowOrColumn(t *testing.T) {
	// The dialog starts with the shape that all links share; else it is empty.
	f := fleetOf(3)
	for i, l := range f.Links {
		if l.From == 1 {
			f.Links[i].Shape = &event.Link{From: l.From, To: l.To, Delay: 70 * time.Millisecond}
		}
	}
	d, _ := openFleet(t, 120, 40, f, "tab j")
	d.shows("w1 → all  2 links", "◆ 70ms delay")
	d.press("enter")
	d.shows("70________ ms")
	d.press("esc", "k")
	d.shows("◆ some slowed")
	if d.press("enter"); d.Popup.(*fleet.Shaper).Fields[1].Text() != "" {
		t.Error("links that differ begin the form with one of them")
	}
	for _, c := range []struct {
		keys, shows string
		want        event.Link
	}{
		{"enter", "slow down all → all", event.Link{From: event.Every, To: event.Every, Rate: 3_000_000}},
		{"j enter", "slow down w1 → all", event.Link{From: 1, To: event.Every, Rate: 3_000_000}},
		{"l l enter", "slow down all → w2", event.Link{From: event.Every, To: 2, Rate: 3_000_000}},
	} {
		d, _ := openFleet(t, 120, 40, fleetOf(5), "tab "+c.keys)
		d.shows(c.shows, "each of them")
		if d.write("3").press("enter"); len(d.sent) != 1 || *d.sent[0].Link != c.want {
			t.Errorf("%q sends %+v", c.keys, d.sent)
		}
	}
}

func TestShaperRejectsInvalidValues(t *testing.T) {
	for field, bad := range map[int]string{0: "fast", 1: "-1", 2: "1e9", 3: "101"} {
		d, _ := openFleet(t, 120, 40, fleetOf(5), "tab j l l enter")
		for range field {
			d.press("tab")
		}
		d.write(bad).press("enter")
		if len(d.sent) > 0 || d.Popup == nil {
			t.Errorf("%q is sent: %+v", bad, d.sent)
		}
		d.shows(fleet.ShaperFields()[field].Name + `: "` + bad + `" is not between 0 and`)
		if d.press("esc"); d.Popup != nil || len(d.sent) > 0 {
			t.Error("esc does not leave the form")
		}
	}
	d, _ := openFleet(t, 120, 40, fleetOf(5), "tab j l enter")
	if d.Popup != nil || !strings.Contains(d.Toast.Text, "there is no link from w1 to w1") {
		t.Errorf("a worker's link to itself: %q", d.Toast.Text)
	}
	d, _ = openFleet(t, 120, 40, fleetOf(5), "tab j l l enter")
	d.Update(tea.PasteMsg{Content: "0.0000001"})
	if d.press("enter"); *d.sent[0].Link != (event.Link{From: 1, To: 2, Rate: 1}) {
		t.Errorf("the slowest rate is %+v", d.sent[0].Link)
	}
}
