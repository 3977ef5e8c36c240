package tui

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
	"brood/tui/cell"
)

// estimateDelay is the time without typing before an estimate is requested.
const estimateDelay = 300 * time.Millisecond

const launchPanel panelID = "launch"

// panel returns the launcher, which replaces the rail of runs while it has the focus.
func (l *launch) panel() panel {
	return panel{
		id: launchPanel, title: l.title, draw: l.draw, group: "begin a run", keys: l.keys(), hints: l.hints,
		typing: l.typed, back: l.back, point: l.point, poll: l.poll,
		commands: []command{{name: "new", title: "begin a run: the launcher",
			do: func(m *model, _ []string) (tea.Cmd, error) {
				if why := whyNoLaunch(m); why != "" {
					return nil, errors.New("new: " + why)
				}
				return l.open(m), nil
			}}},
	}
}

// launcher returns the implementation that starts runs; nil if there is none.
func (m *model) launcher() Launcher {
	l, _ := m.opt.Library.(Launcher)
	return l
}

// whyNoLaunch returns why no run can be started from here; "" if one can.
func whyNoLaunch(m *model) string {
	switch {
	case m.opt.ReadOnly:
		return readOnly
	case m.launcher() == nil || m.home() < 0:
		return "no run can be begun from here: `brood` on the machine that is to train it has this form"
	}
	return ""
}

// open shows the form in its last state.
func (l *launch) open(m *model) tea.Cmd {
	poll := m.openScreen(m.home())
	m.focus = launchPanel
	return tea.Batch(poll, l.changed(m))
}

// back cancels typing; without it, it leaves the form.
func (l *launch) back(m *model) bool {
	l.stop()
	m.focus, m.expanded = m.screens()[m.screen].lead, false
	return true
}

// stop cancels a pending estimate and marks it as due again.
func (l *launch) stop() {
	if l.cancel != nil {
		l.cancel()
		l.cancel, l.due = nil, true
	}
}

func (l *launch) keys() []binding {
	move := func(to func(n int) int) func(*model) tea.Cmd {
		return func(*model) tea.Cmd {
			n := len(l.lines())
			l.cursor = (to(n) + n) % n
			return nil
		}
	}
	turn := func(d int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { return l.turn(m, d) }
	}
	return []binding{
		{keys: []string{"j", "down"}, title: "next line", do: move(func(int) int { return l.cursor + 1 })},
		{keys: []string{"k", "up"}, title: "line before", do: move(func(int) int { return l.cursor - 1 })},
		{keys: []string{"tab", "shift+tab"}, show: "tab", title: "to the knobs, and back", do: func(*model) tea.Cmd {
			l.cross()
			return nil
		}},
		{keys: []string{"g", "home"}, title: "first line", do: move(func(int) int { return 0 })},
		{keys: []string{"G", "end"}, title: "the line that begins it", do: move(func(n int) int { return n - 1 })},
		{keys: []string{"h", "left"}, title: "a step down, choice before", why: l.mayTurn, do: turn(-1)},
		{keys: []string{"l", "right"}, title: "a step up, next choice", why: l.mayTurn, do: turn(1)},
		{keys: []string{"enter"}, title: "type a value; begin it", why: l.mayEnter, do: l.enter},
		{keys: []string{"u", "z", "backspace"}, title: "take back what was said here", do: l.unsay},
		{keys: []string{"U"}, title: "take all back, but the preset", do: func(m *model) tea.Cmd {
			l.request = Request{Preset: l.request.Preset}
			return l.changed(m)
		}},
		{keys: []string{"y"}, title: "copy the command line", do: func(m *model) tea.Cmd {
			m.say(cell.Plain, "copied: "+l.command)
			return tea.SetClipboard(l.command)
		}},
	}
}

// cross moves between the options and the knobs, to the line that was selected there last.
func (l *launch) cross() {
	n, options := len(l.draft.Lines), l.chosen().Knob || l.chosen() == beginLine
	to := n + min(l.knob, max(0, len(l.knobs())-1))
	if options {
		to = min(l.option, n-1)
	}
	if i := l.cursor; !options {
		l.option = i
	} else if l.chosen().Knob {
		l.knob = i - n
	}
	l.cursor = to
}

// change replaces the request by a modified one.
func (l *launch) change(m *model, r Request) tea.Cmd {
	l.request = r
	return l.changed(m)
}

// changed asks what the request comes to, and has its needs worked out once nobody has typed for a moment.
func (l *launch) changed(m *model) tea.Cmd {
	l.gen++
	l.stop()
	l.due, l.edited = true, m.opt.Clock()
	gen, r, lib := l.gen, l.request, m.launcher()
	return m.job(func() tea.Msg {
		d := lib.Draft(r)
		return reply(func(m *model) tea.Cmd { l.took(gen, d); return nil })
	})
}

