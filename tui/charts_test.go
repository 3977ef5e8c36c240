package tui

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
)

// settingsStore stores the settings of a workbench under test.
type settingsStore struct {
	kept []panel.Settings
	err  error
}

func (k *settingsStore) keep(s panel.Settings) error {
	k.kept = append(k.kept, s)
	return k.err
}

func openCharts(t testing.TB, w, h int, rs []event.Record, s panel.Settings) (*desk, *settingsStore) {
	k := &settingsStore{}
	d := open(t, w, h, rs, func(o *panel.Options) { o.Settings, o.Keep = s, k.keep })
	return d.press("7"), k
}

// charts returns the chosen metrics of the Charts screen, in order.
func (d *desk) charts() []string { return d.Opt.Settings.Charts }

// TestCharts checks that each metric with values has a chart, that changes of the charts are saved, and that D restores
// the default.
func TestCharts(t *testing.T) {
	d, k := openCharts(t, 200, 50, sourcetest.Run(6, 400), panel.Settings{})
	d.shows("training loss  nats", "test error %", "spread", "rounds/s", "samples/s", "bytes a round",
		"cpu  of each process", "device memory")
	d.hides("gradient", "staleness")
	d.press("down", "down", "d")
	want := []string{"loss", "test.error", "fitness", "spread", "rounds/s", "samples/s", "bytes", "machine.cpu",
		"machine.memory", "machine.round_trip", "machine.device_memory_used"}
	if !slices.Equal(d.charts(), want) || len(k.kept) != 1 || !slices.Equal(k.kept[0].Charts, want) {
		t.Errorf("without the third chart there are %v, kept %v", d.charts(), k.kept)
	}
	d.hides("test loss")
	d.press("a")
	d.shows("add a chart", "test loss", "test.loss")
	d.press("enter")
	if got := d.charts(); !slices.Equal(got[:4], []string{"loss", "test.error", "fitness", "test.loss"}) {
		t.Errorf("added behind the cursor, the charts are %v", got)
	}
	d.press("(")
	if got := d.charts(); !slices.Equal(got[:4], []string{"loss", "test.error", "test.loss", "fitness"}) {
		t.Errorf("moved forward, the charts are %v", got)
	}
	d.press(")", ")")
	if got := d.charts(); !slices.Equal(got[:5], []string{"loss", "test.error", "fitness", "spread", "test.loss"}) {
		t.Errorf("moved back twice, the charts are %v", got)
	}
	d.press("v", "v", "V")
	if n := d.Opt.Settings.Near["test.loss"]; n != 1 || k.kept[len(k.kept)-1].Near["test.loss"] != 1 ||
		k.kept[len(k.kept)-2].Near["test.loss"] != 2 {
		t.Errorf("the axis is narrowed %d times, kept %v", n, k.kept[len(k.kept)-2:])
	}
	d.shows("last 1/2")
	d.press("V", "V")
	if d.hides("last 1/"); !strings.Contains(d.Toast.Text, "v narrows it") || len(d.Opt.Settings.Near) > 0 {
		t.Errorf("it says %q", d.Toast.Text)
	}
	d.press("D")
	if d.charts() != nil || k.kept[len(k.kept)-1].Charts != nil {
		t.Errorf("as at first, the charts are %v", d.charts())
	}
	d.press("a")
	if d.Popup != nil || !strings.Contains(d.Toast.Text, "all measured series have a chart") {
		t.Errorf("with all charts a says %q", d.Toast.Text)
	}
}

// TestOneChart checks that enter shows one chart and all charts again, as does esc; a click selects a chart and a
// round.
func TestOneChart(t *testing.T) {
	d, _ := openCharts(t, 80, 24, sourcetest.Run(6, 400), panel.Settings{})
	d.shows("1–4 of 12", "▸training loss")
	for range 4 {
		d.press("down")
	}
	d.shows("5–8 of 12", "▸spread", "bytes a round")
	d.hides("training loss")
	d.press("enter")
	d.shows("5 of 12", "spread")
	if d.hides("rounds/s"); strings.Count(d.screenText(), "400\n")+strings.Count(d.screenText(), " 400 ") > 2 {
		t.Error("more than one chart is shown")
	}
	d.press("down")
	d.shows("6 of 12", "rounds/s")
	d.press("esc")
	d.shows("5–8 of 12", "▸rounds/s")
	at := d.Placed[0].Area
	d.Update(tea.MouseClickMsg{X: at.X + at.W - 10, Y: at.Y + at.H - 5})
	if !d.Cursor.On || d.Cursor.Round < 200 {
		t.Errorf("a click leads to %+v", d.Cursor)
	}
	d.shows("at round", "▸bytes a round")
	d.press("up")
	d.shows("▸samples/s")
}

