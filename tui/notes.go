package tui

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
)

// Notes on rounds are what a person wrote of the session that is shown. They lie beside its log and are drawn in charts
// and among the events, up to the round that is shown.

// noteKind is that of an entry that no record is behind.
const noteKind = "note"

func noteCommand() command {
	return command{
		name:  "note",
		args:  "TEXT|-",
		title: "write a note on this round, or that under the cursor; - takes it away",
		do:    doNote,
	}
}

// readNotes asks for the notes of the session.
func (m *model) readNotes() tea.Cmd {
	keeper, dir := m.keeper(), m.opt.Session
	if keeper == nil || dir == "" {
		return nil
	}
	ctx := m.reading.ctx
	return m.task(func() tea.Msg {
		notes := keeper.Noted(ctx, dir)
		return reply(func(m *model) tea.Cmd {
			if m.opt.Session == dir {
				m.notes = notes
			}
			return nil
		})
	})
}

func doNote(m *model, args []string) (tea.Cmd, error) {
	keeper, dir, text := m.keeper(), m.opt.Session, strings.TrimSpace(strings.Join(args, " "))
	at := m.shown.Progress.Rounds
	if m.cursor.on {
		at = m.cursor.round
	}
	switch before := slices.ContainsFunc(m.notes, func(n session.RoundNote) bool { return n.Round == at }); {
	case m.opt.ReadOnly:
		return nil, errors.New(readOnly)
	case keeper == nil || dir == "":
		return nil, errors.New("note: notes lie beside the session: write them on the machine where it is recorded")
	case text == "-" && !before:
		return nil, fmt.Errorf("note: round %d has none: write note TEXT", at)
	case text == "-":
		text = ""
	}
	if err := (session.About{}).Noted(at, text).Check(); err != nil {
		return nil, err
	}
	ctx := m.reading.ctx
	said := fmt.Sprintf("noted on round %d, beside the session", at)
	if text == "" {
		said = fmt.Sprintf("the note on round %d is gone", at)
	}
	return m.task(func() tea.Msg {
		err := keeper.Note(ctx, dir, at, text)
		return reply(func(m *model) tea.Cmd {
			if err != nil {
				m.say(cell.Alert, err.Error())
				return nil
			}
			m.say(cell.Good, said)
			return m.readNotes()
		})
	}), nil
}

// present are the notes on rounds that are done, as far as the session is shown.
func (m *model) present() []session.RoundNote {
	n := slices.IndexFunc(m.notes, func(n session.RoundNote) bool { return n.Round > m.shown.Progress.Rounds })
	if n < 0 {
		n = len(m.notes)
	}
	return m.notes[:n]
}

// noteMarks are the notes in a chart.
func (m *model) noteMarks() (out []chart.Mark) {
	for _, n := range m.present() {
		out = append(out, chart.Mark{Round: n.Round, Text: n.Text, Role: cell.Good})
	}
	return out
}

// withNotes puts the notes among the events, behind what was recorded of the same round.
func (m *model) withNotes(lane []view.Entry) []view.Entry {
	notes := m.present()
	if len(notes) == 0 {
		return lane
	}
	out := make([]view.Entry, 0, len(lane)+len(notes))
	add := func(upTo uint64, all bool) {
		for len(notes) > 0 && (all || notes[0].Round < upTo) {
			out = append(out, view.Entry{Round: notes[0].Round, Level: event.LevelInfo, Kind: noteKind, Text: notes[0].Text})
			notes = notes[1:]
		}
	}
	for _, e := range lane {
		add(e.Round, false)
		out = append(out, e)
	}
	add(0, true)
	return out
}