// took applies the draft of a request. If the request is rejected, the lines stay unchanged.
func (l *launch) took(gen int, d Draft) {
	if gen != l.gen {
		return
	}
	at := beginLine
	if l.drafted {
		at = l.chosen()
	}
	l.command, l.err, l.at = d.Command, d.Err, d.At
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

// poll asks for the estimate that is due; not while a run begins, which it would train beside.
func (l *launch) poll(m *model) tea.Cmd {
	if m.focus != launchPanel || l.beginning {
		l.stop()
		return nil
	}
	if !l.due || l.err != nil || !l.drafted || m.opt.Clock().Sub(l.edited) < estimateDelay {
		return nil
	}
	ctx, cancel := context.WithCancel(m.ctx)
	l.due, l.cancel = false, cancel
	gen, r, lib := l.gen, l.request, m.launcher()
	return m.job(func() tea.Msg {
		defer cancel()
		e := lib.Estimate(ctx, r)
		return reply(func(*model) tea.Cmd {
			if gen == l.gen && !errors.Is(e.Err, context.Canceled) {
				l.estimate, l.estimated, l.cancel = e, gen, nil
			}
			return nil
		})
	})
}

// refused returns why the run cannot be started, and the line that causes it.
func (l *launch) refused() (LineID, error) {
	if l.err == nil && l.fresh() {
		return l.estimate.At, l.estimate.Err
	}
	return l.at, l.err
}

func (l *launch) mayTurn(*model) string {
	at := l.chosen()
	if at == beginLine {
		return "enter begins it"
	}
	text, _ := l.value(at)
	if _, err := strconv.ParseUint(text, 10, 48); err != nil && !at.Knob && len(l.words(at)) == 0 {
		return "there is no step from here: enter types a value"
	}
	return ""
}

// turn moves the value of a line by d: through its words, or one step up or down on its scale.
func (l *launch) turn(m *model, d int) tea.Cmd {
	at := l.chosen()
	text, _ := l.value(at)
	if words := l.words(at); !at.Knob && len(words) > 0 {
		i := slices.Index(words, text)
		if i < 0 && d < 0 {
			i = 0
		}
		return l.change(m, l.request.with(at, l.alg(), words[(i+d+len(words))%len(words)]))
	}
	k := optim.Knob{Min: 1, Max: math.MaxInt32, Integer: true, Scale: optim.Log}
	if at.Name == "seed" {
		k.Scale = optim.Linear
	}
	if !at.Knob { // an option with an integer value
		n, _ := strconv.ParseUint(text, 10, 48)
		return l.change(m, l.request.with(at, l.alg(), strconv.FormatInt(int64(step(k, float64(n), d > 0)), 10)))
	}
	k, _ = l.draft.Knobs.Algorithm.Knob(at.Name)
	x, err := k.Parse(text)
	if err != nil { // a schedule or an invalid value
		x = l.draft.Knobs.Value(k)
	}
	return l.change(m, l.request.with(at, l.alg(), k.Format(step(k, x, d > 0))))
}

func (l *launch) unsay(m *model) tea.Cmd {
	at := l.chosen()
	if at == beginLine {
		return nil
	}
	return l.change(m, l.request.Without(at, l.alg()))
}

func (l *launch) mayEnter(*model) string {
	switch _, err := l.refused(); {
	case l.chosen() != beginLine:
		return ""
	case l.beginning:
		return "it is beginning"
	case err != nil:
		return err.Error()
	case !l.drafted:
		return "it is still being read"
	}
	return ""
}

// enter starts typing into a line, or starts the run.
func (l *launch) enter(m *model) tea.Cmd {
	at := l.chosen()
	if at != beginLine {
		text, _ := l.value(at)
		l.typing, l.stem, l.untouched, l.before = &line{}, "", true, l.request
		l.typing.set(text)
		return nil
	}
	l.beginning = true
	l.stop()
	m.say(cell.Plain, "beginning "+l.command)
	ctx, r, lib := m.ctx, l.request, m.launcher()
	return m.job(func() tea.Msg {
		o, err := lib.Begin(ctx, r)
		return reply(func(m *model) tea.Cmd {
			l.beginning = false
			return m.enter(openedMsg{o, cmp.Or(o.Said, filepath.Base(o.Session)+" begins"), err})
		})
	})
}

// typed returns the input of the value being typed for a line; nil if none is.
func (l *launch) typed() *typing {
	if l.typing == nil {
		return nil
	}
	hints := [][2]string{{"enter", "keep"}, {"esc", "back"}}
	if len(l.words(l.chosen())) > 0 {
		hints = append(hints, [2]string{"up down", "choose"})
	}
	return &typing{l.key, hints}
}

// offers are the words that hold what was typed; all before something was.
func (l *launch) offers() (out []string) {
	for _, w := range l.words(l.chosen()) {
		if strings.Contains(strings.ToLower(w), strings.ToLower(l.stem)) {
			out = append(out, w)
		}
	}
	return out
}

// key takes a key while a value is typed. The request follows it, so that what it comes to is seen at once.
func (l *launch) key(m *model, name, text string) tea.Cmd {
	at, was := l.chosen(), l.typing.text()
	switch name {
	case "esc":
		l.typing = nil
		return l.change(m, l.before)
	case "enter":
		l.typing = nil
		return nil
	case "down", "tab":
		l.walk(1)
	case "up", "shift+tab":
		l.walk(-1)
	default:
		if l.untouched && text != "" { // what is there goes when something is typed
			l.typing.set("")
		}
		l.untouched = false
		l.typing.key(name, text)
		l.stem = l.typing.text()
	}
	now := strings.TrimSpace(l.typing.text())
	switch {
	case now == strings.TrimSpace(was):
		return nil
	case now == "":
		return l.change(m, l.request.Without(at, l.alg()))
	}
	return l.change(m, l.request.with(at, l.alg(), now))
}

// walk inserts the next offered word into the line.
func (l *launch) walk(d int) {
	words := l.offers()
	if len(words) == 0 {
		return
	}
	i := slices.Index(words, l.typing.text())
	if i < 0 && d < 0 {
		i = 0
	}
	l.untouched = true
	l.typing.set(words[(i+d+len(words))%len(words)])
}