// TestChartsOfSettings checks that the saved charts are shown again; charts without values in this run take no space
// and stay saved.
func TestChartsOfSettings(t *testing.T) {
	t.Chdir(t.TempDir())
	s := panel.Settings{Layout: panel.Layout{Charts: []string{"gradient.norm", "spread", "machine.cpu"},
		Near: map[string]uint{"spread": 2}}}
	d, k := openCharts(t, 120, 36, sourcetest.Run(6, 400), s)
	d.shows("▸spread  last 1/4", "cpu  of each process")
	d.hides("training loss", "gradient")
	d.press("d")
	if got := d.charts(); !slices.Equal(got, []string{"gradient.norm", "machine.cpu"}) {
		t.Errorf("the charts are %v", got)
	}
	d.press("d")
	if got := d.charts(); len(got) != 2 || !strings.Contains(d.Toast.Text, "last chart") {
		t.Errorf("the last one goes: %v, %q", got, d.Toast.Text)
	}
	k.err = errors.New("no place on the disk")
	d.press("v")
	if !strings.Contains(d.Toast.Text, "were not saved: no place on the disk") {
		t.Errorf("with a full disk it says %q", d.Toast.Text)
	}
	d, _ = openCharts(t, 120, 36, sourcetest.Run(6, 400),
		panel.Settings{Layout: panel.Layout{Charts: []string{"gradient.norm"}}})
	d.shows("none of the charts that you chose has values here")
	d.press("down", "up", "enter", "v", "d", "(", "E")
	d.press("a", "enter")
	d.hides("none of the charts")
}

// TestChartCommand checks that the command line knows the metrics and lists them.
func TestChartCommand(t *testing.T) {
	d, _ := openCharts(t, 120, 36, sourcetest.Run(6, 400),
		panel.Settings{Layout: panel.Layout{Charts: []string{"spread"}}})
	d.press("1", ":").write("chart bytes").press("enter")
	if got := d.charts(); !slices.Equal(got, []string{"spread", "bytes"}) || d.Focus != panel.Charts {
		t.Errorf("the charts are %v, the focus is on %s", got, d.Focus)
	}
	d.press(":").write("chart weather").press("enter")
	d.shows("chart: write chart and one of loss, test.error")
	d = open(t, 120, 36, nil, nil)
	d.press("7")
	d.shows("waiting for workers")
	d.press(":").write("chart loss").press("enter")
	d.shows("nothing is measured yet")
}

// TestChartsExport checks that the export has the values of the shown charts.
func TestChartsExport(t *testing.T) {
	t.Chdir(t.TempDir())
	d, _ := openCharts(t, 120, 36, sourcetest.Run(3, 80),
		panel.Settings{Layout: panel.Layout{Charts: []string{"spread", "rounds/s", "bytes", "machine.cpu"}}})
	d.press("E")
	text, err := os.ReadFile("run-charts.csv")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nspread,2,", "\nrounds/s,all,", "\ncouple,all,", "\ncpu,w1,"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("it does not write %q", want)
		}
	}
	if strings.Contains(string(text), "\nfitness,") {
		t.Error("it writes what it does not draw")
	}
}

// TestSettings checks that saved settings are parsed again, and that invalid or excessive parts of a file are ignored.
func TestSettings(t *testing.T) {
	many := `{"charts":["a","a","b","` + strings.Repeat("x", 65) + `","","\u001b[2J"`
	for i := range 100 {
		many += fmt.Sprintf(`,"c%d"`, i)
	}
	many += `],"near":{"a":99,"b":0,"":3}}`
	for text, want := range map[string]int{``: 0, `{`: 0, `[]`: 0, `{"charts":5}`: 0, `{"near":{"a":-1}}`: 0,
		`{"charts":["a","b"],"later":1}`: 2, many: 48} {
		s := panel.ParseSettings([]byte(text))
		if len(s.Charts) != want {
			t.Errorf("%.40q has %d charts, want %d", text, len(s.Charts), want)
		}
		for _, name := range s.Charts {
			if len(name) > 64 || strings.ContainsRune(name, '\x1b') {
				t.Errorf("a chart is called %q", name)
			}
		}
		if s.Near["a"] > 6 || len(s.Near) > 1 {
			t.Errorf("axes are narrowed by %v", s.Near)
		}
	}
}
