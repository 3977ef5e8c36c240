package tui

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"

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
		return "this recording is not among the sessions here: `brood fork` branches off it"
	case m.Brancher() == nil || m.Opt.Session == "":
		return "the session of this run is not on this machine: `brood fork` branches off it where it is"
	case m.branching != nil:
		return "a branch is on its way: esc cancels"
	case m.screen == m.HomeScreen():
		return "a run is branched off where its charts are: enter opens it, and B there asks"
	case slices.ContainsFunc(m.rail.Staged, resized):
		return "a branch begins with the population of its parent: unstage the new size (u), and change it once it runs"
	case m.ForkRound() == 0:
		return "there is no round here to branch after: move on, or begin a new run"
	}
	return ""
}

// branch asks, and begins a run of its own with the round that is looked at and the staged knobs. How far the nearest
// checkpoint is belongs to the question.
func (m *model) branch() tea.Cmd {
	if m.Replay != nil {
		m.Replay.Pause(true)
	}
	b := panel.Branch{Session: m.Opt.Session, At: m.ForkRound(), Set: slices.Clone(m.rail.Staged)}
	gen, lib := m.Feed.Gen, m.Brancher()
	return m.SessionJob(func() tea.Msg {
		from, err := lib.Nearest(b.Session, b.At)
		return panel.Reply(func(*panel.Host) tea.Cmd {
			switch {
			case gen != m.Feed.Gen || m.Popup != nil: // the person went elsewhere since
			case err != nil:
				m.Say(cell.Alert, err.Error())
			default:
				m.Popup = &panel.Question{Text: m.askBranch(b, from), Yes: "begin it",
					Do: func(*panel.Host) tea.Cmd { return m.startBranch(b.At, b.Set) }}
			}
			return nil
		})
	})
}

// askBranch says what a branch is to be, and what it costs, with a checkpoint at from.
func (m *model) askBranch(b panel.Branch, from uint64) string {
	name := filepath.Base(b.Session)
	text := fmt.Sprintf("Start a new run after round %s of %s?", textfmt.Grouped(b.At), name)
	if len(b.Set) > 0 {
		text += " It goes on with " + panel.SettingsText(event.Command{Set: b.Set}) + "."
	}
	if m.Replay == nil && !m.Live.Over() {
		text += " Its parent goes on as it is."
	}
	since := "the checkpoint at " + textfmt.Grouped(from)
	if from == 0 {
		since = "the start"
	}
	switch n := b.At - min(from, b.At); {
	case n == 0:
		return text + " There is a checkpoint of that round."
	case n == 1:
		text += " The round since " + since + " is recomputed first"
	default:
		text += " The " + textfmt.Grouped(n) + " rounds since " + since + " are recomputed first"
	}
	if r := m.Live.Rates; r.Weight > 0 && r.Rounds > 0 {
		seconds := float64(b.At-from) / r.Rounds
		if seconds < 1 {
			return text + ", in less than a second."
		}
		return text + ", in about " + textfmt.Duration(time.Duration(min(seconds, 1e9)*float64(time.Second))) + "."
	}
	return text + "."
}

func (m *model) startBranch(at uint64, set []event.Setting) tea.Cmd {
	ctx, cancel := context.WithCancel(m.Ctx)
	b := &branching{at: at, cancel: cancel}
	m.branching, m.Toast = b, panel.Toast{}
	lib, parent := m.Brancher(), m.Opt.Session
	return m.Job(func() tea.Msg {
		defer cancel()
		o, err := lib.Branch(ctx, panel.Branch{Session: parent, At: at, Set: set, Told: b.done.Store})
		text := fmt.Sprintf("%s branched off after round %s of %s: 1 looks at it", filepath.Base(o.Session), textfmt.Grouped(at),
			filepath.Base(parent))
		return branchedMsg{panel.OpenedMsg{Opened: o, Message: text, Err: err}, parent}
	})
}

type branchedMsg struct {
	panel.OpenedMsg
	parent string
}

// branched opens the branch, and shows it beside its parent.
func (m *model) branched(msg branchedMsg) tea.Cmd {
	m.branching = nil
	if errors.Is(msg.Err, context.Canceled) {
		m.Say(cell.Warn, "the branch was given up")
		return nil
	}
	enter := m.SwitchSession(msg.OpenedMsg)
	if msg.Err != nil {
		return enter
	}
	return tea.Batch(enter, m.overlayBranch(msg.parent, msg.Opened.Session))
}

// overlayBranch leads to the charts of a branch beside its parent, where there is such a screen.
func (m *model) overlayBranch(parent, branch string) tea.Cmd {
	i := slices.IndexFunc(m.panels, func(p panel.Panel) bool { return p.Branched != nil })
	if i < 0 {
		return nil
	}
	begin := m.panels[i].Branched(m.Host, parent, branch)
	return tea.Batch(m.OpenScreen(m.HomeScreen()), begin)
}

// branchLine shows how far a branch is.
func (m *model) branchLine(g *cell.Grid, y int) {
	b := m.branching
	done := b.done.Load()
	text := "branch: looking for the nearest checkpoint"
	if done > 0 {
		text = "branch: executed again up to round " + textfmt.PadLeft(textfmt.Grouped(done), len(textfmt.Grouped(b.at))) + " of " + textfmt.Grouped(b.at)
	}
	right := "esc cancels"
	x := g.Text(1, y, g.W-4-len(right), cell.Staged, text)
	if room := g.W - 4 - len(right) - x; room > 8 {
		chart.Bar(g, x+1, y, min(room, 30), float64(done)/float64(b.at), cell.Staged)
	}
	g.Right(g.W-1, y, len(right), cell.Faint, right)
}
