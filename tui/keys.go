package tui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"brood/tui/cell"
)

// binding is a row of the one key table: dispatch, help, palette and key line read it.
type binding struct {
	keys  []string // as Bubble Tea names them
	show  string   // as help writes them, "" for the keys themselves
	title string   // what it does: three or four words
	group string   // of help
	when  func(*model) bool
	why   func(*model) string // why it cannot be done now, "" when it can; nil: it always can
	do    func(*model) tea.Cmd
}

// Groups of help, in its order.
const (
	inRail     = "knobs (focus on the rail)"
	inLane     = "events (focus on the lane)"
	inFleet    = "workers (on their screen)"
	inLinks    = "links (focus on the matrix)"
	inSessions = "sessions (on their screen)"
	playing    = "recording"
	running    = "run"
	looking    = "view"
	leavings   = "leave"
)

// bindings is the key table. The first row that holds a key and applies wins.
func bindings() []binding {
	rows := slices.Concat(fleetKeys(), linkKeys(), railKeys(), laneKeys(), sessionKeys(), replayKeys())
	rows = append(rows,
		binding{keys: []string{"space"}, title: "pause or resume", group: running, why: (*model).mayCommand, do: (*model).pauseOrResume},
		binding{keys: []string{"s"}, title: "save a checkpoint", group: running, why: (*model).mayCommand, do: func(m *model) tea.Cmd { return m.run("save") }},
		binding{keys: []string{"z"}, title: "undo your last knob change", group: running, why: mayUndo, do: (*model).turnBack},
		binding{keys: []string{"Z"}, title: "redo it", group: running, why: mayRedo, do: (*model).turnAgain},
		binding{keys: []string{"X"}, title: "stop the run (asks)", group: running, why: (*model).mayCommand, do: func(m *model) tea.Cmd { return m.run("stop") }},
		binding{keys: []string{":"}, title: "command line", group: running, do: (*model).openPrompt},
		binding{keys: []string{"ctrl+p"}, title: "palette of all actions", group: running, do: func(m *model) tea.Cmd { m.overlay = newPalette(m); return nil }},
		binding{keys: []string{"tab"}, title: "next panel", group: looking, do: func(m *model) tea.Cmd { m.moveFocus(1); return nil }},
		binding{keys: []string{"shift+tab"}, title: "panel before", group: looking, do: func(m *model) tea.Cmd { m.moveFocus(-1); return nil }},
		binding{keys: []string{"k"}, title: "knobs: open or close", group: looking, do: (*model).toggleRail},
		binding{keys: []string{"e"}, title: "expand the panel", group: looking, do: (*model).expand},
		binding{keys: []string{"f"}, title: "freeze the display", group: looking, do: (*model).freeze},
		binding{keys: []string{"["}, title: "member before", group: looking, do: func(m *model) tea.Cmd { m.moveMember(-1); return nil }},
		binding{keys: []string{"]"}, title: "next member", group: looking, do: func(m *model) tea.Cmd { m.moveMember(1); return nil }},
		binding{keys: []string{"b"}, title: "focus the best member", group: looking, do: func(m *model) tea.Cmd { m.bestMember(); return nil }},
		binding{keys: []string{"o"}, title: "logarithmic loss axis", group: looking, do: func(m *model) tea.Cmd { m.logAxis = !m.logAxis; return nil }},
		binding{keys: []string{"A"}, title: "axes of all values, or of most", group: looking, do: (*model).showAll},
		binding{keys: []string{"m"}, title: "smoother curves, then none", group: looking, do: func(m *model) tea.Cmd { return m.turnSmoothing(1) }},
		binding{keys: []string{"M"}, title: "rougher curves", group: looking, do: func(m *model) tea.Cmd { return m.turnSmoothing(-1) }},
		binding{keys: []string{"+", "="}, show: "+", title: "zoom into the last rounds", group: looking, do: func(m *model) tea.Cmd { return m.zoom(true) }},
		binding{keys: []string{"-"}, title: "zoom out", group: looking, do: func(m *model) tea.Cmd { return m.zoom(false) }},
		binding{keys: []string{"H", "shift+left"}, title: "earlier rounds", group: looking, do: func(m *model) tea.Cmd { return m.pan(-1) }},
		binding{keys: []string{"L", "shift+right"}, title: "later rounds", group: looking, do: func(m *model) tea.Cmd { return m.pan(1) }},
		binding{keys: []string{"0"}, title: "the whole run", group: looking, do: (*model).wholeRun},
		binding{keys: []string{"x"}, title: "acknowledge alerts", group: looking, do: func(m *model) tea.Cmd { m.acked = m.live.Position; return nil }},
		binding{keys: []string{"/"}, title: "filter the list", group: looking, why: (*model).mayFilter, do: (*model).openFilter},
		binding{keys: []string{"E"}, title: "export the panel as CSV", group: looking, why: (*model).mayExport, do: (*model).export},
		binding{keys: []string{"y"}, title: "copy the numbers", group: looking, do: (*model).copyNumbers},
		binding{keys: []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}, show: "1-9", title: "screens", group: looking},
		binding{keys: []string{"?"}, title: "help", group: looking, do: func(m *model) tea.Cmd { m.overlay = &help{}; return nil }},
		binding{keys: []string{"esc"}, title: "back", group: looking, do: (*model).back},
		binding{keys: []string{"q", "ctrl+c"}, show: "q", title: "detach: training goes on", group: leavings, do: func(*model) tea.Cmd { return tea.Quit }},
	)
	return rows
}

// label is the binding's keys for a person.
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

// key handles a key press: whatever is open takes it first, then the table.
func (m *model) key(name, text string) tea.Cmd {
	if name == "ctrl+c" {
		return tea.Quit
	}
	switch {
	case m.overlay != nil:
		return m.overlay.key(m, name, text)
	case m.prompt != nil:
		return m.promptKey(name, text)
	case m.filters.typing != nil:
		return m.filterKey(name, text)
	case m.rail.typing != nil:
		return m.rail.type1(m, name, text)
	}
	if m.toast.role == cell.Alert || m.toast.role == cell.Warn { // a refusal is read by now
		m.toast = toast{}
	}
	if len(name) == 1 && name[0] >= '1' && name[0] <= '9' {
		return m.digit(int(name[0] - '0'))
	}
	for _, b := range bindings() {
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

// typed handles pasted text.
func (m *model) typed(text string) tea.Cmd {
	switch {
	case m.overlay != nil:
		return m.overlay.key(m, "", text)
	case m.prompt != nil:
		return m.promptKey("", text)
	case m.filters.typing != nil:
		return m.filterKey("", text)
	case m.rail.typing != nil:
		return m.rail.type1(m, "", text)
	}
	return nil
}

func laneKeys() []binding {
	on := func(m *model) bool { return m.focus == "events" }
	scroll := func(d int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { m.scroll = min(max(m.scroll+d, 0), max(0, len(m.lane())-1)); return nil }
	}
	return []binding{
		{keys: []string{"j", "down"}, title: "later", group: inLane, when: on, do: scroll(-1)},
		{keys: []string{"k", "up"}, title: "earlier", group: inLane, when: on, do: scroll(1)},
		{keys: []string{"g"}, title: "oldest", group: inLane, when: on, do: func(m *model) tea.Cmd { m.scroll = max(0, len(m.lane())-1); return nil }},
		{keys: []string{"G"}, title: "newest", group: inLane, when: on, do: func(m *model) tea.Cmd { m.scroll = 0; return nil }},
	}
}
