package tui

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/axis"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/view"
	"brood/tui/cell"
)

// model is the state of the workbench. Update is its only writer and runs on one goroutine.
type model struct {
	opt   Options
	ctx   context.Context
	theme cell.Theme
	dark  bool
	w, h  int

	feed     feed
	live     *view.View // state folded from the records of the source
	shown    *view.View // live, or a clone of it while frozen
	knobs    *view.Knobs
	alg      *optim.Algorithm
	rules    string           // the rules that ruledAlg was built from
	ruledAlg *optim.Algorithm // see withRules

	screen    int
	focus     panelID
	expanded  bool
	drawer    bool // the knob rail is open over a narrow screen
	logAxis   bool
	outliers  bool // axes include outliers
	smoothing int  // index into smoothings
	window    window
	axis      axis.Axis // as chosen by the user, see over
	cursor    cursor
	under     uint64 // round under the mouse at its last position over a chart; 0: none
	drag      drag
	member    engine.Member
	trait     string // series of the member panels; "": that of the algorithm

	panels       []panel // see newPanels
	rail         *rail
	filters      filters
	past         past
	popup        popup       // nil, help, palette or a question
	inside       cell.Rect   // content area of the popup in the last frame
	tabs         []cell.Rect // areas of the screen names in the last frame
	prompt       *prompt     // the command line
	toast        toast
	notes        []session.RoundNote // notes on rounds of the shown session, ascending
	acked        view.Position       // alerts before it are acknowledged
	awaited      string              // joined and required workers of the first round, as text
	activity     *view.Doing         // of the workers, from the last answer; nil: none
	activityAt   time.Time           // time of that answer
	lastRecordAt time.Time           // arrival of the newest record; zero: none
	placed       []placement         // areas of the panels in the last frame, for focus and mouse
	grid         *cell.Grid
	replay       *Replay
	firstID      uint64 // commands of this viewer have the ids firstID+1 to lastID
	lastID       uint64
	leasing      leasing
	jobs         *jobs         // background jobs; Run waits for them
	kept         chan struct{} // closed when the last changed settings are saved
	reading      reading
	branching    *branching // set while a fork is recomputed
}

// toast is a temporary message in the key line.
type toast struct {
	text  string
	role  cell.Role
	until time.Time
}

type (
	tickMsg    time.Time
	receiptMsg struct {
		command event.Command
		receipt event.Receipt
		err     error
		resets  []string // knobs that an accepted swap resets to their defaults
	}
	seekMsg struct {
		gen int // generation of the feed at the request
		at  view.Position
		err error
	}
)

func newModel(ctx context.Context, opt Options) *model {
	opt.defaults()
	if opt.ReadOnly {
		opt.Commander = nil
	}
	m := &model{opt: opt, ctx: ctx, dark: !opt.Light, w: opt.Width, h: opt.Height, focus: lossPanel,
		rail: &rail{}, logAxis: true, smoothing: 1, jobs: &jobs{}}
	m.panels = newPanels(m)
	m.begin()
	m.firstID = uint64(opt.Clock().UnixNano())
	m.lastID = m.firstID
	for i, s := range m.screens() {
		if opt.Source == nil && s.home || opt.Source != nil && s.name == opt.Screen {
			m.screen, m.focus = i, s.lead
		}
		if opt.Source != nil && s.instead != "" && s.instead == opt.Screen {
			m.screen = i
			_ = s.show(m)
		}
	}
	m.restyle()
	if why := opt.Settings.Broken; why != "" {
		m.say(cell.Warn, "your charts and layouts cannot be read: "+why)
	}
	return m
}

func (m *model) restyle() {
	m.theme = cell.Coloured(m.dark, m.opt.ASCII)
	if m.opt.NoColor {
		m.theme = cell.Plainly(m.opt.ASCII)
	}
}

// Init starts the clock and requests the background colour, the first session and its notes.
func (m *model) Init() tea.Cmd {
	return tea.Batch(m.tick(), tea.RequestBackgroundColor, m.look(), m.readNotes())
}

