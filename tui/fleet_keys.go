package tui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
)

// fleetKeys are those of the workers' table, and of the panel of one of them.
func fleetKeys() []binding {
	on := func(m *model) bool { return m.focus == "fleet" || m.focus == "worker" }
	table := func(m *model) bool { return m.focus == "fleet" }
	do := func(f func(*fleet, *model)) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { f(&m.fleet, m); return nil }
	}
	move := func(d int) func(*model) tea.Cmd { return do(func(f *fleet, m *model) { f.move(m, d) }) }
	some := func(m *model) string {
		if rows, _ := m.fleet.rows(m); len(rows) == 0 {
			return "there is no worker to choose"
		}
		return ""
	}
	act := func(a event.Action) (func(*model) string, func(*model) tea.Cmd) {
		why := func(m *model) string { _, why := m.able(a); return why }
		return why, func(m *model) tea.Cmd { ids, _ := m.able(a); return m.ask(a, ids) }
	}
	mayCordon, cordon := act(event.Cordon)
	mayUncordon, uncordon := act(event.Uncordon)
	mayDrain, drain := act(event.Drain)
	mayKill, kill := act(event.Kill)
	return []binding{
		{keys: []string{"j", "down"}, title: "next worker", group: inFleet, when: on, do: move(1)},
		{keys: []string{"k", "up"}, title: "worker before", group: inFleet, when: on, do: move(-1)},
		{keys: []string{"g"}, title: "first worker", group: inFleet, when: on, do: move(-1 << 30)},
		{keys: []string{"G"}, title: "last worker", group: inFleet, when: on, do: move(1 << 30)},
		{keys: []string{"enter"}, title: "details of the worker", group: inFleet, when: table, why: some, do: (*model).openWorker},
		{keys: []string{"v"}, title: "mark, for c d u K", group: inFleet, when: table, why: some, do: do((*fleet).mark)},
		{keys: []string{"V"}, title: "mark all or none", group: inFleet, when: table, why: some, do: do((*fleet).markAll)},
		{keys: []string{"c"}, title: "cordon: no members any more", group: inFleet, when: on, why: mayCordon, do: cordon},
		{keys: []string{"d"}, title: "drain: members move away now", group: inFleet, when: on, why: mayDrain, do: drain},
		{keys: []string{"u"}, title: "uncordon: takes part again", group: inFleet, when: on, why: mayUncordon, do: uncordon},
		{keys: []string{"K"}, title: "kill, to try faults (asks)", group: inFleet, when: on, why: mayKill, do: kill},
		{keys: []string{"o"}, title: "order by the next column", group: inFleet, when: table, do: do(func(f *fleet, _ *model) { f.reorder(1) })},
		{keys: []string{"O"}, title: "turn the order round", group: inFleet, when: table, do: do(func(f *fleet, _ *model) { f.turned = !f.turned })},
	}
}

// linkKeys are those of the matrix.
func linkKeys() []binding {
	on := func(m *model) bool { return m.focus == "links" && m.replay == nil }
	move := func(dx, dy int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { m.fleet.moveLink(dx, dy); return nil }
	}
	return []binding{
		{keys: []string{"j", "down"}, title: "row below", group: inLinks, when: on, do: move(0, 1)},
		{keys: []string{"k", "up"}, title: "row above", group: inLinks, when: on, do: move(0, -1)},
		{keys: []string{"h", "left"}, title: "column to the left", group: inLinks, when: on, do: move(-1, 0)},
		{keys: []string{"l", "right"}, title: "column to the right", group: inLinks, when: on, do: move(1, 0)},
		{keys: []string{"enter"}, title: "slow the link, row or column down", group: inLinks, when: on, why: (*model).mayShape, do: (*model).openShaper},
		{keys: []string{"u"}, title: "let it go again", group: inLinks, when: on, why: (*model).mayShape, do: (*model).letGo},
		{keys: []string{"t"}, title: "bytes, round trip or loss", group: inLinks, when: on, do: func(m *model) tea.Cmd {
			m.fleet.measure = (m.fleet.measure + 1) % len(linkMeasures())
			return nil
		}},
	}
}

// openWorker goes to the panel of the chosen worker, over the whole screen where it has no place.
func (m *model) openWorker() tea.Cmd {
	m.focus, m.expanded = "worker", false
	m.layout()
	m.expanded = !slices.Contains(m.panels(), "worker")
	return nil
}

// fleetHints are the keys that matter on the screen: of a recording nothing can be changed.
func (m *model) fleetHints() (out [][2]string) {
	may := m.mayCommand() == ""
	switch {
	case m.focus == "links" && m.replay == nil && len(m.fleet.now.Links) > 0:
		out = append(out, [2]string{"hjkl", "choose"}, [2]string{"enter", "slow down"}, [2]string{"u", "let go"}, [2]string{"t", "measure"})
	case m.focus == "fleet":
		out = append(out, [2]string{"enter", "details"})
		if may {
			out = append(out, [2]string{"v", "mark"})
		}
	}
	if may && m.focus != "links" {
		out = append(out, [2]string{"c", "cordon"}, [2]string{"d", "drain"}, [2]string{"K", "kill"}, [2]string{"u", "uncordon"})
	}
	if m.focus == "fleet" {
		out = append(out, [2]string{"o", "order"}, [2]string{"/", "filter"})
	}
	return append(out, [2]string{"tab", "panel"}, [2]string{"e", "expand"}, [2]string{":", "command"})
}
