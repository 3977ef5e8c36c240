package runs

import (
	"cmp"
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/optim"
	"brood/runtime/timeline"
	"brood/tui/cell"
	"brood/tui/panel"
)

// estimateDelay is the time without typing before an estimate is requested.
const estimateDelay = 300 * time.Millisecond

// Panel returns the launcher, which replaces the rail of runs while it has the focus.
func (l *Launch) Panel() panel.Panel {
	return panel.Panel{
		ID: panel.Launch, Title: l.title, Draw: l.draw, Group: "start a run",
		Example: "tab j l G enter: turn and start", Keys: l.keys(), Hints: l.hints,
		Typing: l.input, Back: l.back, Point: l.point, Poll: l.Poll,
		Commands: []panel.Command{l.newCommand()},
	}
}

// newCommand returns the command that opens the launcher, with a preset if one is given.
func (l *Launch) newCommand() panel.Command {
	return panel.Command{
		Name:     "new",
		Args:     "[PRESET]",
		Optional: true,
		Title:    "start a run: the launcher",
		Why:      WhyNoLaunch,
		Load: func(m *panel.Host) tea.Cmd {
			if l.drafted || WhyNoLaunch(m) != "" {
				return nil
			}
			return l.requestDraft(m)
		},
		Values: func(*panel.Host) (out []panel.Value) {
			for _, name := range l.formLine(panel.LineID{Name: panel.PresetLine}).Words {
				out = append(out, panel.Value{Word: name, Title: name + ": start the preset"})
			}
			return out
		},
		Do: func(m *panel.Host, args []string) (tea.Cmd, error) {
			if len(args) > 0 {
				l.Request = l.Request.With(panel.LineID{Name: panel.PresetLine}, "", strings.Join(args, " "))
			}
			return l.open(m), nil
		},
	}
}

// launcher returns the implementation that starts runs; nil if there is none.
func launcher(m *panel.Host) panel.Launcher {
	l, _ := m.Opt.Library.(panel.Launcher)
	return l
}

// WhyNoLaunch returns why no run can be started from here; "" if one can.
func WhyNoLaunch(m *panel.Host) string {
	switch {
	case m.Opt.ReadOnly:
		return panel.ReadOnlyText
	case launcher(m) == nil || m.HomeScreen() < 0:
		return "no run can be started from here: run `brood` on the machine that shall train"
	}
	return ""
}

// open shows the form in its last state.
func (l *Launch) open(m *panel.Host) tea.Cmd {
	poll := m.OpenScreen(m.HomeScreen())
	m.Focus = panel.Launch
	return tea.Batch(poll, l.changed(m))
}

// back cancels typing; without it, it leaves the form.
func (l *Launch) back(m *panel.Host) bool {
	l.stop()
	m.FocusLead()
	return true
}

// stop cancels a pending estimate and marks it as due again.
func (l *Launch) stop() {
	if l.cancel != nil {
		l.cancel()
		l.cancel, l.due = nil, true
	}
}

func (l *Launch) keys() []panel.Binding {
	move := func(to func(n int) int) func(*panel.Host) tea.Cmd {
		return func(*panel.Host) tea.Cmd {
			n := len(l.lines())
			l.cursor = (to(n) + n) % n
			return nil
		}
	}
	turn := func(d int) func(*panel.Host) tea.Cmd {
		return func(m *panel.Host) tea.Cmd { return l.turn(m, d) }
	}
	return []panel.Binding{
		{Keys: []string{"j", "down"}, Title: "next line", Do: move(func(int) int { return l.cursor + 1 })},
		{Keys: []string{"k", "up"}, Title: "previous line", Do: move(func(int) int { return l.cursor - 1 })},
		{Keys: []string{"tab", "shift+tab"}, Show: "tab", Title: "to the knobs, and back",
			Do: func(*panel.Host) tea.Cmd {
				l.switchColumn()
				return nil
			}},
		{Keys: []string{"g", "home"}, Title: "first line", Do: move(func(int) int { return 0 })},
		{Keys: []string{"G", "end"}, Title: "the line that starts it", Do: move(func(n int) int { return n - 1 })},
		{Keys: []string{"h", "left"}, Title: "a step down, previous choice", Why: l.whyNotTurn, Do: turn(-1)},
		{Keys: []string{"l", "right"}, Title: "a step up, next choice", Why: l.whyNotTurn, Do: turn(1)},
		{Keys: []string{"enter"}, Title: "type a value; start the run", Why: l.whyNotEnter, Do: l.Enter},
		{Keys: []string{"u", "z", "backspace"}, Title: "clear the value of this line", Do: l.clearLine},
		{Keys: []string{"U"}, Title: "clear all but the preset", Do: func(m *panel.Host) tea.Cmd {
			l.Request = panel.Request{Preset: l.Request.Preset}
			return l.changed(m)
		}},
		{Keys: []string{"y"}, Title: "copy the command line", Do: func(m *panel.Host) tea.Cmd {
			m.Say(cell.Plain, "copied: "+l.command)
			return tea.SetClipboard(l.command)
		}},
	}
}

