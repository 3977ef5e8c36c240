package panel

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"brood/optim"
	"brood/runtime/archive"
	"brood/runtime/event"
	"brood/runtime/timeline"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/textfmt"
)

// Open opens another session.
func (m *Host) Open(dir string) tea.Cmd {
	ctx, lib := m.Ctx, m.Opt.Library
	m.Say(cell.Plain, "opening "+filepath.Base(dir))
	return m.Job(func() tea.Msg {
		o, err := lib.Open(ctx, dir)
		return OpenedMsg{o, "", err}
	})
}

// OpenRemote runs c, which shows a run of another machine and uses the terminal until it ends.
func (m *Host) OpenRemote(e archive.Entry, c *exec.Cmd) tea.Cmd {
	m.Say(cell.Plain, "asking "+e.Host)
	return tea.ExecProcess(c, func(err error) tea.Msg {
		return Reply(func(m *Host) tea.Cmd {
			if err != nil {
				m.Say(cell.Alert, fmt.Sprintf("%s on %s: %v", e.Name, e.Host, err))
			} else {
				m.Say(cell.Plain, "back from "+e.Host)
			}
			return nil
		})
	})
}

// SessionJob wraps f as a job that ends before the session is closed.
func (m *Host) SessionJob(f func() tea.Msg) tea.Cmd { return m.Reading.Jobs.Run(f) }

// Brancher returns the library's Brancher; nil if the library has none or the workbench is read-only.
func (m *Host) Brancher() Brancher {
	if m.Opt.ReadOnly {
		return nil
	}
	b, _ := m.Opt.Library.(Brancher)
	return b
}

// Killed reports whether the run's process ended without a final record.
func (m *Host) Killed() bool {
	return m.Vanished() || m.Feed.Lost != nil && errors.Is(m.Feed.Lost.Err, view.ErrKilled)
}

// Vanished reports whether the run's process on another machine is gone. Whether the run had ended is unknown.
func (m *Host) Vanished() bool {
	return m.Feed.Lost != nil && errors.Is(m.Feed.Lost.Err, view.ErrNoProcess)
}

// StateUnknown reports whether the current state of the run cannot be read.
func (m *Host) StateUnknown() bool { return m.Feed.Lost != nil || m.Feed.Err != nil }

// Gone reports whether no process can receive commands.
func (m *Host) Gone() bool { return m.Live.Over() || m.Killed() }

// EndText describes how a run that is gone ended.
func (m *Host) EndText() string {
	switch {
	case m.Vanished():
		return "the run's process is gone"
	case m.Killed():
		return "the run was killed"
	}
	return "the run has ended"
}

// Running reports whether the run trains, as far as is known.
func (m *Host) Running() bool { return m.Shown.Running() && !m.StateUnknown() && !m.CutOff() }

// CutOff reports whether a recording ended before the run did: the run was killed, its log is truncated, or it still
// trains.
func (m *Host) CutOff() bool { return m.Replay != nil && m.Feed.Ended && !m.Live.Over() }

// KilledText returns the message that the run was killed, or that its process is gone, and how to resume it.
func (m *Host) KilledText() string {
	if m.Vanished() {
		return "process gone after round " + textfmt.Grouped(m.Live.Progress.Rounds) +
			": where it ran, brood serve --resume"
	}
	text := "killed after round " + textfmt.Grouped(m.Live.Progress.Rounds)
	if m.Opt.Resume != "" {
		text += ": " + m.Opt.Resume
	}
	return text
}

// WhyNoCommand returns why commands are impossible; "" if they are possible.
func (m *Host) WhyNoCommand() string {
	switch {
	case m.Opt.Source == nil:
		return NoRunText
	case m.Replay != nil:
		if m.Brancher() != nil {
			return "this is a recording: B starts a new run here with the staged knobs"
		}
		return "this is a recording: knobs and commands need a live run"
	case m.Opt.ReadOnly:
		return ReadOnlyText
	case m.Opt.Commander == nil:
		return "read-only: attach as the writer to send commands"
	case m.Live.Over():
		return "the run has ended: resume it first"
	case m.Killed():
		return m.KilledText()
	}
	return ""
}

// ReadOnlyText is the message that --read-only allows no commands.
const ReadOnlyText = "read-only: attach without --read-only to send commands"

// Due reports whether an entry is an alert that is neither acknowledged nor resolved.
func (m *Host) Due(e view.Entry) bool { return e.Kind == "alert" && !e.Answered && e.At >= m.Acked }

