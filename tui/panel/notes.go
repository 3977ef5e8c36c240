package panel

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
	"brood/tui/textfmt"
)

// NoteKind is the kind of an entry for a note on a round. Notes are stored in the session, outside its log, and shown
// in charts and among the events up to the shown round.
const NoteKind = "note"

// NoteCommand is the command that writes a note on a round.
func NoteCommand() Command {
	return Command{
		Name:  "note",
		Args:  "TEXT|-",
		Title: "write a note on the round shown or under the cursor; - removes it",
		Do:    doNote,
	}
}

// LoadNotes requests the notes of the session.
func (m *Host) LoadNotes() tea.Cmd {
	keeper, dir := m.Keeper(), m.Opt.Session
	if keeper == nil || dir == "" {
		return nil
	}
	ctx := m.Reading.Ctx
	return m.SessionJob(func() tea.Msg {
		notes := keeper.Noted(ctx, dir)
		return Reply(func(m *Host) tea.Cmd {
			if m.Opt.Session == dir {
				m.Notes = notes
			}
			return nil
		})
	})
}

func doNote(m *Host, args []string) (tea.Cmd, error) {
	keeper, dir, text := m.Keeper(), m.Opt.Session, strings.TrimSpace(strings.Join(args, " "))
	at := m.Shown.Progress.Rounds
	if m.Cursor.On {
		at = m.Cursor.Round
	}
	switch before := slices.ContainsFunc(m.Notes, func(n session.RoundNote) bool { return n.Round == at }); {
	case m.Opt.ReadOnly:
		return nil, errors.New(ReadOnlyText)
	case keeper == nil || dir == "":
		return nil, errors.New("note: the session is not on this machine: write the note on the recording machine")
	case text == "-" && !before:
		return nil, fmt.Errorf("note: round %s has no note: write note TEXT", textfmt.Grouped(at))
	case text == "-":
		text = ""
	}
	if err := (session.About{}).Noted(at, text).Check(); err != nil {
		return nil, err
	}
	ctx := m.Reading.Ctx
	done := "note on round " + textfmt.Grouped(at) + " saved"
	if text == "" {
		done = "note on round " + textfmt.Grouped(at) + " removed"
	}
	return m.SessionJob(func() tea.Msg {
		err := keeper.Note(ctx, dir, at, text)
		return Reply(func(m *Host) tea.Cmd {
			m.SayDone(err, cell.Good, done)
			return m.LoadNotes()
		})
	}), nil
}

// ShownNotes returns the notes on rounds up to the shown one.
func (m *Host) ShownNotes() []session.RoundNote {
	n := slices.IndexFunc(m.Notes, func(n session.RoundNote) bool { return n.Round > m.Shown.Progress.Rounds })
	if n < 0 {
		n = len(m.Notes)
	}
	return m.Notes[:n]
}

// noteMarks returns the notes as marks of a chart.
func (m *Host) noteMarks() (out []chart.Mark) {
	for _, n := range m.ShownNotes() {
		out = append(out, chart.Mark{Round: n.Round, Text: n.Text, Role: cell.Good})
	}
	return out
}

// WithNotes merges the notes into the events, after the events of the same round.
func (m *Host) WithNotes(lane []view.Entry) []view.Entry {
	notes := m.ShownNotes()
	if len(notes) == 0 {
		return lane
	}
	out := make([]view.Entry, 0, len(lane)+len(notes))
	add := func(upTo uint64, all bool) {
		for len(notes) > 0 && (all || notes[0].Round < upTo) {
			out = append(out, view.Entry{Round: notes[0].Round, Level: event.LevelInfo, Kind: NoteKind,
				Text: notes[0].Text})
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
