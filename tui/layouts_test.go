package tui

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"brood/runtime/view/sourcetest"
)

// TestLayouts: what the Charts screen shows is kept under a name, and shown again by the next workbench: charts, their
// order, their axes and the rounds in view.
func TestLayouts(t *testing.T) {
	rs := sourcetest.Run(6, 400)
	d, k := charting(t, 200, 50, rs, Settings{})
	do := func(d *desk, text string) string {
		d.toast.text = ""
		if cmd := d.run(text); cmd != nil {
			d.deliver(cmd())
		}
		return d.toast.text
	}
	if got := do(d, "layout"); !strings.Contains(got, "there is no layout yet") {
		t.Errorf("without a layout: %q", got)
	}
	do(d, "chart loss")
	d.opt.Settings.Charts = []string{"spread", "loss"}
	d.opt.Settings.narrow("loss", 2)
	d.press("o", "+")
	span := d.window.span
	if got := do(d, "layout save mine"); !strings.Contains(got, "mine") || span == 0 {
		t.Fatalf("saved: %q, with %d rounds in view", got, span)
	}
	text, err := json.Marshal(k.kept[len(k.kept)-1])
	if err != nil {
		t.Fatal(err)
	}
	first := k.kept[len(k.kept)-1]
	if do(d, "layout save second"); len(first.Layouts) != 1 || len(d.opt.Settings.Layouts) != 2 {
		t.Errorf("saving another changes what was on its way to a file: %v", first.Layouts)
	}
	d.press("D", "0", "o")
	if l := d.opt.Settings.Layouts["mine"]; !reflect.DeepEqual(l, Layout{[]string{"spread", "loss"}, map[string]uint{"loss": 2}, true, span}) {
		t.Errorf("after other charts were chosen the layout is %+v", l)
	}
	next, _ := charting(t, 200, 50, rs, ParseSettings(text))
	next.press("D", "0", "1")
	if got := do(next, "layout"); got != "layouts: mine" {
		t.Errorf("the next workbench has %q", got)
	}
	do(next, "layout mine")
	if !slices.Equal(next.charts(), []string{"spread", "loss"}) || next.opt.Settings.Near["loss"] != 2 || next.logAxis || next.window.span != span || !next.leads(chartsPanel) {
		t.Errorf("the layout shows %v near %v, log %t, %d rounds", next.charts(), next.opt.Settings.Near, next.logAxis, next.window.span)
	}
	next.shows("last 1/4")
	for text, want := range map[string]string{
		"layout other": `there is no "other"; layouts: mine`, "layout save": "layout save NAME", "layout save a b": "one word",
		"layout save save": "cannot be called save", "layout save " + strings.Repeat("x", 33): "32 letters",
	} {
		if got := do(next, text); !strings.Contains(got, want) {
			t.Errorf("%q says %q, want %q", text, got, want)
		}
	}
	if len(next.opt.Settings.Layouts) != 1 {
		t.Errorf("there are %v", next.opt.Settings.Layouts)
	}
}

// TestBrokenSettings: a file that cannot be read is one sentence at the start, and what cannot be used of one that can
// is left out.
func TestBrokenSettings(t *testing.T) {
	d := open(t, 120, 36, sourcetest.Run(3, 80), func(o *Options) { o.Settings = ParseSettings([]byte(`{"charts":`)) })
	if !strings.Contains(d.toast.text, "cannot be read") || strings.Contains(d.toast.text, "\n") {
		t.Errorf("a broken file: %q", d.toast.text)
	}
	s := ParseSettings([]byte(`{"layouts":{"save":{},"two words":{},"":{},"ok":{"charts":["a","a","\u001b[2J"],"near":{"a":99}}}}`))
	if want := (map[string]Layout{"ok": {Charts: []string{"a"}, Near: map[string]uint{"a": 6}}}); !reflect.DeepEqual(s.Layouts, want) || s.Broken != "" {
		t.Errorf("read %+v", s)
	}
	if s := ParseSettings(nil); s.Broken != "" {
		t.Errorf("no file is %q", s.Broken)
	}
}
