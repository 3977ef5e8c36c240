package tui

import (
	"context"
	"math"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/replay"
)

// SwitchSession closes the shown session and shows another one.
func (m *model) SwitchSession(msg panel.OpenedMsg) tea.Cmd {
	if msg.Err != nil {
		m.Say(cell.Alert, msg.Err.Error())
		return nil
	}
	leave := m.leaveSession()
	o := msg.Opened
	if m.Opt.ReadOnly {
		o.Commander = nil
	}
	m.Opt.Session, m.Opt.Source, m.Opt.Commander, m.Opt.Close = o.Session, o.Source, o.Commander, o.Close
	m.Opt.Title, m.Opt.Resume = o.Title, o.Resume
	m.resetSession()
	m.OpenScreen(0)
	m.visited = nil
	m.Toast = panel.Toast{}
	if msg.Message != "" {
		m.Say(cell.Good, msg.Message)
	}
	return tea.Batch(leave, m.startReading(), m.LoadNotes(), m.loadCheckpoints())
}

// leaveSession ends the readers of the shown session and closes it. It ignores the error of closing.
func (m *model) leaveSession() tea.Cmd {
	m.Reading.Cancel()
	jobs, closer := m.Reading.Jobs, m.Opt.Close
	return m.Job(func() tea.Msg {
		jobs.Close()
		if closer != nil {
			_ = closer()
		}
		return nil
	})
}

// startReading starts to read the session.
func (m *model) startReading() tea.Cmd {
	switch at := m.Opt.At; {
	case m.Opt.Source == nil:
		return m.pollPanels()
	case m.Replay == nil:
		return m.seek(math.MaxUint64)
	case at > 0:
		m.Opt.At = 0 // applies to the first session only
		m.Replay.Pause(true)
		return tea.Batch(m.scan(), m.toRound(at))
	}
	return tea.Batch(m.scan(), m.seek(0))
}

// resetSession clears the state of the previous session.
func (m *model) resetSession() {
	ctx, cancel := context.WithCancel(m.Ctx)
	m.Reading = panel.Reading{Ctx: ctx, Cancel: cancel, Jobs: &panel.Jobs{}}
	m.Feed = panel.Feed{Gen: m.Feed.Gen + 1}
	m.Live, m.Knobs, m.Alg = view.New(), nil, nil
	m.Shown = m.Live
	m.Member, m.Trait, m.Window, m.Cursor, m.Acked = 0, "", panel.Window{}, panel.Cursor{}, 0
	m.railOpen, m.Expanded, m.Notes, m.Checkpoints = false, false, nil, nil
	m.Parent, m.parent = nil, parentRead{}
	m.drag, m.travel = drag{}, travel{}
	m.lease, m.Awaited, m.Activity = leaseState{}, "", nil
	m.history, m.prompt, m.Popup = changeHistory{}, nil, nil
	for _, p := range m.panels {
		if p.Reset != nil {
			p.Reset()
		}
	}
	kept := map[string]string{}
	for _, p := range m.panels {
		if p.List != nil && p.List.Stays {
			kept[p.List.Name] = m.Filters.Text[p.List.Name]
		}
	}
	m.Filters = panel.Filters{Text: kept}
	m.Replay, _ = m.Opt.Source.(*replay.Replay)
}

// close ends the readers of the session and closes its source.
func (m *model) close() error {
	m.Reading.Cancel()
	m.Reading.Jobs.Close()
	if m.Opt.Close == nil {
		return nil
	}
	return m.Opt.Close()
}
