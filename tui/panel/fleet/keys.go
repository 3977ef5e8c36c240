package fleet

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/tui/panel"
)

// keys returns the bindings of the table of workers and of the panel of one worker.
func (f *Fleet) keys() (table, worker []panel.Binding) {
	do := func(change func(*panel.Host)) func(*panel.Host) tea.Cmd {
		return func(m *panel.Host) tea.Cmd { change(m); return nil }
	}
	move := panel.Steps(f.move)
	some := func(m *panel.Host) string {
		if rows, _ := f.Rows(m); len(rows) == 0 {
			return "there is no worker to choose"
		}
		return ""
	}
	act := func(a event.Action) (func(*panel.Host) string, func(*panel.Host) tea.Cmd) {
		why := func(m *panel.Host) string { _, why := f.eligible(m, a); return why }
		return why, func(m *panel.Host) tea.Cmd { ids, _ := f.eligible(m, a); return f.confirm(m, a, ids) }
	}
	mayCordon, cordon := act(event.Cordon)
	mayUncordon, uncordon := act(event.Uncordon)
	mayDrain, drain := act(event.Drain)
	mayKill, kill := act(event.Kill)
	choose := []panel.Binding{
		{Keys: []string{"j", "down"}, Title: "next worker", Do: move(1)},
		{Keys: []string{"k", "up"}, Title: "previous worker", Do: move(-1)},
		{Keys: []string{"g"}, Title: "first worker", Do: move(-1 << 30)},
		{Keys: []string{"G"}, Title: "last worker", Do: move(1 << 30)},
	}
	mark := []panel.Binding{
		{Keys: []string{"enter"}, Title: "details of the worker", Why: some, Do: openWorker},
		{Keys: []string{"v"}, Title: "mark, for c d u K", Why: some, Do: do(f.mark)},
		{Keys: []string{"V"}, Title: "mark all or none", Why: some, Do: do(f.markAll)},
	}
	change := []panel.Binding{
		{Keys: []string{"c"}, Title: "cordon: assign no more members", Why: mayCordon, Do: cordon},
		{Keys: []string{"d"}, Title: "drain: move its members now", Why: mayDrain, Do: drain},
		{Keys: []string{"u"}, Title: "uncordon: assign members again", Why: mayUncordon, Do: uncordon},
		{Keys: []string{"K"}, Title: "kill, to test failures (asks)", Why: mayKill, Do: kill},
	}
	order := []panel.Binding{
		{Keys: []string{"o"}, Title: "order by the next column", Do: do(func(*panel.Host) { f.reorder(1) })},
		{Keys: []string{"O"}, Title: "reverse the order", Do: do(func(*panel.Host) { f.reversed = !f.reversed })},
	}
	return slices.Concat(choose, mark, change, order), slices.Concat(choose, change)
}

// linkKeys returns the bindings of the matrix.
func (f *Fleet) linkKeys() []panel.Binding {
	live := func(m *panel.Host) bool { return m.Replay == nil }
	move := func(dx, dy int) func(*panel.Host) tea.Cmd {
		return func(*panel.Host) tea.Cmd { f.moveLink(dx, dy); return nil }
	}
	return []panel.Binding{
		{Keys: []string{"j", "down"}, Title: "row below", When: live, Do: move(0, 1)},
		{Keys: []string{"k", "up"}, Title: "row above", When: live, Do: move(0, -1)},
		{Keys: []string{"h", "left"}, Title: "column to the left", When: live, Do: move(-1, 0)},
		{Keys: []string{"l", "right"}, Title: "column to the right", When: live, Do: move(1, 0)},
		{
			Keys:  []string{"enter"},
			Title: "slow down the link, row or column",
			When:  live,
			Why:   f.whyNoShape,
			Do:    f.openShaper,
		},
		{Keys: []string{"u"}, Title: "remove the slowdown", When: live, Why: f.whyNoShape, Do: f.resetLinks},
		{Keys: []string{"t"}, Title: "bytes, round trip or loss", When: live, Do: func(*panel.Host) tea.Cmd {
			f.measure = (f.measure + 1) % len(linkMeasures())
			return nil
		}},
	}
}

// openWorker moves the focus to the panel of the chosen worker. The panel fills the screen if the layout has no place
// for it.
func openWorker(m *panel.Host) tea.Cmd {
	m.Focus, m.Expanded = panel.Worker, false
	m.PlacePanels()
	m.Expanded = !slices.Contains(panel.PanelIDs(m.Placed), panel.Worker)
	return nil
}

// hints returns the most useful keys of the screen, without commands if none can be sent.
func (f *Fleet) hints(m *panel.Host) (out [][2]string) {
	may := m.WhyNoCommand() == ""
	switch {
	case m.Focus == panel.Links && m.Replay == nil && len(f.Now.Links) > 0:
		out = append(out, [2]string{"hjkl", "choose"}, [2]string{"enter", "slow down"}, [2]string{"u", "full speed"},
			[2]string{"t", "measure"})
	case m.Focus == panel.Fleet:
		out = append(out, [2]string{"enter", "details"})
		if may {
			out = append(out, [2]string{"v", "mark"})
		}
	}
	if may && m.Focus != panel.Links {
		out = append(out, [2]string{"c", "cordon"}, [2]string{"d", "drain"}, [2]string{"K", "kill"},
			[2]string{"u", "uncordon"})
	}
	if m.Focus == panel.Fleet {
		out = append(out, [2]string{"o", "order"}, [2]string{"/", "filter"})
	}
	return append(out, [2]string{"tab", "panel"}, [2]string{"e", "expand"}, [2]string{":", "command"})
}
