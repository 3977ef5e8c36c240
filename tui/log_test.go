package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
)

// logSource is a run with output of its processes.
type logSource struct {
	*sourcetest.Memory
	lines []session.Line
	err   error
	asked int
}

func (s *logSource) ProcessLog(context.Context) ([]session.Line, error) {
	s.asked++
	return s.lines, s.err
}

// openLog opens the log of a run whose host writes three lines: at its second event, without a time, and after its end.
func openLog(t *testing.T, w, h int) (*desk, *logSource) {
	s := &logSource{Memory: sourcetest.NewMemory(sourcetest.Run(6, 400)...)}
	d := open(t, w, h, nil, func(o *panel.Options) { o.Source, o.Screen = s, "Log" })
	s.lines = []session.Line{
		{At: d.Shown.Lane[1].When, Text: "worker 1 joined"},
		{Text: "worker 2 is refused: " + strings.Repeat("its data has another digest; ", 6) + "LASTWORD"},
		{At: d.Shown.Last + 1e12, Text: "fatal error: out of memory"},
	}
	d.deliver(d.pollPanels()())
	return d, s
}

// TestLogOfProcesses checks that the output of processes is listed among the events in the order of time,
// unabridged at every size.
func TestLogOfProcesses(t *testing.T) {
	for _, size := range [][2]int{{60, 24}, {80, 24}, {120, 36}, {200, 50}} {
		d, s := openLog(t, size[0], size[1])
		d.shows("log", "10 of 10", "worker 1 joined", "LASTWORD", "fatal error: out of memory")
		text := d.screenText()
		first, last := strings.Index(text, "worker 1 joined"), strings.Index(text, "fatal error")
		if kept := strings.Index(text, d.Shown.Lane[len(d.Shown.Lane)-1].Text[:8]); first > kept || kept > last {
			t.Errorf("%v: not in the order of time:\n%s", size, text)
		}
		d.press("/").write("refused").press("enter")
		d.shows("/refused", "LASTWORD")
		d.hides("worker 1 joined")
		d.press("esc", "g")
		d.hides("fatal error")
		d.press("G")
		d.shows("fatal error")
		if rows := d.panel(panel.Log).Export(d.model.Host)(d.Shown); len(rows) != 11 || rows[10][3] != "host" {
			t.Errorf("it exports %v", rows)
		}

		// It is requested again after a while, and only while visible; an error keeps the last lines.
		s.err = errors.New("a viewer may look only")
		d.now = d.now.Add(time.Minute)
		d.deliver(d.pollPanels()())
		d.shows("without the output of the processes: a viewer may look", "fatal error")
		d.press("w")
		d.shows("1 unacknowledged")
		d.now = d.now.Add(time.Minute)
		asks := func(what string, want int) {
			t.Helper()
			d.now = d.now.Add(time.Minute)
			before := s.asked
			if cmd := d.pollPanels(); cmd != nil {
				d.deliver(cmd())
			}
			if n := s.asked - before; n != want {
				t.Errorf("%s it is asked %d times, want %d", what, n, want)
			}
		}
		asks("closed", 0)
		d.press("w")
		asks("open", 1)
		d.press("1")
		asks("on another screen", 0)
		d.press("8")
		asks("open again", 1)
	}
}

// TestLogKeepsItsScrollPosition checks that new lines and events do not move a log that is scrolled back.
func TestLogKeepsItsScrollPosition(t *testing.T) {
	d, s := openLog(t, 80, 24)
	at := d.Shown.Last + 2e12
	for i := range 100 {
		s.lines = append(s.lines, session.Line{At: at, Text: fmt.Sprintf("line <%d>", i)})
	}
	ask := func() {
		d.now = d.now.Add(time.Minute)
		d.deliver(d.pollPanels()())
	}
	ask()
	d.shows("line <99>")
	for range 30 {
		d.press("k")
	}
	d.shows("line <69>")
	d.hides("line <70>")
	s.lines = append(s.lines, session.Line{At: at, Text: "newest"})
	ask()
	d.shows("line <69>")
	d.hides("line <70>", "newest")
	d.apply(event.Record{At: at + 1e9, State: &event.State{Phase: event.Paused, Round: 402}})
	d.shows("line <69>")
	d.hides("line <70>")
	d.press("G")
	d.shows("newest")
	s.lines = append(s.lines, session.Line{At: at + 2e9, Text: "of the end"})
	ask()
	d.shows("of the end")
}

// TestLinesWithoutTimes checks that lines without a time keep the time at which they were first seen.
func TestLinesWithoutTimes(t *testing.T) {
	d, s := openLog(t, 120, 36)
	then := d.Shown.Last + 1e12
	s.lines = []session.Line{{Text: "once"}, {At: then, Text: "a warning", Late: true}}
	d.now = d.now.Add(time.Minute)
	d.deliver(d.pollPanels()())
	s.lines = []session.Line{{Text: "once"}, {At: then + 1e12, Text: "a warning", Late: true},
		{At: then + 1e12, Text: "panic", Late: true}}
	d.now = d.now.Add(time.Minute)
	d.deliver(d.pollPanels()())
	d.shows("–")
	rows := d.panel(panel.Log).Export(d.model.Host)(d.Shown)
	n := len(rows)
	stamp := func(at int64) string { return time.Unix(0, at).UTC().Format(time.RFC3339Nano) }
	for i, want := range map[int][]string{1: {"", "", "once"}, n - 2: {stamp(then), "", "a warning"},
		n - 1: {stamp(then + 1e12), "", "panic"}} {
		if r := rows[i]; r[0] != want[0] || r[1] != want[1] || r[4] != want[2] {
			t.Errorf("row %d is %q, want %q", i, r, want)
		}
	}
}

// TestScreensByTheirNames checks that pages that replace a screen can be opened by their names.
func TestScreensByTheirNames(t *testing.T) {
	d := open(t, 120, 36, sourcetest.Run(6, 400), nil)
	for name, says := range map[string]string{"log": "log ─", "positions": "cosine between members",
		"mistakes": "test set", "alerts": "alert rules"} {
		for range 2 { // and once more where it is open
			d.press(":").write("screen " + name).press("enter")
			if !strings.Contains(d.screenText(), says) {
				t.Errorf("%s shows\n%s", name, d.screenText())
			}
		}
		d.press("w")
		if _, err := FindScreen(name); err != nil {
			t.Error(err)
		}
	}
	d.press("8", "w", "ctrl+p").write("screen pos").press("enter")
	if !d.HasPanel(panel.Overlap) {
		t.Errorf("the palette opens\n%s", d.screenText())
	}
}

// TestLogOfARecording checks that lines later than the shown position appear at the end of the recording.
func TestLogOfARecording(t *testing.T) {
	rs := sourcetest.Run(6, 100)
	l := &sayingTape{memoryLog: memoryLog{rs: rs}, lines: []session.Line{{At: rs[len(rs)-1].At + 1, Text: "killed"}}}
	d := open(t, 120, 36, nil, func(o *panel.Options) { o.Source, o.Commander = fastReplay(l), nil })
	d.press("8", "w")
	d.deliver(d.pollPanels())
	d.hides("killed")
	if err := d.Replay.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.press("1", "end", "8")
	d.shows("killed", fmt.Sprint("of ", len(d.Shown.Lane)+1))
}

type sayingTape struct {
	memoryLog
	lines []session.Line
}

func (s *sayingTape) ProcessLog() ([]session.Line, error) { return s.lines, nil }
