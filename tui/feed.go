package tui

import (
	"context"
	"errors"
	"io"
	"math"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
)

// feed is the state of reading the source. One read command is active at a time. A seek begins a new generation;
// messages of older ones are dropped.
type feed struct {
	gen    int
	cancel context.CancelFunc
	ctx    context.Context
	ended  bool      // no more records will arrive
	err    error     // read error of a recording
	lost   *lost     // set while a live run does not answer
	loaded bool      // a snapshot has arrived
	asking bool      // a request whether an ended run was resumed is pending
	again  time.Time // when to send the next such request
}

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
	if m.feed.cancel != nil {
		m.feed.cancel()
	}
	gen := m.feed.gen + 1
	ctx, cancel := context.WithCancel(m.reading.ctx)
	m.feed = feed{gen: gen, ctx: ctx, cancel: cancel, loaded: m.feed.loaded, lost: m.feed.lost}
	src := m.opt.Source
	return m.task(func() tea.Msg {
		v, err := src.Snapshot(ctx, at)
		return snapshotMsg{gen, v, err}
	})
}

func (m *model) scan() tea.Cmd {
	ctx, r := m.reading.ctx, m.replay
	return m.task(func() tea.Msg { return scannedMsg{r.Scan(ctx)} })
}

// read waits for records, then collects those that arrive within one frame, so that one frame is one message.
func (m *model) read() tea.Cmd {
	gen, ctx, src, after := m.feed.gen, m.feed.ctx, m.opt.Source, m.live.Position
	return m.task(func() tea.Msg {
		b, err := src.Next(ctx, after, maxBatch)
		if err != nil {
			return batchMsg{gen, b, err}
		}
		short, cancel := context.WithTimeout(ctx, frame)
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
	if msg.gen != m.feed.gen {
		return nil
	}
	if msg.err != nil {
		return m.readFailed(msg.err)
	}
	frozen := m.frozen()
	m.live, m.feed.loaded, m.lastRecordAt = msg.view, true, m.opt.Clock()
	m.found()
	if !frozen || m.replay != nil {
		m.shown = m.live
	}
	m.refresh()
	return m.read()
}

// fold applies the records of a batch and reads on.
func (m *model) fold(msg batchMsg) tea.Cmd {
	if msg.gen != m.feed.gen {
		return nil
	}
	if len(msg.batch.Records) > 0 {
		m.lastRecordAt = m.opt.Clock()
	}
	for _, r := range msg.batch.Records {
		m.live.Apply(r)
		m.notice(r)
	}
	m.refresh()
	if msg.err != nil {
		return m.readFailed(msg.err)
	}
	return m.read()
}

// notice shows messages for a record that needs attention at once.
func (m *model) notice(r event.Record) {
	m.reportOthersChange(r)
	if r.Alert != nil && r.Alert.Level == event.LevelError {
		m.say(cell.Alert, r.Alert.Text)
	}
}

func (m *model) readFailed(err error) tea.Cmd {
	switch {
	case m.reading.ctx.Err() != nil:
	case errors.Is(err, io.EOF), m.live.Over():
		m.feed.ended, m.feed.lost = true, nil
	case m.replay != nil:
		m.feed.err = err
		m.say(cell.Alert, "the recording cannot be read further: "+err.Error())
	default:
		m.miss(err)
	}
	return nil
}

// pollResumed asks whether an ended run was resumed, and then follows it.
func (m *model) pollResumed() tea.Cmd {
	if !m.feed.ended || m.replay != nil || m.feed.asking || m.opt.Clock().Before(m.feed.again) {
		return nil
	}
	m.feed.asking = true
	gen, ctx, src := m.feed.gen, m.reading.ctx, m.opt.Source
	return m.task(func() tea.Msg {
		v, err := src.Snapshot(ctx, math.MaxUint64)
		return reply(func(m *model) tea.Cmd {
			if gen != m.feed.gen {
				return nil
			}
			m.feed.asking, m.feed.again = false, m.opt.Clock().Add(lastWait)
			if err != nil || v.Position <= m.live.Position {
				return nil
			}
			m.say(cell.Good, "the run goes on: it was resumed after round "+round(m.live.Progress.Rounds))
			return m.seek(math.MaxUint64)
		})
	})
}

func (m *model) frozen() bool { return m.shown != m.live }
