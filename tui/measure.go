package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/tui/panel"
	"brood/tui/panel/runs"
)

// Timings holds the results of [Measure].
type Timings struct {
	First  time.Duration   // from the start to the first frame that lists the runs
	Filled time.Duration   // from the start to a frame in which all visible runs have their results
	All    time.Duration   // from the start until everything is read
	Laid   time.Duration   // duration of a frame that recomputes all curves, as after marking another run
	Frames []time.Duration // durations of Update and View, with the marked runs overlaid
	Lines  int             // number of lines in each chart
}

// Measure starts a workbench of width x height cells without a terminal on a library, marks mark runs and draws frames
// frames, with a step of the cursor in the charts before each. It runs the reading jobs between frames, in this
// goroutine.
func Measure(ctx context.Context, lib panel.Library, width, height, mark, frames int) (t Timings, err error) {
	ctx, cancel := context.WithCancel(ctx)
	began := time.Now()
	m := newModel(ctx, panel.Options{Library: lib, Width: width, Height: height})
	defer func() {
		cancel()
		m.Jobs.Close()
	}()
	rail := runs.New()
	for _, p := range rail.Panels() {
		for i := range m.panels {
			if m.panels[i].ID == p.ID {
				m.panels[i] = p
			}
		}
	}
	m.View()
	queue := []tea.Cmd{m.startReading()}
	for len(queue) > 0 && ctx.Err() == nil {
		next := queue[0]
		if queue = queue[1:]; next == nil {
			continue
		}
		switch msg := next().(type) {
		case tea.BatchMsg:
			queue = append(queue, msg...)
			continue
		case panel.Reply:
			_, cmd := m.Update(msg)
			queue = append(queue, cmd)
		default:
			continue
		}
		m.View()
		at := time.Since(began)
		if t.First == 0 && rail.Loaded {
			t.First = at
		}
		if t.Filled == 0 && rail.Loaded && rail.Filled() {
			t.Filled = at
		}
	}
	t.All = time.Since(began)
	rail.Overlay.Seeds = false // a line for each run
	for range mark {
		queue = append(queue, m.key("space", " "))
	}
	for ; len(queue) > 0 && ctx.Err() == nil; queue = queue[1:] {
		if queue[0] == nil {
			continue
		}
		switch msg := queue[0]().(type) {
		case tea.BatchMsg:
			queue = append(queue, msg...)
		case panel.Reply:
			_, cmd := m.Update(msg)
			queue = append(queue, cmd)
		}
	}
	rail.Overlay.Stale = true
	at := time.Now()
	m.View()
	t.Laid, t.Lines = time.Since(at), len(rail.Overlay.Lines)
	for range frames {
		at := time.Now()
		m.Update(tea.KeyPressMsg{Code: tea.KeyLeft})
		m.View()
		t.Frames = append(t.Frames, time.Since(at))
	}
	return t, ctx.Err()
}
