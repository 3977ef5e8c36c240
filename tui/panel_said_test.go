package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"brood/runtime/session"
	"brood/runtime/view/sourcetest"
)

// teller is a run whose processes say something.
type teller struct {
	*sourcetest.Memory
	lines []session.Line
	err   error
	asked int
}

func (s *teller) Said(context.Context) ([]session.Line, error) {
	s.asked++
	return s.lines, s.err
}

// saying opens the log of a run whose host says three lines: at its second event, without a time, and after its end.
func saying(t *testing.T, w, h int) (*desk, *teller) {
	s := &teller{Memory: sourcetest.NewMemory(sourcetest.Run(6, 400)...)}
	d := open(t, w, h, nil, func(o *Options) { o.Source, o.Screen = s, "Log" })
	s.lines = []session.Line{
		{At: d.shown.Lane[1].When, Text: "worker 1 joined"},
		{Text: "worker 2 is refused: " + strings.Repeat("its data has another digest; ", 6) + "LASTWORD"},
		{At: d.shown.Last + 1e12, Text: "fatal error: out of memory"},
	}
	d.deliver(d.poll()())
	return d, s
}

// TestLogHasWhatTheHostSaid: it stands among the events, in the order of time, to its last word at every size.
func TestLogHasWhatTheHostSaid(t *testing.T) {
	for _, size := range [][2]int{{60, 20}, {80, 24}, {120, 36}, {200, 50}} {
		d, s := saying(t, size[0], size[1])
		d.shows("log", "8 of 8", "worker 1 joined", "LASTWORD", "fatal error: out of memory")
		text := d.screenText()
		first, last := strings.Index(text, "worker 1 joined"), strings.Index(text, "fatal error")
		if kept := strings.Index(text, d.shown.Lane[len(d.shown.Lane)-1].Text[:8]); first > kept || kept > last {
			t.Errorf("%v: not in the order of time:\n%s", size, text)
		}
		d.press("/").write("refused").press("enter")
		d.shows("/refused", "LASTWORD")
		d.hides("worker 1 joined")
		d.press("esc", "g")
		d.hides("fatal error")
		d.press("G")
		d.shows("fatal error")
		if rows := d.panel(saidPanel).export(d.model)(d.shown); len(rows) != 9 || rows[8][3] != "host" {
			t.Errorf("it exports %v", rows)
		}

		// It is asked again after a while, and only while it is seen; what was told stays where it is told no more.
		s.err = errors.New("a viewer may look only")
		d.now = d.now.Add(time.Minute)
		d.deliver(d.poll()())
		d.shows("what the host says is not told: a viewer may look only", "fatal error")
		d.press("w")
		d.shows("of which 1 due")
		d.now = d.now.Add(time.Minute)
		if asked := s.asked; d.poll() != nil && s.asked != asked {
			t.Error("it is asked while nobody looks")
		}
	}
}

// TestScreensByTheirNames: what takes a screen's place is opened as a screen is.
func TestScreensByTheirNames(t *testing.T) {
	d := open(t, 120, 36, sourcetest.Run(6, 400), nil)
	for name, says := range map[string]string{"log": "log ─", "positions": "where they stand", "mistakes": "test set", "alerts": "watched for"} {
		for range 2 { // and once more where it is open
			d.press(":").write("screen " + name).press("enter")
			if !strings.Contains(d.screenText(), says) && says != "where they stand" {
				t.Errorf("%s shows\n%s", name, d.screenText())
			}
		}
		d.press("w")
		if _, err := FindScreen(name); err != nil {
			t.Error(err)
		}
	}
	d.press("8", "w", "ctrl+p").write("screen pos").press("enter")
	if !d.has(overlapPanel) {
		t.Errorf("the palette opens\n%s", d.screenText())
	}
}

// TestLogOfARecording: what was said later than what is shown comes with the end.
func TestLogOfARecording(t *testing.T) {
	rs := sourcetest.Run(6, 100)
	l := &sayingTape{tape: tape{rs: rs}, lines: []session.Line{{At: rs[len(rs)-1].At + 1, Text: "killed"}}}
	d := open(t, 120, 36, nil, func(o *Options) { o.Source, o.Commander = fast(l), nil })
	d.press("8", "w")
	d.deliver(d.poll())
	d.hides("killed")
	if err := d.replay.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.press("1", "end", "8")
	d.shows("killed", fmt.Sprint("of ", len(d.shown.Lane)+1))
}

type sayingTape struct {
	tape
	lines []session.Line
}

func (s *sayingTape) Said() ([]session.Line, error) { return s.lines, nil }