func (m *model) tick() tea.Cmd {
	ctx := m.ctx
	return m.job(func() tea.Msg {
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
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		if m.w, m.h = msg.Width, msg.Height; m.w <= 0 || m.h <= 0 {
			m.w, m.h = m.opt.Width, m.opt.Height
		}
	case tea.BackgroundColorMsg:
		if !m.opt.Fixed {
			m.dark = msg.IsDark()
			m.restyle()
		}
	case tea.KeyPressMsg:
		return m, m.key(msg.String(), msg.Text)
	case tea.PasteMsg:
		return m, m.paste(msg.Content)
	case tea.MouseClickMsg:
		return m, m.press(msg.X, msg.Y)
	case tea.MouseReleaseMsg:
		m.release(msg.X)
	case tea.MouseWheelMsg:
		return m, m.wheel(msg)
	case snapshotMsg:
		return m, m.applySnapshot(msg)
	case batchMsg:
		return m, m.fold(msg)
	case receiptMsg:
		m.answered(msg)
	case seekMsg:
		switch {
		case msg.gen != m.feed.gen: // the user has moved elsewhere
			return m, nil
		case msg.err != nil:
			m.say(cell.Alert, msg.err.Error())
			return m, nil
		}
		return m, m.seek(msg.at)
	case scannedMsg:
		if msg.err != nil && !errors.Is(msg.err, context.Canceled) {
			m.say(cell.Alert, "the recording cannot be read to its end: "+msg.err.Error())
		}
	case tickMsg:
		if m.toast.text != "" && m.opt.Clock().After(m.toast.until) {
			m.toast = toast{}
		}
		return m, tea.Batch(m.tick(), m.retry(), m.poll(), m.pollLease())
	case reply:
		return m, msg(m)
	case leaseMsg:
		m.leased(msg)
	case exportedMsg:
		m.exported(msg)
	case branchedMsg:
		return m, m.branched(msg)
	case openedMsg:
		return m, m.enter(msg)
	}
	return m, nil
}

// say shows a message for six seconds.
func (m *model) say(role cell.Role, text string) {
	m.toast = toast{text, role, m.opt.Clock().Add(6 * time.Second)}
}

// withRules returns a, or for a protocol the algorithm built from the rule table of the run, which declares its own
// series. It caches the result.
func (m *model) withRules(a *optim.Algorithm) *optim.Algorithm {
	c := m.shown.Config
	if a.Given == nil || c == nil || c.Data != "" || c.ModelSpec == "" {
		return a
	}
	if m.rules != c.ModelSpec {
		m.rules, m.ruledAlg = c.ModelSpec, a
		if own, err := a.Given([]byte(c.ModelSpec)); err == nil { // the run rejects rules that do not compile
			m.ruledAlg = own
		}
	}
	return m.ruledAlg
}

// refresh recomputes what depends on the shown view.
func (m *model) refresh() {
	name := m.shown.Algorithm()
	m.alg = nil
	for _, a := range m.opt.Algorithms {
		if a.Name == name {
			m.alg = m.withRules(a)
		}
	}
	m.knobs = nil
	if m.alg != nil {
		m.knobs = m.shown.Resolve(m.alg)
	}
	if r := m.shown.Members(); len(r.Members) > 0 && !r.Has(m.member) {
		m.member = r.Members[0]
	}
	m.rail.settle(m)
	m.past.follow(m.live.Algorithm())
}

// send sends a command. The receipt arrives as a receiptMsg.
func (m *model) send(c event.Command) tea.Cmd {
	if why := m.whyNoCommand(); why != "" {
		m.say(cell.Warn, why)
		return nil
	}
	if c = m.sign(c); c.Algorithm == "" && (len(c.Set) > 0 || c.Members > 0) {
		c.Of = m.live.Algorithm()
	}
	m.past.ask(m, c)
	ctx, to, resets := m.reading.ctx, m.opt.Commander, m.resets(c)
	return m.task(func() tea.Msg {
		r, err := to.Command(ctx, c)
		return receiptMsg{c, r, err, resets}
	})
}

// sign assigns the id and the author of a command.
func (m *model) sign(c event.Command) event.Command {
	m.lastID++
	c.ID, c.By = m.lastID, m.opt.By
	return c
}

// readOnly is the reason with --read-only.
const readOnly = "you are looking only, as --read-only asks: attach without it to give commands"

// whyNoCommand returns why commands are impossible; "" if they are possible.
func (m *model) whyNoCommand() string {
	switch {
	case m.opt.Source == nil:
		return noRun
	case m.replay != nil:
		if m.brancher() != nil {
			return "this is a recording: B starts a new run here, with the knobs that are staged"
		}
		return "this is a recording: knobs and commands need a live run"
	case m.opt.ReadOnly:
		return readOnly
	case m.opt.Commander == nil:
		return "you are looking only: attach as the writer to give commands"
	case m.live.Over():
		return "the run has ended: resume it to go on"
	case m.killed():
		return m.killedText()
	}
	return ""
}

// answered shows the result of a command.
func (m *model) answered(msg receiptMsg) {
	if errors.Is(msg.err, context.Canceled) {
		return // the user left the session
	}
	what := m.past.answer(msg)
	if m.rail.answered(m, msg) {
		return
	}
	switch {
	case what != "":
	case msg.command.Link != nil:
		what = msg.command.Link.String() + ":"
	case msg.command.Algorithm != "":
		what = "swap to " + msg.command.Algorithm
	case msg.command.Action != "":
		what = string(msg.command.Action)
	case msg.command.Members > 0:
		what = "new population size"
	case len(msg.command.Set) > 0:
		what = words(msg.command)
	default:
		what = "done"
	}
	switch {
	case msg.err != nil:
		m.say(cell.Alert, what+": "+msg.err.Error())
	case !msg.receipt.Accepted:
		m.say(cell.Alert, what+" refused: "+msg.receipt.Reason)
	case len(msg.resets) > 0:
		m.swapped(msg)
	case msg.receipt.Round > 0:
		m.rail.accepted(m, msg)
		m.say(cell.Good, what+" accepted, from round "+round(msg.receipt.Round+1))
	default:
		m.say(cell.Good, what+" accepted")
	}
}
