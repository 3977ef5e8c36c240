package tui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
)

// keys returns the bindings of the table of workers and of the panel of one worker.
func (f *fleet) keys() (table, worker []binding) {
	do := func(change func(*model)) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { change(m); return nil }
	}
	move := func(d int) func(*model) tea.Cmd { return do(func(m *model) { f.move(m, d) }) }
	some := func(m *model) string {
		if rows, _ := f.rows(m); len(rows) == 0 {
			return "there is no worker to choose"
		}
		return ""
	}
	act := func(a event.Action) (func(*model) string, func(*model) tea.Cmd) {
		why := func(m *model) string { _, why := f.eligible(m, a); return why }
		return why, func(m *model) tea.Cmd { ids, _ := f.eligible(m, a); return f.ask(m, a, ids) }
	}
	mayCordon, cordon := act(event.Cordon)
	mayUncordon, uncordon := act(event.Uncordon)
	mayDrain, drain := act(event.Drain)
	mayKill, kill := act(event.Kill)
	choose := []binding{
		{keys: []string{"j", "down"}, title: "next worker", do: move(1)},
		{keys: []string{"k", "up"}, title: "worker before", do: move(-1)},
		{keys: []string{"g"}, title: "first worker", do: move(-1 << 30)},
		{keys: []string{"G"}, title: "last worker", do: move(1 << 30)},
	}
	mark := []binding{
		{keys: []string{"enter"}, title: "details of the worker", why: some, do: (*model).openWorker},
		{keys: []string{"v"}, title: "mark, for c d u K", why: some, do: do(f.mark)},
		{keys: []string{"V"}, title: "mark all or none", why: some, do: do(f.markAll)},
	}
	change := []binding{
		{keys: []string{"c"}, title: "cordon: no members any more", why: mayCordon, do: cordon},
		{keys: []string{"d"}, title: "drain: members move away now", why: mayDrain, do: drain},
		{keys: []string{"u"}, title: "uncordon: takes part again", why: mayUncordon, do: uncordon},
		{keys: []string{"K"}, title: "kill, to try faults (asks)", why: mayKill, do: kill},
	}
	order := []binding{
		{keys: []string{"o"}, title: "order by the next column", do: do(func(*model) { f.reorder(1) })},
		{keys: []string{"O"}, title: "turn the order round", do: do(func(*model) { f.turned = !f.turned })},
	}
	return slices.Concat(choose, mark, change, order), slices.Concat(choose, change)
}

// linkKeys returns the bindings of the matrix.
func (f *fleet) linkKeys() []binding {
	live := func(m *model) bool { return m.replay == nil }
	move := func(dx, dy int) func(*model) tea.Cmd {
		return func(*model) tea.Cmd { f.moveLink(dx, dy); return nil }
	}
	return []binding{
		{keys: []string{"j", "down"}, title: "row below", when: live, do: move(0, 1)},
		{keys: []string{"k", "up"}, title: "row above", when: live, do: move(0, -1)},
		{keys: []string{"h", "left"}, title: "column to the left", when: live, do: move(-1, 0)},
		{keys: []string{"l", "right"}, title: "column to the right", when: live, do: move(1, 0)},
		{
			keys:  []string{"enter"},
			title: "slow the link, row or column down",
			when:  live,
			why:   f.whyNoShape,
			do:    f.openShaper,
		},
		{keys: []string{"u"}, title: "let it go again", when: live, why: f.whyNoShape, do: f.resetLinks},
		{keys: []string{"t"}, title: "bytes, round trip or loss", when: live, do: func(*model) tea.Cmd {
			f.measure = (f.measure + 1) % len(linkMeasures())
			return nil
		}},
	}
}

// openWorker moves the focus to the panel of the chosen worker. The panel fills the screen if the layout has no place
// for it.
func (m *model) openWorker() tea.Cmd {
	m.focus, m.expanded = workerPanel, false
	m.layout()
	m.expanded = !slices.Contains(ids(m.placed), workerPanel)
	return nil
}

// hints returns the most useful keys of the screen, without commands if none can be sent.
func (f *fleet) hints(m *model) (out [][2]string) {
	may := m.whyNoCommand() == ""
	switch {
	case m.focus == linksPanel && m.replay == nil && len(f.now.Links) > 0:
		out = append(out, [2]string{"hjkl", "choose"}, [2]string{"enter", "slow down"}, [2]string{"u", "let go"},
			[2]string{"t", "measure"})
	case m.focus == fleetPanel:
		out = append(out, [2]string{"enter", "details"})
		if may {
			out = append(out, [2]string{"v", "mark"})
		}
	}
	if may && m.focus != linksPanel {
		out = append(out, [2]string{"c", "cordon"}, [2]string{"d", "drain"}, [2]string{"K", "kill"},
			[2]string{"u", "uncordon"})
	}
	if m.focus == fleetPanel {
		out = append(out, [2]string{"o", "order"}, [2]string{"/", "filter"})
	}
	return append(out, [2]string{"tab", "panel"}, [2]string{"e", "expand"}, [2]string{":", "command"})
}
