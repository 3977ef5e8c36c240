package tui

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/session"
	"brood/tui/cell"
)

// sessions is the state of the Sessions screen. The list is read anew now and then while the screen is shown.
type sessions struct {
	all     []session.Info // those that run first, then the latest start
	err     error
	loaded  bool
	loading bool
	asked   time.Time
	chosen  string // directory
}

type (
	sessionsMsg struct {
		all []session.Info
		err error
	}
	deletedMsg struct {
		name string
		err  error
	}
)

const listEvery = 2 * time.Second

// relist reads the list when its screen is shown and it is old.
func (m *model) relist() tea.Cmd {
	s, now := &m.sessions, m.opt.Clock()
	if m.screens()[m.screen].focus != "sessions" || s.loading || s.loaded && now.Sub(s.asked) < listEvery {
		return nil
	}
	s.loading, s.asked = true, now
	ctx, lib := m.ctx, m.opt.Library
	return m.job(func() tea.Msg {
		all, err := lib.Sessions(ctx)
		slices.SortStableFunc(all, func(a, b session.Info) int {
			return cmp.Or(cmp.Compare(order(a), order(b)), b.Started.Compare(a.Started), cmp.Compare(a.Name, b.Name))
		})
		return sessionsMsg{all, err}
	})
}

func order(x session.Info) int {
	if x.Running {
		return 0
	}
	return 1
}

func (m *model) listed(msg sessionsMsg) {
	s := &m.sessions
	s.loading, s.loaded, s.err = false, true, msg.err
	if msg.err == nil {
		s.all = msg.all
	}
}

// rows are the sessions that pass the filter, and which of them is chosen.
func (s *sessions) rows(m *model) (rows []session.Info, at int) {
	for _, x := range s.all {
		if m.passes("sessions", x.Name, standing(x), x.Preset, x.Algorithm, x.Model, x.Data) {
			rows = append(rows, x)
		}
	}
	return rows, max(0, slices.IndexFunc(rows, func(x session.Info) bool { return x.Dir == s.chosen }))
}

// standing is a session's state in a word.
func standing(x session.Info) string {
	switch {
	case x.Err != "":
		return "broken"
	case !x.Running && (x.Phase == event.Training || x.Phase == event.Waiting || x.Phase == event.Paused):
		return "killed"
	}
	_, word, _ := phase(x.Phase)
	return word
}

func (s *sessions) move(m *model, d int) {
	if rows, at := s.rows(m); len(rows) > 0 {
		s.chosen = rows[min(max(0, at+d), len(rows)-1)].Dir
	}
}

// point chooses the session under the mouse.
func (s *sessions) point(m *model, at cell.Rect, y int) {
	rows, chosen := s.rows(m)
	if i, ok := tableAt(at.Inset(), y, len(rows), chosen, sessionsFoot); ok {
		s.chosen = rows[i].Dir
	}
}

// on is the chosen session, or why nothing can be done with it.
func (s *sessions) on(m *model) (x session.Info, why string) {
	rows, at := s.rows(m)
	if len(rows) == 0 {
		return x, "there is no session to choose"
	}
	return rows[at], ""
}

func sessionKeys() []binding {
	on := func(m *model) bool { return m.focus == "sessions" }
	move := func(d int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { m.sessions.move(m, d); return nil }
	}
	return []binding{
		{keys: []string{"j", "down"}, title: "next session", group: inSessions, when: on, do: move(1)},
		{keys: []string{"k", "up"}, title: "session before", group: inSessions, when: on, do: move(-1)},
		{keys: []string{"g", "home"}, title: "first session", group: inSessions, when: on, do: move(-1 << 30)},
		{keys: []string{"G", "end"}, title: "last session", group: inSessions, when: on, do: move(1 << 30)},
		{keys: []string{"enter"}, title: "attach, or replay", group: inSessions, when: on, why: mayOpen, do: openChosen},
		{keys: []string{"d"}, title: "delete it (asks)", group: inSessions, when: on, why: mayDelete, do: deleteChosen},
	}
}

func mayOpen(m *model) string {
	x, why := m.sessions.on(m)
	if x.Err != "" {
		return x.Name + " cannot be read: " + x.Err
	}
	return why
}

func openChosen(m *model) tea.Cmd {
	x, _ := m.sessions.on(m)
	if x.Dir == m.opt.Session && x.Running == (m.replay == nil) {
		return m.openScreen(0)
	}
	return m.open(x.Dir)
}

func mayDelete(m *model) string {
	x, why := m.sessions.on(m)
	switch {
	case why != "":
		return why
	case x.Running:
		return x.Name + " is running: stop it first"
	case x.Dir == m.opt.Session:
		return "you are looking at " + x.Name + ": open another session first"
	}
	return ""
}

func deleteChosen(m *model) tea.Cmd {
	x, _ := m.sessions.on(m)
	ctx, lib := m.ctx, m.opt.Library
	m.overlay = &question{text: fmt.Sprintf("Delete session %s? Its log and its checkpoints, %s, are gone for good.", x.Name, size(float64(x.Size))), yes: "delete it",
		do: func(m *model) tea.Cmd {
			return m.job(func() tea.Msg { return deletedMsg{filepath.Base(x.Dir), lib.Delete(ctx, x.Dir)} })
		}}
	return nil
}

func (m *model) deleted(msg deletedMsg) tea.Cmd {
	if msg.err != nil {
		m.say(cell.Alert, msg.err.Error())
	} else {
		m.say(cell.Plain, "deleted "+msg.name)
	}
	m.sessions.loaded = false
	return m.relist()
}