// switchColumn moves between the options and the knobs, to the line that was selected there last.
func (l *Launch) switchColumn() {
	n, options := len(l.draft.Lines), l.Chosen().Knob || l.Chosen() == startLine
	to := n + min(l.knob, max(0, len(l.Knobs())-1))
	if options {
		to = min(l.option, n-1)
	}
	if i := l.cursor; !options {
		l.option = i
	} else if l.Chosen().Knob {
		l.knob = i - n
	}
	l.cursor = to
}

// change replaces the request by a modified one.
func (l *Launch) change(m *panel.Host, r panel.Request) tea.Cmd {
	l.Request = r
	return l.changed(m)
}

// changed requests the draft of the new request, and marks the estimate as due.
func (l *Launch) changed(m *panel.Host) tea.Cmd {
	l.gen++
	l.stop()
	l.due, l.edited = true, m.Opt.Clock()
	return l.requestDraft(m)
}

func (l *Launch) requestDraft(m *panel.Host) tea.Cmd {
	gen, r, lib := l.gen, l.Request, launcher(m)
	return m.Job(func() tea.Msg {
		d := lib.Draft(r)
		return panel.Reply(func(m *panel.Host) tea.Cmd { l.applyDraft(gen, d); return nil })
	})
}

// applyDraft applies the draft of a request. If the request is rejected, the lines stay unchanged.
func (l *Launch) applyDraft(gen int, d panel.Draft) {
	if gen != l.gen {
		return
	}
	at := startLine
	if l.drafted {
		at = l.Chosen()
	}
	l.command, l.Err, l.errLine = d.Command, d.Err, d.At
	if d.Err != nil {
		return
	}
	l.draft = d
	if !l.drafted {
		l.drafted, l.cursor = true, 0
		return
	}
	if i := slices.Index(l.lines(), at); i >= 0 { // another algorithm may lack the knob of the line
		l.cursor = i
	} else {
		l.cursor = min(l.cursor, len(l.lines())-1)
	}
}

// Poll requests the estimate if it is due. While a run starts it does not, since the estimate would compete with that
// run for the processor.
func (l *Launch) Poll(m *panel.Host) tea.Cmd {
	if m.Focus != panel.Launch || l.Starting {
		l.stop()
		return nil
	}
	if !l.due || l.Err != nil || !l.drafted || m.Opt.Clock().Sub(l.edited) < estimateDelay {
		return nil
	}
	ctx, cancel := context.WithCancel(m.Ctx)
	l.due, l.cancel = false, cancel
	gen, r, lib := l.gen, l.Request, launcher(m)
	return m.Job(func() tea.Msg {
		defer cancel()
		e := lib.Estimate(ctx, r)
		return panel.Reply(func(*panel.Host) tea.Cmd {
			if gen == l.gen && !errors.Is(e.Err, context.Canceled) {
				l.estimate, l.estimated, l.cancel = e, gen, nil
			}
			return nil
		})
	})
}

// refusal returns why the run cannot be started, and the line that causes it.
func (l *Launch) refusal() (panel.LineID, error) {
	if l.Err == nil && l.Fresh() {
		return l.estimate.At, l.estimate.Err
	}
	return l.errLine, l.Err
}

func (l *Launch) whyNotTurn(*panel.Host) string {
	at := l.Chosen()
	if at == startLine {
		return "enter starts the run"
	}
	text, _ := l.value(at)
	if _, err := strconv.ParseUint(text, 10, 48); err != nil && !at.Knob && len(l.choices(at)) == 0 {
		return "this value has no steps: enter types one"
	}
	return ""
}

// turn moves the value of a line by d: through its words, or one step up or down on its scale.
func (l *Launch) turn(m *panel.Host, d int) tea.Cmd {
	at := l.Chosen()
	text, _ := l.value(at)
	if words := l.choices(at); !at.Knob && len(words) > 0 {
		i := slices.Index(words, text)
		if i < 0 && d < 0 {
			i = 0
		}
		return l.change(m, l.Request.With(at, l.alg(), words[(i+d+len(words))%len(words)]))
	}
	k := optim.Knob{Min: 1, Max: math.MaxInt32, Integer: true, Scale: optim.Log}
	if at.Name == "seed" {
		k.Scale = optim.Linear
	}
	if !at.Knob { // an option with an integer value
		n, _ := strconv.ParseUint(text, 10, 48)
		return l.change(m, l.Request.With(at, l.alg(),
			strconv.FormatInt(int64(panel.NextValue(k, float64(n), d > 0)), 10)))
	}
	k, _ = l.draft.Knobs.Algorithm.Knob(at.Name)
	if timeline.Moves(text) {
		text = timeline.WithFactor(text, panel.NextFactor(timeline.Factor(text), d > 0))
		return l.change(m, l.Request.With(at, l.alg(), text))
	}
	x, err := k.Parse(text)
	if err != nil { // an invalid value
		x = l.draft.Knobs.Value(k)
	}
	return l.change(m, l.Request.With(at, l.alg(), k.Format(panel.NextValue(k, x, d > 0))))
}

