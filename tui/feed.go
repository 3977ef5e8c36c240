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

// feed is the reading of the source: one command at a time, of the generation that a seek begins.
type feed struct {
	gen    int
	cancel context.CancelFunc
	ctx    context.Context
	ended  bool  // nothing further will come
	err    error // why a recording cannot be read further
	lost   *lost // a live run does not answer; nil: it does
	loaded bool  // a snapshot has arrived
	asking bool  // whether a run that has ended goes on
	again  time.Time
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

// maxBatch bounds how long one Update takes.
const maxBatch = 4096

// seek drops what is being read and begins at another position.
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

// read waits for records and then takes what else arrives within a frame, so that a frame is one message.
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
			if err != nil { // told now: to ask again may take long
				return batchMsg{gen, b, err}
			}
			b.Records = append(b.Records[:len(b.Records):len(b.Records)], more.Records...)
			b.Next, b.Live = more.Next, more.Live
		}
		return batchMsg{gen, b, nil}
	})
}

// took begins from a snapshot.
func (m *model) took(msg snapshotMsg) tea.Cmd {
	if msg.gen != m.feed.gen {
		return nil
	}
	if msg.err != nil {
		return m.broke(msg.err)
	}
	frozen := m.frozen()
	m.live, m.feed.loaded, m.heard = msg.view, true, m.opt.Clock()
	m.found()
	if !frozen || m.replay != nil {
		m.shown = m.live
	}
	m.refresh()
	return m.read()
}

// fold applies a frame's records.
func (m *model) fold(msg batchMsg) tea.Cmd {
	if msg.gen != m.feed.gen {
		return nil
	}
	if len(msg.batch.Records) > 0 {
		m.heard = m.opt.Clock()
	}
	for _, r := range msg.batch.Records {
		m.live.Apply(r)
		m.notice(r)
	}
	m.refresh()
	if msg.err != nil {
		return m.broke(msg.err)
	}
	return m.read()
}

// notice says what a person should see at once.
func (m *model) notice(r event.Record) {
	m.overhear(r)
	if r.Alert != nil && r.Alert.Level == event.LevelError {
		m.say(cell.Alert, r.Alert.Text)
	}
}

func (m *model) broke(err error) tea.Cmd {
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

// revive asks a run that has ended whether somebody resumed it, and follows it then.
func (m *model) revive() tea.Cmd {
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
