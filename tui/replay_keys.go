package tui

import (
	"math"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/view"
	"brood/tui/panel"
)

func (m *model) replayKeys() []panel.Binding {
	on := func(m *panel.Host) bool { return m.Replay != nil && !m.KnobsFocused() }
	step := func(d int, events bool) func(*panel.Host) tea.Cmd {
		return func(*panel.Host) tea.Cmd {
			r := m.Replay
			return m.seekFrom(func(from view.Position) view.Position {
				r.Pause(true)
				return r.Step(from, d, events)
			})
		}
	}
	speed := func(f float64) func(*panel.Host) tea.Cmd {
		return func(m *panel.Host) tea.Cmd {
			r := m.Replay
			return func() tea.Msg { _, s := r.Playing(); r.SetSpeed(s * f); return nil }
		}
	}
	to := func(at view.Position) func(*panel.Host) tea.Cmd {
		return func(*panel.Host) tea.Cmd { return m.seek(at) }
	}
	return []panel.Binding{
		{
			Keys:  []string{"space"},
			Title: "play or pause",
			Group: groupRecording,
			When:  func(m *panel.Host) bool { return m.Replay != nil },
			Do: func(m *panel.Host) tea.Cmd {
				r := m.Replay
				return func() tea.Msg { on, _ := r.Playing(); r.Pause(on); return nil }
			},
		},
		{Keys: []string{"left", ","}, Title: "previous commit", Group: groupRecording, When: on, Do: step(-1, false)},
		{Keys: []string{"right", "."}, Title: "next commit", Group: groupRecording, When: on, Do: step(1, false)},
		{Keys: []string{"{"}, Title: "previous event", Group: groupRecording, When: on, Do: step(-1, true)},
		{Keys: []string{"}"}, Title: "next event", Group: groupRecording, When: on, Do: step(1, true)},
		{Keys: []string{"<"}, Title: "half the speed", Group: groupRecording, When: on, Do: speed(0.5)},
		{Keys: []string{">"}, Title: "twice the speed", Group: groupRecording, When: on, Do: speed(2)},
		{Keys: []string{"home"}, Title: "beginning", Group: groupRecording, When: on, Do: to(0)},
		{Keys: []string{"end"}, Title: "end", Group: groupRecording, When: on, Do: to(math.MaxUint64)},
	}
}

// seekFrom seeks to the position that find returns for the present one.
func (m *model) seekFrom(find func(view.Position) view.Position) tea.Cmd {
	from, gen := m.Live.Position, m.Feed.Gen
	return func() tea.Msg {
		if at := find(from); at != from {
			return seekMsg{gen: gen, at: at}
		}
		return nil
	}
}