// AlertCount returns the number of due alerts above level info.
func (m *Host) AlertCount() (n int) {
	for _, e := range m.Shown.Lane {
		if m.Due(e) && e.Level != event.LevelInfo {
			n++
		}
	}
	return n
}

// HintsAfter appends the keys common to all chart screens to the hints of a panel.
func (m *Host) HintsAfter(out [][2]string) [][2]string {
	if m.W >= PanelsW {
		out = append(out, [2]string{"tab", "panel"})
	}
	return append(out, [2]string{"e", "expand"}, [2]string{"f", "freeze"}, [2]string{"[ ]", "member"},
		[2]string{":", "command"}, [2]string{"ctrl+p", "palette"})
}

// ApplyKey returns the key that sends the staged knobs, to the run or to a fork.
func (m *Host) ApplyKey() [2]string {
	if m.Replay != nil {
		return [2]string{"B", "branch"}
	}
	return [2]string{"a", "apply"}
}

// ForkRound returns the round that a fork would start after: that of the cursor, else the newest that is shown.
func (m *Host) ForkRound() uint64 {
	if m.Cursor.On {
		return min(m.Cursor.Round, m.Shown.Progress.Rounds)
	}
	return m.Shown.Progress.Rounds
}

// CheckStage returns an error for a knob that a fork cannot start with.
func (m *Host) CheckStage(knob string) error {
	if m.Replay != nil && knob == view.MembersKnob {
		return errors.New("a branch starts with the population of its parent: change it while it runs")
	}
	return nil
}

// WhyNoStage returns why knobs cannot be staged; "" if they can. A session that can be forked allows it: the fork
// starts with them.
func (m *Host) WhyNoStage() string {
	if m.Brancher() != nil && (m.Replay != nil || m.Opt.Session != "") {
		return ""
	}
	return m.WhyNoCommand()
}

// WaitingText returns the message why something is not shown yet.
func (m *Host) WaitingText(what string) string {
	switch {
	case m.Feed.Err != nil || m.Feed.Lost != nil && !m.Feed.Loaded:
		return "the run cannot be reached"
	case !m.Feed.Loaded:
		return "reading the run"
	case m.Preparing():
		return m.activityText()
	case m.Shown.Plan == nil:
		return "waiting for workers" + m.Awaited
	case m.Shown.Over() || m.Killed():
		return "the run ended before " + what
	}
	text := what + " appears with the first rounds"
	if now := m.activityText(); now != "" && m.Running() && m.sinceCommit() >= longRound {
		text += " · " + now
	}
	return text
}

// MainSeries returns the series that the algorithm measures for the training of each member. Fitness is excluded,
// since it has its own panel.
func (m *Host) MainSeries() string {
	if m.Alg != nil {
		for _, s := range m.Alg.Series {
			if s.Name != view.Fitness && s.Kind != optim.PairEdges {
				return s.Name
			}
		}
	}
	return "loss"
}

// HasTestSet reports whether the run has a test set.
func (m *Host) HasTestSet() bool { return m.Shown.Config != nil && m.Shown.Config.Data != "" }

// CanSurvey reports whether the state of workers can be requested. A recording and a run that ended only have the
// placement of members.
func (m *Host) CanSurvey() bool {
	_, ok := m.Opt.Source.(Surveyor)
	return ok && m.Replay == nil && !m.Gone()
}

// SettingsText formats the settings of a command.
func SettingsText(c event.Command) (s string) {
	all := c.Set
	if c.Members > 0 {
		all = append([]event.Setting{{Knob: view.MembersKnob, Expr: strconv.Itoa(c.Members)}}, all...)
	}
	for i, x := range all {
		if i > 0 {
			s += ", "
		}
		if s += x.Knob + " "; timeline.Scales(x.Expr) {
			s += timeline.Readable(x.Expr)
			continue
		}
		s += "= " + x.Expr
	}
	return s
}

// NoRunText is the message that a key needs an open run.
const NoRunText = "no run is open: enter opens the one under the cursor"

// PhaseStyle returns the glyph, the word and the colour role of a phase.
func PhaseStyle(p event.Phase) (glyph, word string, role cell.Role) {
	switch p {
	case event.Training:
		return "●", "training", cell.Good
	case event.Paused:
		return "‖", "paused", cell.Warn
	case event.Finished:
		return "✓", "finished", cell.Good
	case event.Stopped:
		return "■", "stopped", cell.Warn
	case event.Failed:
		return "✗", "failed", cell.Alert
	}
	return "○", "waiting", cell.Faint
}
