package tui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"brood/tui/cell"
)

// binding is a row of a key table, which dispatch, help, palette and key line read.
type binding struct {
	keys  []string             // in the names of Bubble Tea
	show  string               // keys as help shows them; "": the names
	title string               // action in three or four words
	group string               // heading in help; "": that of the panel
	when  func(*model) bool    // the row applies now; nil: always
	why   func(*model) string  // message why the action is not possible now, "" if it is; nil: always possible
	do    func(*model) tea.Cmd // nil: only listed in help

	anywhere bool // key of a panel that works without its focus
}

// Groups of help that do not belong to a panel.
const (
	playing  = "recording"
	running  = "run"
	looking  = "view"
	leavings = "leave"
)

// bindings returns the keys that work now, in order of precedence: those of the focused panel, the anywhere keys of
// other panels, and those of the workbench. The first row that contains a key and applies wins.
func (m *model) bindings() []binding {
	rows := slices.Clone(m.panel(m.focus).keys)
	for _, p := range m.panels {
		for _, b := range p.keys {
			if b.anywhere && p.id != m.focus {
				rows = append(rows, b)
			}
		}
	}
	return append(rows, extraKeys()...)
}

// extraKeys returns the keys that do not belong to a panel.
func extraKeys() []binding {
	return append(replayKeys(), []binding{
		{
			keys:  []string{"space"},
			title: "pause or resume",
			group: running,
			why:   (*model).whyNoCommand,
			do:    (*model).pauseOrResume,
		},
		{
			keys:  []string{"s"},
			title: "save a checkpoint",
			group: running,
			why:   (*model).whyNoCommand,
			do:    func(m *model) tea.Cmd { return m.run("save") },
		},
		{keys: []string{"z"}, title: "undo your last knob change", group: running, why: whyNoUndo, do: (*model).turnBack},
		{keys: []string{"Z"}, title: "redo it", group: running, why: whyNoRedo, do: (*model).turnAgain},
		{
			keys:  []string{"B"},
			title: "branch off here (asks)",
			group: running,
			why:   (*model).whyNoBranch,
			do:    (*model).branch,
		},
		{
			keys:  []string{"X"},
			title: "stop the run (asks)",
			group: running,
			why:   (*model).whyNoCommand,
			do:    func(m *model) tea.Cmd { return m.run("stop") },
		},
		{
			keys:  []string{"N"},
			title: "begin a new run",
			group: running,
			why:   whyNoLaunch,
			do:    func(m *model) tea.Cmd { return m.run("new") },
		},
		{keys: []string{":"}, title: "command line", group: running, do: (*model).openPrompt},
		{
			keys:  []string{"ctrl+p"},
			title: "palette of all actions",
			group: running,
			do:    func(m *model) tea.Cmd { m.popup = newPalette(m); return nil },
		},
		{
			keys:  []string{"tab"},
			title: "next panel",
			group: looking,
			do:    func(m *model) tea.Cmd { m.moveFocus(1); return nil },
		},
		{
			keys:  []string{"shift+tab"},
			title: "panel before",
			group: looking,
			do:    func(m *model) tea.Cmd { m.moveFocus(-1); return nil },
		},
		{keys: []string{"k"}, title: "knobs: open (esc closes)", group: looking, why: needsRun, do: (*model).toggleRail},
		{keys: []string{"e"}, title: "expand the panel", group: looking, do: (*model).expand},
		{keys: []string{"f"}, title: "freeze the display", group: looking, why: needsRun, do: (*model).freeze},
		{
			keys:  []string{"["},
			title: "member before",
			group: looking,
			why:   needsRun,
			do:    func(m *model) tea.Cmd { m.moveMember(-1); return nil },
		},
		{
			keys:  []string{"]"},
			title: "next member",
			group: looking,
			why:   needsRun,
			do:    func(m *model) tea.Cmd { m.moveMember(1); return nil },
		},
		{
			keys:  []string{"b"},
			title: "focus the first of the ranking",
			group: looking,
			why:   needsRun,
			do:    func(m *model) tea.Cmd { m.bestMember(); return nil },
		},
		{
			keys:  []string{"o"},
			title: "y axis of losses: log or linear",
			group: looking,
			do:    func(m *model) tea.Cmd { m.logAxis = !m.logAxis; return nil },
		},
		{
			keys:  []string{"O"},
			title: "x axis: round, step, sample, ...",
			group: looking,
			why:   needsRun,
			do:    (*model).turnAxis,
		},
		{keys: []string{"A"}, title: "axes of all values, or of most", group: looking, do: (*model).showAll},
		{
			keys:  []string{"m"},
			title: "smoother curves, then none",
			group: looking,
			do:    func(m *model) tea.Cmd { return m.turnSmoothing(1) },
		},
		{
			keys:  []string{"M"},
			title: "rougher curves",
			group: looking,
			do:    func(m *model) tea.Cmd { return m.turnSmoothing(-1) },
		},
		{
			keys:  []string{"+", "="},
			show:  "+",
			title: "zoom into the last rounds",
			group: looking,
			why:   needsRun,
			do:    func(m *model) tea.Cmd { return m.zoom(true) },
		},
		{
			keys:  []string{"-"},
			title: "zoom out",
			group: looking,
			why:   needsRun,
			do:    func(m *model) tea.Cmd { return m.zoom(false) },
		},
		{
			keys:  []string{"H", "shift+left"},
			title: "earlier rounds",
			group: looking,
			why:   needsRun,
			do:    func(m *model) tea.Cmd { return m.pan(-1) },
		},
		{
			keys:  []string{"L", "shift+right"},
			title: "later rounds",
			group: looking,
			why:   needsRun,
			do:    func(m *model) tea.Cmd { return m.pan(1) },
		},
		{keys: []string{"0"}, title: "the whole run", group: looking, why: needsRun, do: (*model).wholeRun},
		{
			keys:  []string{"left", ","},
			title: "cursor in the charts, left",
			group: looking,
			when:  (*model).charting,
			do:    func(m *model) tea.Cmd { return m.step(-1) },
		},
		{
			keys:  []string{"right", "."},
			title: "cursor in the charts, right",
			group: looking,
			when:  (*model).charting,
			do:    func(m *model) tea.Cmd { return m.step(1) },
		},
		{
			keys:  []string{"x"},
			title: "acknowledge alerts",
			group: looking,
			why:   needsRun,
			do:    func(m *model) tea.Cmd { m.acked = m.live.Position; return nil },
		},
		{keys: []string{"/"}, title: "filter the list", group: looking, why: (*model).whyNoFilter, do: (*model).openFilter},
		{
			keys:  []string{"E"},
			title: "export the panel as CSV",
			group: looking,
			why:   (*model).whyNoExport,
			do:    (*model).export,
		},
		{keys: []string{"y"}, title: "copy the numbers", group: looking, why: needsRun, do: (*model).copyNumbers},
		{keys: []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}, show: "1-9", title: "screens", group: looking},
		{keys: []string{"?"}, title: "help", group: looking, do: func(m *model) tea.Cmd { m.popup = &help{}; return nil }},
		{keys: []string{"esc"}, title: "back", group: looking, do: (*model).back},
		{
			keys:  []string{"q", "ctrl+c"},
			show:  "q",
			title: "detach: training goes on",
			group: leavings,
			do:    func(*model) tea.Cmd { return tea.Quit },
		},
		{keys: []string{"ctrl+z"}, title: "suspend: fg comes back", group: leavings, do: (*model).suspend},
	}...)
}

