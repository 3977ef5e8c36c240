package tui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/panel/runs"
)

// Groups of help that do not belong to a panel.
const (
	groupTimeline  = "timeline"
	groupRecording = "recording"
	groupRun       = "run"
	groupView      = "view"
	groupLeave     = "leave"
)

// bindings returns the keys that work now, in order of precedence: those of the focused panel, the anywhere keys of
// other panels, and those of the workbench. The first row that contains a key and applies wins.
func (m *model) bindings() []panel.Binding {
	rows := slices.Clone(m.panel(m.Focus).Keys)
	for _, p := range m.panels {
		for _, b := range p.Keys {
			if b.Anywhere && p.ID != m.Focus {
				rows = append(rows, b)
			}
		}
	}
	return append(rows, m.ownKeys()...)
}

// ownKeys returns the keys that do not belong to a panel.
func (m *model) ownKeys() []panel.Binding {
	why := func(f func() string) func(*panel.Host) string { return func(*panel.Host) string { return f() } }
	do := func(f func() tea.Cmd) func(*panel.Host) tea.Cmd { return func(*panel.Host) tea.Cmd { return f() } }
	change := func(f func()) func(*panel.Host) tea.Cmd { return func(*panel.Host) tea.Cmd { f(); return nil } }
	run := func(line string) func(*panel.Host) tea.Cmd { return func(*panel.Host) tea.Cmd { return m.Run(line) } }
	return slices.Concat(
		m.timelineKeys(),
		m.playKeys(),
		group(groupRun, (*panel.Host).WhyNoCommand, []panel.Binding{
			{Keys: []string{"space"}, Title: "pause or resume", Do: do(m.pauseOrResume)},
			{Keys: []string{"s"}, Title: "save a checkpoint", Do: run("save")},
		}),
		group(groupRun, nil, []panel.Binding{
			{Keys: []string{"z"}, Title: "undo your last knob change",
				Why: why(func() string { return m.whyNoTurn(undo) }), Do: do(m.undoLast)},
			{Keys: []string{"Z"}, Title: "redo it",
				Why: why(func() string { return m.whyNoTurn(redo) }), Do: do(m.redoLast)},
			{Keys: []string{"B"}, Title: "branch off here (asks)", Why: why(m.whyNoBranch), Do: do(m.branch)},
			{Keys: []string{"X"}, Title: "stop the run (asks)", Why: (*panel.Host).WhyNoCommand,
				Do: run("stop")},
			{Keys: []string{"N"}, Title: "start a new run", Why: runs.WhyNoLaunch, Do: run("new")},
			{Keys: []string{":"}, Title: "command line", Do: do(m.openPrompt)},
			{Keys: []string{"ctrl+p"}, Title: "palette of all actions", Do: do(m.openPalette)},
		}),
		group(groupView, nil, []panel.Binding{
			{Keys: []string{"tab"}, Title: "next panel", Do: change(func() { m.moveFocus(1) })},
			{Keys: []string{"shift+tab"}, Title: "previous panel", Do: change(func() { m.moveFocus(-1) })},
			{Keys: []string{"k"}, Title: "knobs: open (esc closes)", Why: needsRun, Do: do(m.openRail)},
			{Keys: []string{"e"}, Title: "expand the panel", Do: do(m.expand)},
		}),
		group(groupView, needsRun, []panel.Binding{
			{Keys: []string{"f"}, Title: "freeze the display", Do: do(m.freeze)},
			{Keys: []string{"["}, Title: "previous member", Do: change(func() { m.moveMember(-1) })},
			{Keys: []string{"]"}, Title: "next member", Do: change(func() { m.moveMember(1) })},
			{Keys: []string{"b"}, Title: "focus the first of the ranking", Do: change(m.bestMember)},
		}),
		group(groupView, nil, []panel.Binding{
			{Keys: []string{"o"}, Title: "y axis of losses: log or linear",
				Do: change(func() { m.LogAxis = !m.LogAxis })},
			{Keys: []string{"O"}, Title: "x axis: round, step, sample, ...", Why: needsRun,
				Do: (*panel.Host).NextAxis},
			{Keys: []string{"A"}, Title: "axes with outliers, or without", Do: (*panel.Host).ToggleOutliers},
			{Keys: []string{"m"}, Title: "smoother curves, then none",
				Do: do(func() tea.Cmd { return m.ChangeSmoothing(1) })},
			{Keys: []string{"M"}, Title: "rougher curves",
				Do: do(func() tea.Cmd { return m.ChangeSmoothing(-1) })},
		}),
		group(groupView, needsRun, []panel.Binding{
			{Keys: []string{"+", "="}, Show: "+", Title: "zoom into the last rounds",
				Do: do(func() tea.Cmd { return m.Zoom(true) })},
			{Keys: []string{"-"}, Title: "zoom out", Do: do(func() tea.Cmd { return m.Zoom(false) })},
			{Keys: []string{"H", "shift+left"}, Title: "earlier rounds",
				Do: do(func() tea.Cmd { return m.Pan(-1) })},
			{Keys: []string{"L", "shift+right"}, Title: "later rounds",
				Do: do(func() tea.Cmd { return m.Pan(1) })},
			{Keys: []string{"0"}, Title: "the whole run", Do: (*panel.Host).WholeRun},
			{Keys: []string{"x"}, Title: "acknowledge alerts",
				Do: change(func() { m.Acked = m.Live.Position })},
		}),
		group(groupView, nil, []panel.Binding{
			{Keys: []string{"/"}, Title: "filter the list", Why: why(m.whyNoFilter), Do: do(m.openFilter)},
			{Keys: []string{"E"}, Title: "export the panel as CSV", Why: why(m.whyNoExport), Do: do(m.export)},
			{Keys: []string{"y"}, Title: "copy the numbers", Why: needsRun, Do: do(m.copyNumbers)},
			{Keys: []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}, Show: "1-9", Title: "screens"},
			{Keys: []string{"?"}, Title: "help", Do: change(func() { m.Popup = &help{m: m} })},
			{Keys: []string{"esc"}, Title: "back", Do: do(m.back)},
		}),
		group(groupLeave, nil, []panel.Binding{
			{Keys: []string{"q", "ctrl+c"}, Show: "q", Title: "detach: training continues",
				Do: do(func() tea.Cmd { return tea.Quit })},
			{Keys: []string{"ctrl+z"}, Title: "suspend: fg resumes", Do: do(m.suspend)},
		}),
	)
}

