package tui

import (
	"slices"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/archive"
	"brood/runtime/session"
	"brood/tui/panel"
)

// TestLiveRunsOfHostsComeFirst checks that running runs of any machine are listed before ended ones, and that other
// runs of a machine stay below it.
func TestLiveRunsOfHostsComeFirst(t *testing.T) {
	s := &fakeLibrary{list: []session.Info{{Name: "here", Dir: "/s/here", Running: true},
		{Name: "ended", Dir: "/s/ended"}}}
	d := openLibrary(t, 120, 36, s, "")
	lab := archive.Entry{Name: "lab", Dir: "ssh://lab", Folder: archive.HostFolder, Host: "lab", Asked: true}
	found := map[string][]archive.Entry{
		"": append(slices.Clone(d.runs.Found[""]), lab,
			archive.Entry{Name: "night", Dir: "url://night", Host: "night", Asked: true, Running: true},
			archive.Entry{Name: "mute", Dir: "url://mute", Host: "mute", Asked: true}),
		lab.Dir: {{Name: "far", Dir: "ssh://lab/far", Host: "lab", Running: true},
			{Name: "old", Dir: "ssh://lab/old", Host: "lab"}},
	}
	d.runs.StoreScan(d.model.Host, found, 0)
	d.runs.Reader.Scanning = true // a scan is pending, so that no other one starts
	listed := func(want ...string) {
		t.Helper()
		var got []string
		for _, x := range d.runs.SortedRows(d.model.Host) {
			got = append(got, d.runs.RowLabel(x))
		}
		if !slices.Equal(got, want) {
			t.Errorf("listed %q, want %q", got, want)
		}
	}
	listed("here", "lab/far", "night", "ended", "lab/", "old", "mute")
	d.runs.Chosen = lab.Dir
	d.press("enter")
	listed("here", "lab/far", "night", "ended", "lab/", "mute")
	d.press("/").write("far").press("enter")
	listed("lab/far", "lab/")
	d.press("esc")
	d.screenText()
	d.press("s")
	d.runs.Open[lab.Dir], d.runs.Stale = true, true
	listed("ended", "here", "lab/", "far", "old", "mute", "night")

	// The runs of a machine are requested although its folder is closed, since some may be running.
	d.Opt.Settings.Runs = panel.RunList{}
	d.runs.Reader.Scanning, d.runs.Open[lab.Dir] = false, false
	s.folders = map[string][]session.Info{lab.Dir: {{Name: "new", Dir: "ssh://lab/new"}}}
	d.runs.Found[""] = []archive.Entry{lab}
	d.now = d.now.Add(time.Hour)
	d.deliver(d.rescan())
	if got := d.runs.Found[lab.Dir]; len(got) != 1 || got[0].Name != "new" {
		t.Errorf("of a closed folder of a machine is known %+v", got)
	}
}

// TestHostErrorIsComplete checks that the error of a host is shown in full, on several lines if necessary,
// and that clicks still select the right row.
func TestHostErrorIsComplete(t *testing.T) {
	const why = "lab does not answer: kex_exchange_identification: read: Connection reset by peer; " +
		"ask whoever keeps that machine whether its control socket for ssh has moved, and write its port as ada@lab:2222 " +
		"LASTWORD"
	for _, size := range [][2]int{{60, 20}, {80, 24}, {120, 36}} {
		d := openLibrary(t, size[0], size[1], &fakeLibrary{list: []session.Info{{Name: "here", Dir: "/s/here"},
			{Name: "mute", Dir: "/s/mute", Err: why}}}, "j")
		d.shows("LASTWORD")
		d.Update(tea.MouseClickMsg{X: 10, Y: 4})
		if d.runs.Chosen != "/s/here" {
			t.Errorf("%dx%d: a click on the first row chooses %q", size[0], size[1], d.runs.Chosen)
		}
	}
}
