package tui

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/panel/knobs"
	"brood/tui/textfmt"
)

// model is the state of the workbench. Only Update and View, which run on one goroutine, use it.
type model struct {
	*panel.Host
	theme cell.Theme
	dark  bool
	few   bool // the terminal has fewer than 256 colours

	rules    string           // the rules that ruledAlg was built from
	ruledAlg *optim.Algorithm // see withRules

	screen        int
	railOpen      bool // the knob rail is open over the panels, which have no place for it
	beforeRail    origin
	drag          drag
	hover         hover
	frame         string        // the last frame, see same
	same          bool          // the last message changed nothing that a frame shows
	panels        []panel.Panel // see newPanels
	rail          *knobs.Rail
	history       changeHistory
	popupInside   cell.Rect   // content area of the popup in the last frame
	tabs          []cell.Rect // areas of the screen names in the last frame
	timelineAt    cell.Rect   // cells of the timeline in the last frame; empty: it was not drawn
	travel        travel
	prompt        *prompt // the command line
	grid          *cell.Grid
	firstID       uint64 // commands of this viewer have the ids firstID+1 to lastID
	lastID        uint64
	lease         leaseState
	settingsSaved chan struct{} // closed when the last changed settings are saved
	branching     *branching    // set while a fork is recomputed
	parent        parentRead
	visited       []int // screens that esc goes back to, the last first; none of them twice, and no list of runs
}

type (
	tickMsg time.Time
	seekMsg struct {
		gen int // generation of the feed at the request
		at  view.Position
		err error
	}
)

func newModel(ctx context.Context, opt panel.Options) *model {
	opt.SetDefaults()
	if opt.ReadOnly {
		opt.Commander = nil
	}
	m := &model{dark: !opt.Light, rail: &knobs.Rail{}}
	m.Host = &panel.Host{Workbench: m, Opt: opt, Ctx: ctx, W: opt.Width, H: opt.Height, Focus: panel.Loss,
		LogAxis:   true,
		Smoothing: 1, Jobs: &panel.Jobs{}}
	m.panels = newPanels(m)
	m.resetSession()
	m.firstID = uint64(opt.Clock().UnixNano())
	m.lastID = m.firstID
	for i, s := range m.screens() {
		if opt.Source == nil && s.Home || opt.Source != nil && s.Name == opt.Screen {
			m.screen, m.Focus = i, s.Lead
		}
		if opt.Source != nil && s.Instead != "" && s.Instead == opt.Screen {
			m.screen = i
			_ = s.Show(m.Host)
		}
	}
	m.restyle()
	if why := opt.Settings.Broken; why != "" {
		m.Say(cell.Warn, "your saved charts and layouts cannot be read: "+why)
	}
	return m
}

func (m *model) restyle() {
	m.theme = cell.Coloured(m.dark, m.Opt.ASCII)
	if m.few {
		m.theme = m.theme.WithoutGradient()
	}
	if m.Opt.NoColor {
		m.theme = cell.Plainly(m.Opt.ASCII)
	}
}

// Init starts the clock and requests the background colour, the first session and its notes.
func (m *model) Init() tea.Cmd {
	return tea.Batch(m.tick(), tea.RequestBackgroundColor, m.startReading(), m.LoadNotes(), m.loadCheckpoints())
}

func (m *model) tick() tea.Cmd {
	ctx := m.Ctx
	return m.Job(func() tea.Msg {
		t := time.NewTimer(500 * time.Millisecond)
		defer t.Stop()
		select {
		case at := <-t.C:
			return tickMsg(at)
		case <-ctx.Done():
			return nil
		}
	})
}

// Update applies a message to the state and returns the commands to run.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.same = false
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		if m.W, m.H = msg.Width, msg.Height; m.W <= 0 || m.H <= 0 {
			m.W, m.H = m.Opt.Width, m.Opt.Height
		}
		m.showFocus()
	case tea.BackgroundColorMsg:
		if !m.Opt.Fixed {
			m.dark = msg.IsDark()
			m.restyle()
		}
	case tea.ColorProfileMsg:
		m.few = msg.Profile < colorprofile.ANSI256
		m.restyle()
	case tea.KeyPressMsg:
		m.hover.at = panel.Cursor{}
		return m, m.key(msg.String(), msg.Text)
	case tea.PasteMsg:
		return m, m.paste(msg.Content)
	case tea.MouseClickMsg:
		return m, m.press(msg.X, msg.Y)
	case tea.MouseMotionMsg:
		if m.drag.time {
			return m, m.scrub(msg.X)
		}
		m.same = m.frame != ""
		return m, m.motion(msg.X, msg.Y)
	case hoverMsg:
		m.same = !m.lookUnder() && m.frame != ""
	case tea.MouseReleaseMsg:
		return m, m.release(msg.X)
	case tea.MouseWheelMsg:
		return m, m.wheel(msg)
	case snapshotMsg:
		return m, m.applySnapshot(msg)
	case batchMsg:
		return m, m.fold(msg)
	case panel.ReceiptMsg:
		m.ShowReceipt(msg)
	case seekMsg:
		switch {
		case msg.gen != m.Feed.Gen: // the user has moved elsewhere
			return m, nil
		case msg.err != nil:
			m.Say(cell.Alert, msg.err.Error())
			return m, nil
		}
		return m, m.seek(msg.at)
	case scannedMsg:
		if msg.err != nil && !errors.Is(msg.err, context.Canceled) {
			m.Say(cell.Alert, "the recording cannot be read to its end: "+msg.err.Error())
		}
	case tickMsg:
		m.endHover()
		if m.Toast.Text != "" && m.Opt.Clock().After(m.Toast.Until) {
			m.Toast = panel.Toast{}
		}
		return m, tea.Batch(m.tick(), m.retry(), m.pollPanels(), m.pollLease(), m.pollParent())
	case panel.Reply:
		cmd := msg(m.Host)
		m.refreshPalette()
		return m, cmd
	case leaseMsg:
		m.applyLease(msg)
	case exportedMsg:
		m.exported(msg)
	case branchedMsg:
		return m, m.branched(msg)
	case panel.OpenedMsg:
		return m, m.SwitchSession(msg)
	}
	return m, nil
}

