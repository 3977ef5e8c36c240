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

const (
	sessionsPanel panelID = "sessions"

	listEvery = 2 * time.Second
)

func newSessions() *sessions { return &sessions{} }

// panel leads the Sessions screen and has it alone. Another session changes nothing in the list.
func (s *sessions) panel() panel {
	return panel{
		id: sessionsPanel, title: s.title, draw: s.draw, screen: &screen{digit: 9, name: "Sessions"},
		group: "sessions (on their screen)", keys: s.keys(), hints: s.hints, point: s.point,
		list: &list{name: "sessions", entries: "sessions"}, poll: s.relist,
	}
}

func (s *sessions) hints(*model) [][2]string {
	return [][2]string{{"j k", "choose"}, {"enter", "open"}, {"d", "delete"}, {"/", "filter"}, {"1", "back to the run"}}
}

// relist reads the list when its screen is shown and it is old.
func (s *sessions) relist(m *model) tea.Cmd {
	now := m.opt.Clock()
	if !m.leads(sessionsPanel) || s.loading || s.loaded && now.Sub(s.asked) < listEvery {
		return nil
	}
	s.loading, s.asked = true, now
	ctx, lib := m.ctx, m.opt.Library
	return m.job(func() tea.Msg {
		all, err := lib.Sessions(ctx)
		slices.SortStableFunc(all, func(a, b session.Info) int {
			return cmp.Or(cmp.Compare(order(a), order(b)), b.Started.Compare(a.Started), cmp.Compare(a.Name, b.Name))
		})
		return reply(func(*model) tea.Cmd { s.listed(all, err); return nil })
	})
}

func order(x session.Info) int {
	if x.Running {
		return 0
	}
	return 1
}

func (s *sessions) listed(all []session.Info, err error) {
	s.loading, s.loaded, s.err = false, true, err
	if err == nil {
		s.all = all
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
func (s *sessions) point(m *model, in cell.Rect, _, y int) {
	rows, chosen := s.rows(m)
	if i, ok := tableAt(in, y, len(rows), chosen, sessionsFoot); ok {
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

func (s *sessions) keys() []binding {
	move := func(d int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { s.move(m, d); return nil }
	}
	return []binding{
		{keys: []string{"j", "down"}, title: "next session", do: move(1)},
		{keys: []string{"k", "up"}, title: "session before", do: move(-1)},
		{keys: []string{"g", "home"}, title: "first session", do: move(-1 << 30)},
		{keys: []string{"G", "end"}, title: "last session", do: move(1 << 30)},
		{keys: []string{"enter"}, title: "attach, or replay", why: s.mayOpen, do: s.open},
		{keys: []string{"d"}, title: "delete it (asks)", why: s.mayDelete, do: s.remove},
	}
}

func (s *sessions) mayOpen(m *model) string {
	x, why := s.on(m)
	if x.Err != "" {
		return x.Name + " cannot be read: " + x.Err
	}
	return why
}

func (s *sessions) open(m *model) tea.Cmd {
	x, _ := s.on(m)
	if x.Dir == m.opt.Session && x.Running == (m.replay == nil) {
		return m.openScreen(0)
	}
	return m.open(x.Dir)
}

func (s *sessions) mayDelete(m *model) string {
	x, why := s.on(m)
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

func (s *sessions) remove(m *model) tea.Cmd {
	x, _ := s.on(m)
	ctx, lib := m.ctx, m.opt.Library
	m.overlay = &question{text: fmt.Sprintf("Delete session %s? Its log and its checkpoints, %s, are gone for good.", x.Name, size(float64(x.Size))), yes: "delete it",
		do: func(m *model) tea.Cmd {
			return m.job(func() tea.Msg {
				err := lib.Delete(ctx, x.Dir)
				return reply(func(m *model) tea.Cmd { return s.removed(m, filepath.Base(x.Dir), err) })
			})
		}}
	return nil
}

func (s *sessions) removed(m *model, name string, err error) tea.Cmd {
	if err != nil {
		m.say(cell.Alert, err.Error())
	} else {
		m.say(cell.Plain, "deleted "+name)
	}
	s.loaded = false
	return s.relist(m)
}