// group returns rows of one group of help. Those without their own Why get that of the group.
func group(name string, why func(*panel.Host) string, rows []panel.Binding) []panel.Binding {
	for i := range rows {
		rows[i].Group = name
		if rows[i].Why == nil {
			rows[i].Why = why
		}
	}
	return rows
}

// needsRun returns the message that no run is open; "" if one is.
func needsRun(m *panel.Host) string {
	if m.Opt.Source == nil {
		return panel.NoRunText
	}
	return ""
}

// key handles a key press. An open dialog, prompt or field takes it first, then the key table. name is the name of
// Bubble Tea, text the characters typed.
func (m *model) key(name, text string) tea.Cmd {
	switch name { // these keys work in every state
	case "ctrl+c":
		return tea.Quit
	case "ctrl+z":
		return m.suspend()
	}
	switch {
	case m.Popup != nil:
		return m.Popup.Key(m.Host, name, text)
	case m.prompt != nil:
		return m.promptKey(name, text)
	case m.Filters.Typing != nil:
		return m.filterKey(name, text)
	}
	if t := m.openInput(); t != nil {
		return t.Key(m.Host, name, text)
	}
	if m.Toast.Role == cell.Alert || m.Toast.Role == cell.Warn { // the user has read the message by now
		m.Toast = panel.Toast{}
	}
	if len(name) == 1 && name[0] >= '1' && name[0] <= '9' {
		return m.digit(int(name[0] - '0'))
	}
	for _, b := range m.bindings() {
		if b.Do == nil || !slices.Contains(b.Keys, name) || b.When != nil && !b.When(m.Host) {
			continue
		}
		return m.Try(b.Why, b.Do)
	}
	return nil
}

// suspend stops this process until its shell resumes it. Training continues in another process.
func (m *model) suspend() tea.Cmd {
	if !m.Opt.Suspend {
		m.Say(cell.Warn, "no shell here can resume the workbench: q leaves it, and training continues")
		return nil
	}
	return tea.Suspend
}

// paste handles pasted text.
func (m *model) paste(text string) tea.Cmd {
	switch {
	case m.Popup != nil:
		return m.Popup.Key(m.Host, "", text)
	case m.prompt != nil:
		return m.promptKey("", text)
	case m.Filters.Typing != nil:
		return m.filterKey("", text)
	}
	if t := m.openInput(); t != nil {
		return t.Key(m.Host, "", text)
	}
	return nil
}