// withRules returns a, or for a protocol the algorithm built from the rule table of the run, which declares its own
// series. It caches the result.
func (m *model) withRules(a *optim.Algorithm) *optim.Algorithm {
	c := m.Shown.Config
	if a.FromSpec == nil || c == nil || c.Data != "" || c.ModelSpec == "" {
		return a
	}
	if m.rules != c.ModelSpec {
		m.rules, m.ruledAlg = c.ModelSpec, a
		if own, err := a.FromSpec([]byte(c.ModelSpec)); err == nil { // the run rejects rules that do not compile
			m.ruledAlg = own
		}
	}
	return m.ruledAlg
}

// refresh recomputes what depends on the shown view.
func (m *model) refresh() {
	name := m.Shown.Algorithm()
	m.Alg = nil
	for _, a := range m.Opt.Algorithms {
		if a.Name == name {
			m.Alg = m.withRules(a)
		}
	}
	m.Knobs = nil
	if m.Alg != nil {
		m.Knobs = m.Shown.Resolve(m.Alg)
	}
	if r := m.Shown.Members(); len(r.Members) > 0 && !r.Has(m.Member) {
		m.Member = r.Members[0]
	}
	m.rail.Refresh(m.Host)
	m.history.countSwap(m.Live.Algorithm())
}

// Send sends a command, which it signs if the caller has not. The receipt arrives as a [panel.ReceiptMsg].
func (m *model) Send(c event.Command) tea.Cmd {
	if why := m.WhyNoCommand(); why != "" {
		m.Say(cell.Warn, why)
		return nil
	}
	if c.ID == 0 {
		c = m.Sign(c)
	}
	if c.Algorithm == "" && (len(c.Set) > 0 || c.Members > 0) {
		c.Of = m.Live.Algorithm()
	}
	m.history.add(m, c)
	ctx, to, resets := m.Reading.Ctx, m.Opt.Commander, m.resets(c)
	return m.SessionJob(func() tea.Msg {
		r, err := to.Command(ctx, c)
		return panel.ReceiptMsg{Command: c, Receipt: r, Err: err, Resets: resets}
	})
}

// Sign assigns the id and the author of a command.
func (m *model) Sign(c event.Command) event.Command {
	m.lastID++
	c.ID, c.By = m.lastID, m.Opt.By
	return c
}

// ShowReceipt shows the result of a command.
func (m *model) ShowReceipt(msg panel.ReceiptMsg) {
	if errors.Is(msg.Err, context.Canceled) {
		return // the user left the session
	}
	what := m.history.settle(msg)
	if m.rail.HandleReceipt(m.Host, msg) {
		return
	}
	switch {
	case what != "":
	case msg.Command.Link != nil:
		what = msg.Command.Link.String() + ":"
	case msg.Command.Algorithm != "":
		what = "swap to " + msg.Command.Algorithm
	case msg.Command.Action != "":
		what = string(msg.Command.Action)
	case msg.Command.Members > 0:
		what = "new population size"
	case len(msg.Command.Set) > 0:
		what = panel.SettingsText(msg.Command)
	default:
		what = "done"
	}
	switch {
	case msg.Err != nil:
		m.Say(cell.Alert, what+": "+msg.Err.Error())
	case !msg.Receipt.Accepted:
		m.Say(cell.Alert, what+" rejected: "+msg.Receipt.Reason)
	case len(msg.Resets) > 0:
		m.showSwap(msg)
	case msg.Command.Action == event.Save:
		m.Say(cell.Good, "checkpoint requested")
	case msg.Receipt.Round > 0:
		m.rail.ShowAccepted(m.Host, msg)
		m.Say(cell.Good, what+" accepted, from round "+textfmt.Grouped(msg.Receipt.Round+1))
	default:
		m.Say(cell.Good, what+" accepted")
	}
}
