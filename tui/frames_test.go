package tui

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"brood/optim"
	"brood/runtime/view"
	"brood/runtime/view/sourcetest"
	"brood/tui/panel"
	"brood/tui/replay"
)

func frames(t *testing.T, opt panel.Options, n int) []string {
	t.Helper()
	opt.Algorithms, opt.NoColor = []*optim.Algorithm{sourcetest.Algorithm()}, true
	var out strings.Builder
	if err := Frames(t.Context(), opt, n, time.Millisecond, &out); err != nil {
		t.Fatal(err)
	}
	return strings.Split(out.String(), "\n\n")
}

// TestFrames checks that a frame has the requested size, screen and round, and that no input is read.
func TestFrames(t *testing.T) {
	rs := sourcetest.Run(6, 400)
	closed := 0
	opt := panel.Options{Source: sourcetest.NewMemory(rs...), Width: 120, Height: 36,
		Close: func() error { closed++; return nil }}
	all := frames(t, opt, 2)
	if len(all) != 2 || closed != 1 {
		t.Fatalf("%d frames, closed %d times", len(all), closed)
	}
	for _, f := range all {
		lines := strings.Split(strings.TrimSuffix(f, "\n"), "\n")
		if len(lines) != 36 {
			t.Errorf("%d lines", len(lines))
		}
		for _, l := range lines {
			if n := len([]rune(l)); n != 120 {
				t.Errorf("a line of %d columns: %q", n, l)
			}
		}
		if strings.ContainsRune(f, '\x1b') || !strings.Contains(f, "400/800") || !strings.Contains(f, "training loss") {
			t.Errorf("the frame is\n%s", f)
		}
	}
	opt = panel.Options{Source: replay.NewReplay(&memoryLog{rs: rs}), At: 200, Screen: "Knobs", Width: 80, Height: 24}
	if f := frames(t, opt, 1)[0]; !strings.Contains(f, "200/800") || !strings.Contains(f, "▸3 Knobs") ||
		!strings.Contains(f, "‖ paused") || strings.Contains(f, "playing") {
		t.Errorf("a recording after round 200:\n%s", f)
	}
	opt.Source, opt.At = replay.NewReplay(&memoryLog{rs: rs}), 0
	if f := frames(t, opt, 1)[0]; !strings.Contains(f, "‖ paused") || !strings.Contains(f, "r 400/800") {
		t.Errorf("the end of a recording:\n%s", f)
	}
}

// unreadable is a source that fails.
type unreadable struct{ *sourcetest.Memory }

func (unreadable) Snapshot(context.Context, view.Position) (*view.View, error) {
	return nil, errors.New("it is gone")
}

func TestFrameErrors(t *testing.T) {
	rs := sourcetest.Run(3, 40)
	for _, c := range []struct {
		opt  panel.Options
		says string
	}{
		{panel.Options{}, "need a source"},
		{panel.Options{Source: unreadable{sourcetest.NewMemory(rs...)}}, "it is gone"},
		{panel.Options{Source: replay.NewReplay(&memoryLog{rs: rs}), At: 41},
			"round 41 is after the end of the session at round 40"},
	} {
		var out strings.Builder
		if err := Frames(t.Context(), c.opt, 1, 0, &out); err == nil || !strings.Contains(err.Error(), c.says) ||
			out.Len() > 0 {
			t.Errorf("want %q, got %v and %q", c.says, err, out.String())
		}
	}
	for typed, want := range map[string]string{"fleet": "Fleet", "LIVE": "Live", "runs": "Runs"} {
		if got, err := FindScreen(typed); err != nil || got != want {
			t.Errorf("%s is %q, %v", typed, got, err)
		}
	}
	if _, err := FindScreen("nope"); err == nil || !strings.Contains(err.Error(),
		"choose live, fleet, knobs, population, network, machines, charts, alerts, runs") {
		t.Error(err)
	}
}
