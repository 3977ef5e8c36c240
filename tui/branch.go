package tui

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/archive"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// branching is the state of a fork in preparation: the rounds up to the cursor are recomputed before it can be
// opened.
type branching struct {
	at     uint64
	done   atomic.Uint64 // rounds recomputed so far
	cancel context.CancelFunc
}

func (m *model) whyNoBranch() string {
	resized := func(s event.Setting) bool { return s.Knob == view.MembersKnob }
	switch {
	case m.Opt.Source == nil:
		return panel.NoRunText
	case m.Opt.ReadOnly:
		return panel.ReadOnlyText
	case (m.Brancher() == nil || m.Opt.Session == "") && m.Replay != nil:
		return "this recording is not among the sessions here: fork it with `brood fork`"
	case m.Brancher() == nil || m.Opt.Session == "":
		return "the session of this run is not on this machine: run `brood fork` where it is"
	case m.branching != nil:
		return "a branch is being prepared: esc cancels"
	case m.screen == m.HomeScreen():
		return "open the run with enter, and press B there to branch off"
	case slices.ContainsFunc(m.rail.Staged, resized):
		return "a branch starts with the population of its parent: unstage the new size (u), change it later"
	case m.ForkRound() == 0:
		return "there is no round here to branch after: go to a later one, or start a new run"
	}
	return ""
}

// loadCheckpoints requests the rounds of the stored checkpoints of the session, which the timeline shows.
func (m *model) loadCheckpoints() tea.Cmd {
	lib, dir := m.Brancher(), m.Opt.Session
	if lib == nil || dir == "" {
		return nil
	}
	return m.SessionJob(func() tea.Msg {
		rounds, err := lib.Checkpoints(dir)
		return panel.Reply(func(*panel.Host) tea.Cmd {
			if err == nil && m.Opt.Session == dir { // else the recorded ones are shown
				m.Checkpoints = append([]uint64{}, rounds...)
			}
			return nil
		})
	})
}

// branch asks where to fork the run, with the staged knobs: after the shown round, or after the newest checkpoint
// before it.
func (m *model) branch() tea.Cmd {
	if m.Replay != nil {
		m.Replay.Pause(true)
	}
	at, set, dir := m.ForkRound(), slices.Clone(m.rail.Staged), m.Opt.Session
	gen, lib := m.Feed.Gen, m.Brancher()
	return m.SessionJob(func() tea.Msg {
		rounds, err := lib.Checkpoints(dir)
		return panel.Reply(func(*panel.Host) tea.Cmd {
			switch {
			case gen != m.Feed.Gen || m.Popup != nil: // the user has moved elsewhere
			case err != nil:
				m.Say(cell.Alert, err.Error())
			default:
				m.Checkpoints = append([]uint64{}, rounds...)
				m.Popup = m.newBranchQuestion(at, set)
			}
			return nil
		})
	})
}

// startBranch forks the shown session after round at, in a job.
func (m *model) startBranch(at uint64, set []event.Setting) tea.Cmd {
	ctx, cancel := context.WithCancel(m.Ctx)
	b := &branching{at: at, cancel: cancel}
	m.branching, m.Toast = b, panel.Toast{}
	lib, parent := m.Brancher(), m.Opt.Session
	return m.Job(func() tea.Msg {
		defer cancel()
		o, err := lib.Branch(ctx, panel.Branch{Session: parent, At: at, Set: set, By: m.Opt.By, Progress: b.done.Store})
		text := fmt.Sprintf("%s branched off after round %s of %s: 1 opens it", archive.ShortName(filepath.Base(o.Session)),
			textfmt.Grouped(at), archive.ShortName(filepath.Base(parent)))
		return branchedMsg{panel.OpenedMsg{Opened: o, Message: text, Err: err}, parent}
	})
}

type branchedMsg struct {
	panel.OpenedMsg
	parent string
}

// branched opens the fork and overlays it with its parent.
func (m *model) branched(msg branchedMsg) tea.Cmd {
	m.branching = nil
	if errors.Is(msg.Err, context.Canceled) {
		m.Say(cell.Warn, "the branch was canceled")
		return nil
	}
	enter := m.SwitchSession(msg.OpenedMsg)
	if msg.Err != nil {
		return enter
	}
	return tea.Batch(enter, m.overlayBranch(msg.parent, msg.Opened.Session))
}

// overlayBranch opens the overlay of a fork and its parent, if there is a Runs screen.
func (m *model) overlayBranch(parent, branch string) tea.Cmd {
	i := slices.IndexFunc(m.panels, func(p panel.Panel) bool { return p.Branched != nil })
	if i < 0 {
		return nil
	}
	begin := m.panels[i].Branched(m.Host, parent, branch)
	return tea.Batch(m.OpenScreen(m.HomeScreen()), begin)
}

// branchLine draws the progress of a fork.
func (m *model) branchLine(g *cell.Grid, y int) {
	b := m.branching
	done := b.done.Load()
	text := "branch: looking for the nearest checkpoint"
	if done > 0 {
		end := textfmt.Grouped(b.at)
		text = "branch: recomputing round " + textfmt.PadLeft(textfmt.Grouped(done), len(end)) + " of " + end
	}
	right := "esc cancels"
	x := g.Text(1, y, g.W-4-len(right), cell.Staged, text)
	if room := g.W - 4 - len(right) - x; room > 8 {
		chart.Bar(g, x+1, y, min(room, 30), float64(done)/float64(b.at), cell.Staged)
	}
	g.Right(g.W-1, y, len(right), cell.Faint, right)
}