// clearLine removes the user's value of a line.
func (l *Launch) clearLine(m *panel.Host) tea.Cmd {
	at := l.Chosen()
	if at == startLine {
		return nil
	}
	return l.change(m, l.Request.Without(at, l.alg()))
}

func (l *Launch) whyNotEnter(*panel.Host) string {
	switch _, err := l.refusal(); {
	case l.Chosen() != startLine:
		return ""
	case l.Starting:
		return "the run is starting"
	case err != nil:
		return err.Error()
	case !l.drafted:
		return "the form is still being read"
	}
	return ""
}

// Enter starts typing into a line, or starts the run.
func (l *Launch) Enter(m *panel.Host) tea.Cmd {
	at := l.Chosen()
	if at != startLine {
		text, _ := l.value(at)
		l.typing, l.prefix, l.suggested, l.beforeTyping = &panel.TextInput{}, "", true, l.Request
		l.typing.SetText(text)
		l.typedOver = text
		return nil
	}
	l.Starting = true
	l.stop()
	m.Say(cell.Plain, "starting "+l.command)
	ctx, r, lib := m.Ctx, l.Request, launcher(m)
	return m.Job(func() tea.Msg {
		o, err := lib.Begin(ctx, r)
		return panel.Reply(func(m *panel.Host) tea.Cmd {
			l.Starting = false
			return m.SwitchSession(panel.OpenedMsg{Opened: o,
				Message: cmp.Or(o.Message, filepath.Base(o.Session)+" started"), Err: err})
		})
	})
}

// input returns the input of the value being typed; nil if there is none.
func (l *Launch) input() *panel.Typing {
	if l.typing == nil {
		return nil
	}
	hints := [][2]string{{"enter", "keep"}, {"esc", "back"}}
	if len(l.choices(l.Chosen())) > 0 {
		hints = append(hints, [2]string{"up down", "choose"})
	}
	return &panel.Typing{Key: l.key, Hints: hints}
}

// offers returns the choices of the line that contain the typed text.
func (l *Launch) offers() (out []string) {
	for _, w := range l.choices(l.Chosen()) {
		if strings.Contains(strings.ToLower(w), strings.ToLower(l.prefix)) {
			out = append(out, w)
		}
	}
	return out
}

// key handles a key while the user types a value. The request follows every key, so that its draft is shown at once.
func (l *Launch) key(m *panel.Host, name, text string) tea.Cmd {
	at, was := l.Chosen(), l.typing.Text()
	switch name {
	case "esc":
		l.typing = nil
		return l.change(m, l.beforeTyping)
	case "enter":
		l.typing = nil
		return nil
	case "down", "tab":
		l.cycleOffers(1)
	case "up", "shift+tab":
		l.cycleOffers(-1)
	default:
		if l.suggested && text != "" { // typing replaces a suggested value
			l.typing.SetText("")
		}
		l.suggested = false
		l.typing.Key(name, text)
		l.prefix = l.typing.Text()
	}
	now := strings.TrimSpace(l.typing.Text())
	switch {
	case now == strings.TrimSpace(was):
		return nil
	case now == "":
		return l.change(m, l.Request.Without(at, l.alg()))
	}
	if at.Knob {
		now = l.scaled(at, now)
	}
	return l.change(m, l.Request.With(at, l.alg(), now))
}

// scaled returns what *F or /F requests: the replaced schedule with another factor, or a multiple of the replaced
// value. It returns other texts unchanged, and those that cannot be converted.
func (l *Launch) scaled(at panel.LineID, text string) string {
	k, _ := l.draft.Knobs.Algorithm.Knob(at.Name)
	f, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimLeft(text, "*/")), 64)
	if !timeline.Scales(text) || err != nil || f == 0 || len(k.Choices) > 0 {
		return text
	}
	f = timeline.Factor(text)
	if timeline.Moves(l.typedOver) {
		return timeline.Scaled(l.typedOver, f)
	}
	x, err := k.Parse(l.typedOver)
	if err != nil {
		return text
	}
	if x *= f; k.Integer {
		x = math.Round(x)
	}
	return k.Format(x)
}

// cycleOffers replaces the text by the next offered choice.
func (l *Launch) cycleOffers(d int) {
	words := l.offers()
	if len(words) == 0 {
		return
	}
	i := slices.Index(words, l.typing.Text())
	if i < 0 && d < 0 {
		i = 0
	}
	l.suggested = true
	l.typing.SetText(words[(i+d+len(words))%len(words)])
}
