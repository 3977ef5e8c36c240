package tui

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
)

// branching is a branch on its way: the rounds up to the cursor are executed again before it can be looked at.
type branching struct {
	at     uint64
	done   atomic.Uint64 // rounds, as told by the one who executes them
	cancel context.CancelFunc
}

// mayStage says why knobs cannot be turned: in a recording they can, for the branch that begins there.
func (m *model) mayStage() string {
	if m.replay != nil && m.brancher() != nil {
		return ""
	}
	return m.mayCommand()
}

func (m *model) mayBranch() string {
	switch {
	case m.replay == nil:
		return "this run is live: open a recording to branch off it (Sessions, enter)"
	case m.opt.ReadOnly:
		return readOnly
	case m.brancher() == nil || m.opt.Session == "":
		return "this recording is not among the sessions here: `brood fork` branches off it"
	case m.branching != nil:
		return "a branch is on its way: esc gives it up"
	case m.live.Progress.Rounds == 0:
		return "there is no round here to branch after: move on, or begin a new run"
	}
	return ""
}

// branch asks, and begins a run of its own with the round at the cursor and the staged knobs.
func (m *model) branch() tea.Cmd {
	m.replay.Pause(true)
	at := m.live.Progress.Rounds
	set := slices.Clone(m.rail.staged)
	text := fmt.Sprintf("Begin a run of its own after round %s of %s?", round(at), filepath.Base(m.opt.Session))
	if len(set) > 0 {
		text += " It goes on with " + words(event.Command{Set: set}) + "."
	}
	m.popup = &question{text: text + " The rounds since the nearest checkpoint are executed again first.", yes: "begin it",
		do: func(m *model) tea.Cmd { return m.startBranch(at, set) }}
	return nil
}

func (m *model) startBranch(at uint64, set []event.Setting) tea.Cmd {
	ctx, cancel := context.WithCancel(m.ctx)
	b := &branching{at: at, cancel: cancel}
	m.branching, m.toast = b, toast{}
	lib, parent := m.brancher(), m.opt.Session
	return m.job(func() tea.Msg {
		defer cancel()
		o, err := lib.Branch(ctx, Branch{Session: parent, At: at, Set: set, Told: b.done.Store})
		return branchedMsg{openedMsg{o, fmt.Sprintf("%s branched off after round %s of %s", filepath.Base(o.Session), round(at), filepath.Base(parent)), err}}
	})
}

type branchedMsg struct{ openedMsg }

func (m *model) branched(msg branchedMsg) tea.Cmd {
	m.branching = nil
	if errors.Is(msg.err, context.Canceled) {
		m.say(cell.Warn, "the branch was given up")
		return nil
	}
	return m.enter(msg.openedMsg)
}

// branchLine shows how far a branch is.
func (m *model) branchLine(g *cell.Grid, y int) {
	b := m.branching
	done := b.done.Load()
	text := "branch: looking for the nearest checkpoint"
	if done > 0 {
		text = "branch: executed again up to round " + lead(round(done), len(round(b.at))) + " of " + round(b.at)
	}
	right := "esc gives it up"
	x := g.Text(1, y, g.W-4-len(right), cell.Staged, text)
	if room := g.W - 4 - len(right) - x; room > 8 {
		chart.Bar(g, x+1, y, min(room, 30), float64(done)/float64(b.at), cell.Staged)
	}
	g.Right(g.W-1, y, len(right), cell.Faint, right)
}

// stageable refuses what a branch cannot begin with.
func (m *model) stageable(knob string) error {
	if m.replay != nil && knob == view.MembersKnob {
		return errors.New("a branch begins with the population of its parent: change it once it runs")
	}
	return nil
}
