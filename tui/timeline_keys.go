package tui

import (
	"math"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/replay"
)

// travel is the state of the moves through a recording. One seek is awaited at a time: of the moves that follow, the
// newest begins after it, so that a held key or a drag shows each position that was read.
type travel struct {
	awaited bool          // a snapshot was requested
	again   bool          // a newer move waits for it
	to      view.Position // of the newest move
}

// timelineKeys returns the keys that move in time: the position of a recording, and the cursor in the charts of a live
// run.
func (m *model) timelineKeys() []panel.Binding {
	key := func(name, title string, do func() tea.Cmd) panel.Binding {
		return panel.Binding{Keys: []string{name}, Title: title, Group: groupTimeline,
			When: func(*panel.Host) bool { return m.movesInTime() },
			Do:   func(*panel.Host) tea.Cmd { return do() }}
	}
	percent := func(d int, n uint64) func() tea.Cmd { return func() tea.Cmd { return m.movePercent(d, n) } }
	commit := func(d int) func() tea.Cmd { return func() tea.Cmd { return m.moveCommit(d) } }
	mark := func(d int) func() tea.Cmd { return func() tea.Cmd { return m.moveMark(d) } }
	rows := []panel.Binding{
		key("left", "1 % back", percent(-1, 1)),
		key("right", "1 % forward", percent(1, 1)),
		key("pgup", "10 % back", percent(-1, 10)),
		key("pgdown", "10 % forward", percent(1, 10)),
		key(",", "previous commit, or live round", commit(-1)),
		key(".", "next commit, or live round", commit(1)),
		key("{", "previous mark", mark(-1)),
		key("}", "next mark", mark(1)),
		key("home", "beginning", func() tea.Cmd { return m.moveTo(0) }),
		key("end", "end; follow the live run", m.moveToEnd),
	}
	for kind := replay.Alert; kind > 0; kind-- { // the legend
		s := markStyles[kind]
		rows = append(rows, panel.Binding{Show: string(s.glyph), Title: "mark: " + s.title, Group: groupTimeline})
	}
	return rows
}

// playKeys returns the keys that play a recording.
func (m *model) playKeys() []panel.Binding {
	on := func(m *panel.Host) bool { return m.Replay != nil }
	speed := func(f float64) func(*panel.Host) tea.Cmd {
		return func(m *panel.Host) tea.Cmd {
			_, s := m.Replay.Playing()
			m.Replay.SetSpeed(s * f)
			return nil
		}
	}
	return []panel.Binding{
		{
			Keys:  []string{"space"},
			Title: "play or pause",
			Group: groupRecording,
			When:  on,
			Do: func(m *panel.Host) tea.Cmd {
				playing, _ := m.Replay.Playing()
				m.Replay.Pause(playing)
				return nil
			},
		},
		{Keys: []string{"<"}, Title: "half the speed", Group: groupRecording, When: on, Do: speed(0.5)},
		{Keys: []string{">"}, Title: "twice the speed", Group: groupRecording, When: on, Do: speed(2)},
	}
}

// movesInTime reports whether the keys of the timeline apply.
func (m *model) movesInTime() bool {
	return !m.KnobsFocused() && (m.Replay != nil || m.screens()[m.screen].Charts)
}

// seekTo moves a recording to a position, after the awaited seek if there is one.
func (m *model) seekTo(at view.Position) tea.Cmd {
	if m.travel.awaited {
		m.travel.again, m.travel.to = true, at
		return nil
	}
	return m.seek(at)
}

// position returns the position of a recording after all moves that were requested.
func (m *model) position() view.Position {
	if m.travel.awaited {
		return min(m.travel.to, m.Replay.Extent().Records)
	}
	return m.Live.Position
}

// moveTo moves to a round, 0 for the beginning. Beyond the last round it is the end.
func (m *model) moveTo(round uint64) tea.Cmd {
	switch {
	case m.Replay == nil:
		m.SetCursor(round)
		return nil
	case round >= m.Replay.Extent().Rounds:
		return m.moveToEnd()
	}
	return m.seekTo(m.Replay.Known(round))
}

// moveToEnd moves to the end of a recording. In a live run it removes the cursor, so that the display follows the run.
func (m *model) moveToEnd() tea.Cmd {
	if m.Replay == nil {
		m.Cursor = panel.Cursor{}
		return nil
	}
	return m.seekTo(math.MaxUint64)
}

// movePercent moves by a share of the recording, or of the shown rounds of a live run: by one commit or round at least.
func (m *model) movePercent(d int, percent uint64) tea.Cmd {
	if m.Replay == nil {
		m.MoveCursor(d, percent)
		return nil
	}
	from, total := m.position(), m.Replay.Extent().Rounds
	at, by := m.Replay.RoundAt(from), max(1, total*percent/100)
	to := m.Replay.Known(at - min(at, by))
	if d > 0 {
		if at+by >= total {
			return m.moveToEnd()
		}
		to = m.Replay.Known(at + by)
	}
	if d < 0 && to >= from || d > 0 && to <= from { // the next commit is further away
		to = m.Replay.Step(from, d)
	}
	return m.seekTo(to)
}

// moveCommit moves by a commit, or by a round of a live run, and pauses a recording.
func (m *model) moveCommit(d int) tea.Cmd {
	if m.Replay == nil {
		m.MoveCursor(d, 0)
		return nil
	}
	m.Replay.Pause(true)
	return m.seekTo(m.Replay.Step(m.position(), d))
}

// moveMark moves to the next mark for d > 0, else to the previous one, and pauses a recording.
func (m *model) moveMark(d int) tea.Cmd {
	// In a recording a mark is the position after its record, so that its event is shown.
	key, from := func(k replay.Mark) uint64 { return k.Round }, m.Shown.Progress.Rounds+1
	switch {
	case m.Replay != nil:
		m.Replay.Pause(true)
		key, from = func(k replay.Mark) uint64 { return k.At }, m.position()
	case m.Cursor.On:
		from = m.Cursor.Round
	}
	best, found := uint64(0), false
	for k := range m.marks() {
		at := key(k)
		if d < 0 && at < from && (!found || at > best) || d > 0 && at > from && (!found || at < best) {
			best, found = at, true
		}
	}
	switch {
	case !found && d < 0:
		m.Say(cell.Warn, "there is no mark before this round")
	case !found:
		m.Say(cell.Warn, "there is no mark after this round")
	case m.Replay == nil:
		m.SetCursor(best)
	default:
		return m.seekTo(best)
	}
	return nil
}
