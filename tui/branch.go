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
)

// branching is the state of a fork in preparation: the rounds up to the cursor are recomputed before it can be
// opened.
type branching struct {
	at     uint64
	done   atomic.Uint64 // rounds recomputed so far
	cancel context.CancelFunc
}

// whyNoStage returns why knobs cannot be staged; "" if they can. A session that can be forked allows it: the fork
// starts with them.
func (m *model) whyNoStage() string {
	if m.brancher() != nil && (m.replay != nil || m.opt.Session != "") {
		return ""
	}
	return m.whyNoCommand()
}

func (m *model) whyNoBranch() string {
	resized := func(s event.Setting) bool { return s.Knob == view.MembersKnob }
	switch {
	case m.opt.Source == nil:
		return noRun
	case m.opt.ReadOnly:
		return readOnly
	case (m.brancher() == nil || m.opt.Session == "") && m.replay != nil:
		return "this recording is not among the sessions here: `brood fork` branches off it"
	case m.brancher() == nil || m.opt.Session == "":
		return "the session of this run is not on this machine: `brood fork` branches off it where it is"
	case m.branching != nil:
		return "a branch is on its way: esc cancels"
	case m.screen == m.home():
		return "a run is branched off where its charts are: enter opens it, and B there asks"
	case slices.ContainsFunc(m.rail.staged, resized):
		return "a branch begins with the population of its parent: unstage the new size (u), and change it once it runs"
	case m.here() == 0:
		return "there is no round here to branch after: move on, or begin a new run"
	}
	return ""
}

// here returns the round that a fork would start after: that of the cursor, else the newest that is shown.
func (m *model) here() uint64 {
	if m.cursor.on {
		return min(m.cursor.round, m.shown.Progress.Rounds)
	}
	return m.shown.Progress.Rounds
}

// branch asks, and begins a run of its own with the round that is looked at and the staged knobs. How far the nearest
// checkpoint is belongs to the question.
func (m *model) branch() tea.Cmd {
	if m.replay != nil {
		m.replay.Pause(true)
	}
	b := Branch{Session: m.opt.Session, At: m.here(), Set: slices.Clone(m.rail.staged)}
	gen, lib := m.feed.gen, m.brancher()
	return m.task(func() tea.Msg {
		from, err := lib.Nearest(b.Session, b.At)
		return reply(func(m *model) tea.Cmd {
			switch {
			case gen != m.feed.gen || m.popup != nil: // the person went elsewhere since
			case err != nil:
				m.say(cell.Alert, err.Error())
			default:
				m.popup = &question{text: m.askBranch(b, from), yes: "begin it",
					do: func(m *model) tea.Cmd { return m.startBranch(b.At, b.Set) }}
			}
			return nil
		})
	})
}

// askBranch says what a branch is to be, and what it costs, with a checkpoint at from.
func (m *model) askBranch(b Branch, from uint64) string {
	name := filepath.Base(b.Session)
	text := fmt.Sprintf("Start a new run after round %s of %s?", round(b.At), name)
	if len(b.Set) > 0 {
		text += " It goes on with " + words(event.Command{Set: b.Set}) + "."
	}
	if m.replay == nil && !m.live.Over() {
		text += " Its parent goes on as it is."
	}
	since := "the checkpoint at " + round(from)
	if from == 0 {
		since = "the start"
	}
	switch n := b.At - min(from, b.At); {
	case n == 0:
		return text + " There is a checkpoint of that round."
	case n == 1:
		text += " The round since " + since + " is recomputed first"
	default:
		text += " The " + round(n) + " rounds since " + since + " are recomputed first"
	}
	if r := m.live.Rates; r.Weight > 0 && r.Rounds > 0 {
		seconds := float64(b.At-from) / r.Rounds
		if seconds < 1 {
			return text + ", in less than a second."
		}
		return text + ", in about " + span(time.Duration(min(seconds, 1e9)*float64(time.Second))) + "."
	}
	return text + "."
}

func (m *model) startBranch(at uint64, set []event.Setting) tea.Cmd {
	ctx, cancel := context.WithCancel(m.ctx)
	b := &branching{at: at, cancel: cancel}
	m.branching, m.toast = b, toast{}
	lib, parent := m.brancher(), m.opt.Session
	return m.job(func() tea.Msg {
		defer cancel()
		o, err := lib.Branch(ctx, Branch{Session: parent, At: at, Set: set, Told: b.done.Store})
		text := fmt.Sprintf("%s branched off after round %s of %s: 1 looks at it", filepath.Base(o.Session), round(at),
			filepath.Base(parent))
		return branchedMsg{openedMsg{o, text, err}, parent}
	})
}

type branchedMsg struct {
	openedMsg
	parent string
}

// branched opens the branch, and shows it beside its parent.
func (m *model) branched(msg branchedMsg) tea.Cmd {
	m.branching = nil
	if errors.Is(msg.err, context.Canceled) {
		m.say(cell.Warn, "the branch was given up")
		return nil
	}
	enter := m.enter(msg.openedMsg)
	if msg.err != nil {
		return enter
	}
	return tea.Batch(enter, m.race(msg.parent, msg.opened.Session))
}

// race leads to the charts of a branch beside its parent, where there is such a screen.
func (m *model) race(parent, branch string) tea.Cmd {
	i := slices.IndexFunc(m.panels, func(p panel) bool { return p.branched != nil })
	if i < 0 {
		return nil
	}
	begin := m.panels[i].branched(m, parent, branch)
	return tea.Batch(m.openScreen(m.home()), begin)
}

// branchLine shows how far a branch is.
func (m *model) branchLine(g *cell.Grid, y int) {
	b := m.branching
	done := b.done.Load()
	text := "branch: looking for the nearest checkpoint"
	if done > 0 {
		text = "branch: executed again up to round " + lead(round(done), len(round(b.at))) + " of " + round(b.at)
	}
	right := "esc cancels"
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
