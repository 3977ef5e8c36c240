package tui

import (
	"strings"
	"testing"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
)

// TestAlertsScreen checks that alerts are listed newest first with their state (open, acked, resolved), and that the
// screen names show the number of open alerts.
func TestAlertsScreen(t *testing.T) {
	d := open(t, 120, 30, sourcetest.Run(6, 400), nil) // without the events
	d.shows("8 Alerts!1", "x acknowledges")
	d.press("x")
	d.hides("Alerts!")
	raise := func(level event.Level, kind event.AlertKind, text string) {
		d.apply(event.Record{At: d.Shown.Last, Alert: &event.Alert{Round: 400, Level: level, Kind: kind, Text: text}})
		d.Toast = panel.Toast{}
	}
	raise(event.LevelWarning, event.AlertSlow, "rounds take long")
	raise(event.LevelWarning, event.AlertStall, "none is finished")
	raise(event.LevelInfo, event.AlertCordon, "worker 1 gets no members")
	d.press("8")
	d.shows("8 Alerts!2", "3 alerts, 2 unacknowledged", "alert rules", "a round takes 8 times")
	d.hides("worker 1 gets")
	states := func() string {
		var out []string
		for line := range strings.SplitSeq(d.screenText(), "\n") {
			line = string([]rune(line)[:min(70, len([]rune(line)))]) // the table
			for _, kind := range []string{"collapse  ", "slow  ", "stall  "} {
				if f := strings.Fields(line); strings.Contains(line, "!") && strings.Contains(line, kind) &&
					len(f) > 5 {
					i := len(strings.Fields(line[:strings.Index(line, kind)]))
					out = append(out, strings.TrimSpace(kind)+" "+f[i-1])
				}
			}
		}
		return strings.Join(out, ", ")
	}
	if got := states(); got != "stall open, slow open, collapse acked" {
		t.Errorf("the table says %q:\n%s", got, d.screenText())
	}
	raise(event.LevelInfo, event.AlertSlow, "a round takes 10ms again")
	if got := states(); got != "stall open, slow resolved, collapse acked" {
		t.Errorf("the table says %q", got)
	}
	d.shows("8 Alerts!1")
	d.press("down", "down")
	d.shows("replicas are collapsing")
	d.press("/", "s", "l", "o", "w", "enter")
	d.shows("rounds take long")
	d.hides("none is finished")
	all := d.panel(panel.Alerts).Export(d.model.Host)(d.Shown)
	if len(all) != 6 || all[2][4] != "slow" || all[2][5] != "true" || all[3][5] != "false" {
		t.Errorf("it exports %v", all)
	}
}

// TestAlertTextIsComplete checks that the whole text of the chosen alert is shown, also in small terminals.
func TestAlertTextIsComplete(t *testing.T) {
	for _, size := range [][2]int{{60, 12}, {60, 20}, {80, 24}} {
		d := open(t, size[0], size[1], sourcetest.Run(6, 400), nil)
		d.press("8")
		d.shows("replicas are collapsing")
	}
}

// TestMessageOfAnAlertEnds checks that the message of an alert is removed once its condition is over.
func TestMessageOfAnAlertEnds(t *testing.T) {
	d := open(t, 80, 24, sourcetest.Run(3, 40), nil)
	put := func(rs ...event.Record) {
		d.Update(batchMsg{gen: d.Feed.Gen, batch: view.Batch{Records: rs}})
	}
	alone := event.Record{Alert: &event.Alert{
		Level: event.LevelError,
		Kind:  event.AlertLostWorker,
		Text:  "no worker is left",
	}}
	put(alone)
	d.shows("no worker is left")
	put(event.Record{Plan: d.Live.Plan})
	if d.Toast.Text != "" {
		t.Errorf("with a worker it says %q", d.Toast.Text)
	}
	if put(alone); d.Toast.Text == "" {
		t.Error("the second time it says nothing")
	}
}
