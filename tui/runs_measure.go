package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Timings holds the results of [Measure].
type Timings struct {
	First  time.Duration   // from the start to the first frame that lists the runs
	Filled time.Duration   // from the start to a frame in which all runs in view have their figures
	All    time.Duration   // from the start until everything is read
	Laid   time.Duration   // of a frame that recomputes all curves, as after marking another run
	Frames []time.Duration // of Update and View, with the marked runs overlaid
	Lines  int             // in each chart
}

// Measure starts a workbench of width x height cells without a terminal on a library, marks mark runs and draws frames
// frames, with a step of the cursor in the charts before each. It runs the reading jobs between frames, in this
// goroutine.
func Measure(ctx context.Context, lib Library, width, height, mark, frames int) (t Timings, err error) {
	ctx, cancel := context.WithCancel(ctx)
	began := time.Now()
	m := newModel(ctx, Options{Library: lib, Width: width, Height: height})
	defer func() {
		cancel()
		m.jobs.end()
	}()
	rail := newRuns()
	for _, p := range rail.panels() {
		for i := range m.panels {
			if m.panels[i].id == p.id {
				m.panels[i] = p
			}
		}
	}
	m.View()
	queue := []tea.Cmd{m.look()}
	for len(queue) > 0 && ctx.Err() == nil {
		next := queue[0]
		if queue = queue[1:]; next == nil {
			continue
		}
		switch msg := next().(type) {
		case tea.BatchMsg:
			queue = append(queue, msg...)
			continue
		case reply:
			_, cmd := m.Update(msg)
			queue = append(queue, cmd)
		default:
			continue
		}
		m.View()
		at := time.Since(began)
		if t.First == 0 && rail.loaded {
			t.First = at
		}
		if t.Filled == 0 && rail.loaded && rail.filled() {
			t.Filled = at
		}
	}
	t.All = time.Since(began)
	rail.overlay.seeds = false // a line for each run
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
		case reply:
			_, cmd := m.Update(msg)
			queue = append(queue, cmd)
		}
	}
	rail.overlay.stale = true
	at := time.Now()
	m.View()
	t.Laid, t.Lines = time.Since(at), len(rail.overlay.lines)
	for range frames {
		at := time.Now()
		m.Update(tea.KeyPressMsg{Code: tea.KeyLeft})
		m.View()
		t.Frames = append(t.Frames, time.Since(at))
	}
	return t, ctx.Err()
}

// filled reports whether all drawn runs have a summary.
func (r *runs) filled() bool {
	for _, x := range r.rows[min(r.first, len(r.rows)):min(r.first+r.height, len(r.rows))] {
		if r.known[x.Dir] == nil {
			return false
		}
	}
	return true
}
