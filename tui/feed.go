package tui

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/replay"
	"brood/tui/textfmt"
)

type (
	snapshotMsg struct {
		gen  int
		view *view.View
		err  error
	}
	batchMsg struct {
		gen   int
		batch view.Batch
		err   error
	}
	scannedMsg struct{ err error }
)

// maxBatch is the most records of one batch. It bounds the time of one Update.
const maxBatch = 4096

// seek cancels the current read and begins a new generation at another position.
func (m *model) seek(at view.Position) tea.Cmd {
	if m.Feed.Cancel != nil {
		m.Feed.Cancel()
	}
	m.travel = travel{awaited: true, to: at}
	gen := m.Feed.Gen + 1
	ctx, cancel := context.WithCancel(m.Reading.Ctx)
	m.Feed = panel.Feed{Gen: gen, Ctx: ctx, Cancel: cancel, Loaded: m.Feed.Loaded, Lost: m.Feed.Lost}
	src := m.Opt.Source
	return m.SessionJob(func() tea.Msg {
		v, err := src.Snapshot(ctx, at)
		return snapshotMsg{gen, v, err}
	})
}

func (m *model) scan() tea.Cmd {
	ctx, r := m.Reading.Ctx, m.Replay
	return m.SessionJob(func() tea.Msg { return scannedMsg{r.Scan(ctx)} })
}

// read waits for records, then collects those that arrive within one frame, so that one frame is one message.
func (m *model) read() tea.Cmd {
	gen, ctx, src, after := m.Feed.Gen, m.Feed.Ctx, m.Opt.Source, m.Live.Position
	return m.SessionJob(func() tea.Msg {
		b, err := src.Next(ctx, after, maxBatch)
		if err != nil {
			return batchMsg{gen, b, err}
		}
		short, cancel := context.WithTimeout(ctx, replay.Frame)
		defer cancel()
		for len(b.Records) < maxBatch {
			more, err := src.Next(short, b.Next, maxBatch-len(b.Records))
			if errors.Is(err, context.DeadlineExceeded) {
				break
			}
			if err != nil { // report it now: another call may block for long
				return batchMsg{gen, b, err}
			}
			b.Records = append(b.Records[:len(b.Records):len(b.Records)], more.Records...)
			b.Next, b.Live = more.Next, more.Live
		}
		return batchMsg{gen, b, nil}
	})
}

// applySnapshot starts reading after a snapshot.
func (m *model) applySnapshot(msg snapshotMsg) tea.Cmd {
	if msg.gen != m.Feed.Gen {
		return nil
	}
	moves := m.travel
	m.travel = travel{}
	if msg.err != nil {
		return m.readFailed(msg.err)
	}
	frozen := m.Frozen()
	m.Live, m.Feed.Loaded, m.LastRecordAt = msg.view, true, m.Opt.Clock()
	m.showReconnected()
	if !frozen || m.Replay != nil {
		m.Shown = m.Live
	}
	m.refresh()
	if moves.again {
		return m.seek(moves.to)
	}
	return m.read()
}

// fold applies the records of a batch and reads on.
func (m *model) fold(msg batchMsg) tea.Cmd {
	if msg.gen != m.Feed.Gen {
		return nil
	}
	if len(msg.batch.Records) > 0 {
		m.LastRecordAt = m.Opt.Clock()
	}
	saved := m.Live.Checkpoint
	for _, r := range msg.batch.Records {
		m.Live.Apply(r)
		m.notice(r)
	}
	m.dropOverMessage()
	m.refresh()
	if msg.err != nil {
		return m.readFailed(msg.err)
	}
	if m.Replay == nil && m.Live.Checkpoint != saved {
		return tea.Batch(m.read(), m.loadCheckpoints())
	}
	return m.read()
}

// notice shows messages for records that need attention at once.
func (m *model) notice(r event.Record) {
	m.showOthersChange(r)
	if r.Alert != nil && r.Alert.Level == event.LevelError {
		m.Say(cell.Alert, r.Alert.Text)
	}
}

// dropOverMessage removes the message of an alert whose condition is over.
func (m *model) dropOverMessage() {
	if m.Toast.Text == "" {
		return
	}
	for _, e := range slices.Backward(m.Live.Lane) {
		if e.Text == m.Toast.Text {
			if e.Answered {
				m.Toast = panel.Toast{}
			}
			return
		}
	}
}

func (m *model) readFailed(err error) tea.Cmd {
	switch {
	case m.Reading.Ctx.Err() != nil:
	case errors.Is(err, io.EOF), m.Live.Over():
		m.Feed.Ended, m.Feed.Lost = true, nil
	case m.Replay != nil:
		m.Feed.Err = err
		m.Say(cell.Alert, "the recording cannot be read further: "+err.Error())
	default:
		m.connectionLost(err)
	}
	return nil
}

// pollResumed checks whether an ended run was resumed, and then follows it.
func (m *model) pollResumed() tea.Cmd {
	if !m.Feed.Ended || m.Replay != nil || m.Feed.Asking || m.Opt.Clock().Before(m.Feed.Again) {
		return nil
	}
	m.Feed.Asking = true
	gen, ctx, src := m.Feed.Gen, m.Reading.Ctx, m.Opt.Source
	return m.SessionJob(func() tea.Msg {
		v, err := src.Snapshot(ctx, math.MaxUint64)
		return panel.Reply(func(*panel.Host) tea.Cmd {
			if gen != m.Feed.Gen {
				return nil
			}
			m.Feed.Asking, m.Feed.Again = false, m.Opt.Clock().Add(maxRetryWait)
			if err != nil || v.Position <= m.Live.Position {
				return nil
			}
			m.Say(cell.Good, "the run was resumed after round "+textfmt.Grouped(m.Live.Progress.Rounds))
			return m.seek(math.MaxUint64)
		})
	})
}
