package tui

import (
	"math"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/view"
)

func replayKeys() []binding {
	on := func(m *model) bool { return m.replay != nil && !m.onKnobs() }
	step := func(d int, events bool) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd {
			r := m.replay
			return m.still(func(from view.Position) view.Position {
				r.Pause(true)
				return r.Step(from, d, events)
			})
		}
	}
	speed := func(f float64) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd {
			r := m.replay
			return func() tea.Msg { _, s := r.Playing(); r.SetSpeed(s * f); return nil }
		}
	}
	to := func(at view.Position) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { return m.seek(at) }
	}
	return []binding{
		{
			keys:  []string{"space"},
			title: "play or pause",
			group: playing,
			when:  func(m *model) bool { return m.replay != nil },
			do: func(m *model) tea.Cmd {
				r := m.replay
				return func() tea.Msg { on, _ := r.Playing(); r.Pause(on); return nil }
			},
		},
		{keys: []string{"left", ","}, title: "commit before", group: playing, when: on, do: step(-1, false)},
		{keys: []string{"right", "."}, title: "next commit", group: playing, when: on, do: step(1, false)},
		{keys: []string{"{"}, title: "event before", group: playing, when: on, do: step(-1, true)},
		{keys: []string{"}"}, title: "next event", group: playing, when: on, do: step(1, true)},
		{keys: []string{"<"}, title: "half the speed", group: playing, when: on, do: speed(0.5)},
		{keys: []string{">"}, title: "twice the speed", group: playing, when: on, do: speed(2)},
		{keys: []string{"home"}, title: "beginning", group: playing, when: on, do: to(0)},
		{keys: []string{"end"}, title: "end", group: playing, when: on, do: to(math.MaxUint64)},
	}
}

// still seeks to a place that is found from the present one.
func (m *model) still(find func(view.Position) view.Position) tea.Cmd {
	from, gen := m.live.Position, m.feed.gen
	return func() tea.Msg {
		if at := find(from); at != from {
			return seekMsg{gen: gen, at: at}
		}
		return nil
	}
}
