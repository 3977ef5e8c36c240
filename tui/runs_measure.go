package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Timings are what [Measure] saw of a workbench on the runs of a library.
type Timings struct {
	First  time.Duration   // from its start to a frame that lists the runs
	Filled time.Duration   // and to one in which all runs in view have their figures
	All    time.Duration   // and until everything is read
	Laid   time.Duration   // the frame for which all curves are made anew, as when another run is marked
	Frames []time.Duration // of Update and View, with so many runs marked and their curves over each other
	Lines  int             // in each chart
}

// Measure starts a workbench of width x height on a library, marks so many runs, and draws frames: each of them takes a
// step of the cursor in the charts. Nobody sits at it. Reading is done between the frames, as a program does.
func Measure(ctx context.Context, lib Library, width, height, mark, frames int) (t Timings, err error) {
	ctx, cancel := context.WithCancel(ctx)
	began := time.Now()
	m := newModel(ctx, Options{Library: lib, Width: width, Height: height})
	defer func() {
		cancel()
		m.jobs.end()
	}()
	rail := newRuns()
	for _, own := range rail.panels() {
		for i := range m.panels {
			if m.panels[i].id == own.id {
				m.panels[i] = own
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

// filled says whether all runs that were drawn are known.
func (r *runs) filled() bool {
	for _, x := range r.rows[min(r.first, len(r.rows)):min(r.first+r.height, len(r.rows))] {
		if r.known[x.Dir] == nil {
			return false
		}
	}
	return true
}
