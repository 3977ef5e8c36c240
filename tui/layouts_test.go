package tui

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
)

// TestLayouts checks that a saved layout is restored by its name, also after a restart, and only changed by :layout
// save.
func TestLayouts(t *testing.T) {
	d, k := openCharts(t, 120, 36, sourcetest.Run(6, 400), panel.Settings{})
	say := func(line string) string {
		d.press(":").write(line).press("enter")
		text := d.Toast.Text
		if d.prompt != nil {
			text = d.prompt.err
			d.press("esc")
		}
		return text
	}
	if text := say("layout"); text != d.LayoutsText() {
		t.Errorf("without any: %q", text)
	}
	if d.press("L"); d.Toast.Text != "no layout is saved: :layout save NAME saves the present charts" {
		t.Errorf("without any: %q", d.Toast.Text)
	}
	d.press("v", "m")
	near, smoothing := maps.Clone(d.Opt.Settings.Near), d.Smoothing
	if text := say("layout save narrow"); text != "saved: :layout narrow opens it again" {
		t.Errorf("saved: %q", text)
	}
	d.press("d", "d", "m", "V")
	few := slices.Clone(d.charts())
	say("layout save few")
	if say("layout narrow"); len(d.charts()) != 0 || !maps.Equal(d.Opt.Settings.Near, near) ||
		d.Smoothing != smoothing {
		t.Errorf("it comes back as %v, %v, smoothing %d", d.charts(), d.Opt.Settings.Near, d.Smoothing)
	}
	d.press("L")
	d.shows("few", "narrow", "all charts")
	d.press("enter")
	if !slices.Equal(d.charts(), few) || len(few) == 0 || d.Smoothing == smoothing {
		t.Errorf("chosen from the list: %v", d.charts())
	}
	last := k.kept[len(k.kept)-1]
	if len(last.Layouts) != 2 || !slices.Equal(last.Layouts["few"].Charts, few) {
		t.Errorf("kept are %+v", last.Layouts)
	}
	if say("layout drop few"); len(d.Layouts()) != 1 || !slices.Equal(d.charts(), few) {
		t.Errorf("after one is dropped %v are left, and the charts are %v", d.Layouts(), d.charts())
	}
	for line, want := range map[string]string{
		"layout few":       `there is no layout "few"; layouts: narrow`,
		"layout drop few":  `there is no layout "few"`,
		"layout save save": "is not a valid name",
		"layout save":      "write layout NAME",
		"layout save a b":  "a name is one word",
	} {
		if got := say(line); !strings.Contains(got, want) {
			t.Errorf(":%s says %q, want %q", line, got, want)
		}
	}
	for i := range panel.MaxLayouts {
		say(fmt.Sprintf("layout save l%d", i))
	}
	if text := say("layout save more"); !strings.Contains(text, "32 layouts, the maximum") ||
		len(d.Layouts()) != panel.MaxLayouts {
		t.Errorf("one more than may be kept: %q", text)
	}
	if got := candidates(d.model, "layout n"); !slices.Equal(got, []string{"narrow"}) {
		t.Errorf("it offers %v", got)
	}
}

// TestLayoutsOfAFile checks that invalid parts of a saved layout are dropped.
func TestLayoutsOfAFile(t *testing.T) {
	s := panel.ParseSettings([]byte(
		`{"charts": ["loss"], "layouts": {"a": {"charts": ["bytes", "bytes", "x\u0007"], "near": {"bytes": 99}, "smoothing": 0.5, "linear": true},
		"save": {"charts": ["loss"]}, "\u0007": {}, "": {}}}`))
	a, ok := s.Layouts["a"]
	if !ok || len(s.Layouts) != 1 || !slices.Equal(a.Charts, []string{"bytes"}) || a.Near["bytes"] != panel.MaxNear ||
		a.Smoothing != 0 || !a.Linear {
		t.Errorf("%+v", s)
	}
	if !slices.Equal(s.Charts, []string{"loss"}) {
		t.Errorf("the charts are %v", s.Charts)
	}
}

// TestRunListOfAFile checks that invalid parts of the saved columns and order of runs are dropped.
func TestRunListOfAFile(t *testing.T) {
	s := panel.ParseSettings([]byte(
		`{"runs": {"columns": ["test", "test", "", "x\u0007", "eta"], "sort": "eta", "reverse": true}}`))
	if l := s.Runs; !slices.Equal(l.Columns, []string{"test", "eta"}) || l.Sort != "eta" || !l.Reverse {
		t.Errorf("%+v", l)
	}
	if l := panel.ParseSettings([]byte(`{"runs": {"sort": "\u0007", "reverse": true}}`)).Runs; l.Reverse {
		t.Errorf("an invalid order is %+v", l)
	}
}

// TestBrokenSettings checks that an unreadable settings file gives one message at the start.
func TestBrokenSettings(t *testing.T) {
	d := open(t, 120, 36, sourcetest.Run(3, 80),
		func(o *panel.Options) { o.Settings = panel.ParseSettings([]byte(`{"charts":`)) })
	if !strings.Contains(d.Toast.Text, "cannot be read") || strings.Contains(d.Toast.Text, "\n") {
		t.Errorf("a broken file: %q", d.Toast.Text)
	}
	if s := panel.ParseSettings(nil); s.Broken != "" {
		t.Errorf("no file is %q", s.Broken)
	}
}