// needsRun returns the message that no run is open; "" if one is.
func needsRun(m *model) string {
	if m.opt.Source == nil {
		return noRun
	}
	return ""
}

const noRun = "no run is open: enter opens the one under the cursor"

// label returns the keys of the binding as help shows them.
func (b binding) label() string {
	if b.show != "" {
		return b.show
	}
	s := ""
	for i, k := range b.keys {
		if i > 0 {
			s += " "
		}
		s += k
	}
	return s
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
	case m.popup != nil:
		return m.popup.key(m, name, text)
	case m.prompt != nil:
		return m.promptKey(name, text)
	case m.filters.typing != nil:
		return m.filterKey(name, text)
	}
	if t := m.typing(); t != nil {
		return t.key(m, name, text)
	}
	if m.toast.role == cell.Alert || m.toast.role == cell.Warn { // the user has read the message by now
		m.toast = toast{}
	}
	if len(name) == 1 && name[0] >= '1' && name[0] <= '9' {
		return m.digit(int(name[0] - '0'))
	}
	for _, b := range m.bindings() {
		if b.do == nil || !slices.Contains(b.keys, name) || b.when != nil && !b.when(m) {
			continue
		}
		if b.why != nil {
			if why := b.why(m); why != "" {
				m.say(cell.Warn, why)
				return nil
			}
		}
		return b.do(m)
	}
	return nil
}

// suspend stops this process until its shell resumes it. Training continues in another process.
func (m *model) suspend() tea.Cmd {
	if !m.opt.Suspend {
		m.say(cell.Warn, "no shell here could resume the workbench: q leaves it, and training goes on")
		return nil
	}
	return tea.Suspend
}

// paste handles pasted text.
func (m *model) paste(text string) tea.Cmd {
	switch {
	case m.popup != nil:
		return m.popup.key(m, "", text)
	case m.prompt != nil:
		return m.promptKey("", text)
	case m.filters.typing != nil:
		return m.filterKey("", text)
	}
	if t := m.typing(); t != nil {
		return t.key(m, "", text)
	}
	return nil
}
