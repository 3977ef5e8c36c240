package tui

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"brood/models/usererr"
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// commands returns the table that the command line, its completion and the palette read: commands of the run, of the
// panels, and of this viewer.
func (m *model) commands() []panel.Command {
	all := m.runCommands()
	for _, p := range m.panels {
		all = append(all, p.Commands...)
	}
	return append(append(all, panel.NoteCommand()), m.viewCommands()...)
}

// runCommands returns the commands that change the run.
func (m *model) runCommands() []panel.Command {
	live := (*panel.Host).WhyNoCommand
	send := func(c event.Command) func(*panel.Host, []string) (tea.Cmd, error) {
		return func(*panel.Host, []string) (tea.Cmd, error) { return m.Send(c), nil }
	}
	return []panel.Command{
		{
			Name:     "set",
			Args:     "KNOB=VALUE",
			Title:    "set one or more knobs to a value or schedule",
			Why:      live,
			Complete: m.completeSet,
			Do:       m.doSet,
		},
		{Name: "members", Args: "N", Title: "change the population size", Why: live, Do: m.doMembers},
		{
			Name:   "swap",
			Args:   "ALGORITHM",
			Title:  "continue with another algorithm",
			Why:    live,
			Values: m.algorithmValues,
			Do:     m.doSwap,
		},
		{
			Name:   "knob",
			Args:   "KNOB",
			Title:  "edit a knob",
			Why:    (*panel.Host).WhyNoStage,
			Values: m.knobValues,
			Do:     m.doKnob,
		},
		{Name: "pause", Title: "pause training", Why: live, Do: send(event.Command{Action: event.Pause})},
		{Name: "resume", Title: "resume training", Why: live, Do: send(event.Command{Action: event.Resume})},
		{Name: "stop", Title: "finish the round, save and end the run (asks)", Why: live, Do: m.doStop},
		{Name: "save", Title: "save a checkpoint now", Why: live, Do: send(event.Command{Action: event.Save})},
		{Name: "take", Title: "request the writer's lease", Why: live, Do: m.leaseCommand(view.LeaseAsk)},
		{Name: "give", Title: "release the writer's lease", Why: live, Do: m.leaseCommand(view.LeaseGive)},
	}
}

// viewCommands returns the commands that affect only this viewer.
func (m *model) viewCommands() []panel.Command {
	return []panel.Command{
		panel.AxisCommand(),
		{Name: "goto", Args: "ROUND|PERCENT%", Title: "go to a round: a recording, or the cursor of a live run",
			Do: m.doGoto},
		{Name: "speed", Args: "X", Title: "play a recording X times as fast", Do: m.doSpeed},
		{Name: "member", Args: "ID", Title: "focus a member", Why: needsRun, Values: m.memberValues, Do: m.doMember},
		{Name: "screen", Args: "NAME|N", Title: "open a screen", Values: m.screenValues, Do: m.doScreen},
		{Name: "help", Title: "keys", Do: func(*panel.Host, []string) (tea.Cmd,
			error) {
			m.Popup = &help{m: m}
			return nil, nil
		}},
		{Name: "quit", Title: "detach: training continues",
			Do: func(*panel.Host, []string) (tea.Cmd, error) { return tea.Quit, nil }},
	}
}

func (m *model) completeSet(_ *panel.Host, words []string) (out []string) {
	if m.Alg == nil {
		return nil
	}
	if len(words) > 1 && strings.Contains(words[0], "=") { // several assignments: complete the last
		return m.completeSet(m.Host, words[len(words)-1:])
	}
	if name, value, ok := strings.Cut(words[0], "="); ok {
		for _, v := range m.completeSet(m.Host, []string{name, value}) {
			out = append(out, name+"="+v)
		}
		return out
	}
	if len(words) == 2 {
		if k, ok := m.Alg.Knob(words[0]); ok {
			out = append(out, k.Choices...)
			if len(k.Choices) == 0 {
				out = append(out, k.Format(m.KnobValue(k)), "linear:", "cosine:", "warmup:", "exp:", "step:",
					"piecewise:")
			}
		}
		return out
	}
	for _, k := range m.Alg.Knobs {
		out = append(out, k.Name)
	}
	return out
}

func (m *model) algorithmValues(*panel.Host) (out []panel.Value) {
	for _, a := range m.Opt.Algorithms {
		out = append(out, panel.Value{Word: a.Name, Title: a.Name + ": continue with it"})
	}
	return out
}

func (m *model) knobValues(*panel.Host) (out []panel.Value) {
	for _, k := range m.AllKnobs() {
		out = append(out, panel.Value{Word: k.Name, Title: m.KnobLabel(k) + ": edit, " + k.Title})
	}
	return out
}

func (m *model) memberValues(*panel.Host) (out []panel.Value) {
	for _, id := range m.Shown.Members().Members {
		name := fmt.Sprintf("m%d", id)
		out = append(out, panel.Value{Word: name, Title: name + ": focus it"})
	}
	return out
}

func (m *model) screenValues(*panel.Host) (out []panel.Value) {
	for _, s := range m.screens() {
		out = append(out, panel.Value{Word: strings.ToLower(s.Name), Title: "screen " + s.Name,
			Key: strconv.Itoa(s.Digit)})
		if s.Instead != "" {
			out = append(out, panel.Value{Word: strings.ToLower(s.Instead), Title: "screen " + s.Instead,
				Key: fmt.Sprintf("%d w", s.Digit)})
		}
	}
	return out
}

// doKnob selects a knob in the panel of knobs that has the focus, else in the rail, and opens its editor.
func (m *model) doKnob(_ *panel.Host, args []string) (tea.Cmd, error) {
	var all []string
	for _, v := range m.knobValues(m.Host) {
		all = append(all, v.Word)
	}
	if !slices.Contains(all, args[0]) {
		return nil, fmt.Errorf("knob: there is no knob %q%s: choose one of %s", args[0],
			usererr.Suggest(args[0], all), strings.Join(all, ", "))
	}
	if !m.KnobsFocused() {
		m.openRail()
	}
	m.setFilter("knobs", "")
	m.rail.Edit(args[0])
	return nil, nil
}

// doSet parses NAME VALUE, or one or several NAME=VALUE as brood set does. It sends several knobs in one command, so
// that all take effect in the same round.
func (m *model) doSet(_ *panel.Host, args []string) (tea.Cmd, error) {
	if !strings.Contains(args[0], "=") && len(args) > 1 {
		if len(args) > 2 {
			return nil, fmt.Errorf("set: unexpected %q: write set KNOB=VALUE, several separated by blanks", args[2])
		}
		args = []string{args[0] + "=" + args[1]}
	}
	var c event.Command
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if bare := strings.TrimRight(name, "+-"); bare != name { // eta+=0.1
			name, value = bare, name[len(bare):]+"="+value
		}
		if !ok || name == "" || value == "" {
			return nil, fmt.Errorf("set: %q is not KNOB=VALUE: write set KNOB=VALUE, such as set eta=0.05 momentum=0.5",
				arg)
		}
		if i := slices.IndexFunc(m.AllKnobs(), func(k optim.Knob) bool { return k.Name == name }); i >= 0 {
			x, err := m.rail.Evaluate(m.Host, m.AllKnobs()[i], value)
			if err != nil {
				return nil, err
			}
			value = x
		}
		if name == view.MembersKnob {
			if len(args) > 1 {
				return nil, errors.New("set: members cannot be set with other knobs: write members N")
			}
			return m.doMembers(m.Host, []string{value})
		}
		c.Set = append(c.Set, event.Setting{Knob: name, Expr: value})
	}
	return m.Send(c), nil
}

func (m *model) doMembers(_ *panel.Host, args []string) (tea.Cmd, error) {
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 1 {
		return nil, fmt.Errorf("members: %q is not a population size: give an integer above 0", args[0])
	}
	return m.Send(event.Command{Members: n}), nil
}

func (m *model) doSwap(_ *panel.Host, args []string) (tea.Cmd, error) {
	var all []string
	for _, a := range m.Opt.Algorithms {
		all = append(all, a.Name)
	}
	if len(all) > 0 && !slices.Contains(all, args[0]) {
		return nil, fmt.Errorf("swap: there is no algorithm %q%s: choose one of %s", args[0],
			usererr.Suggest(args[0], all),
			strings.Join(all, ", "))
	}
	return m.Send(event.Command{Algorithm: args[0]}), nil
}

func (m *model) doStop(_ *panel.Host, _ []string) (tea.Cmd, error) {
	m.Popup = &panel.Question{
		Text: "Stop the run? It finishes its round, saves and ends; it can be resumed later. To only close this " +
			"screen press q instead.",
		Yes: "stop the run",
		Do:  func(*panel.Host) tea.Cmd { return m.Send(event.Command{Action: event.Stop}) },
	}
	return nil, nil
}

func (m *model) doGoto(_ *panel.Host, args []string) (tea.Cmd, error) {
	if m.Opt.Source == nil {
		return nil, errors.New(panel.NoRunText)
	}
	last := m.timeScaleOf(1).total
	if pc, ok := strings.CutSuffix(args[0], "%"); ok {
		x, err := strconv.ParseFloat(pc, 64)
		if err != nil || !(x >= 0 && x <= 100) {
			return nil, fmt.Errorf("goto: %q is not a percentage from 0 to 100", args[0])
		}
		return m.goTo(uint64(x/100*float64(last) + 0.5)), nil
	}
	to, err := strconv.ParseUint(args[0], 10, 63)
	if err != nil {
		return nil, fmt.Errorf("goto: %q is not a round: give an integer or a percentage", args[0])
	}
	if m.Replay == nil {
		if to > last {
			return nil, fmt.Errorf("goto: round %s has not been reached: the newest is %s", textfmt.Grouped(to),
				textfmt.Grouped(last))
		}
		return m.goTo(to), nil
	}
	r, ctx, seek := m.Replay, m.Reading.Ctx, m.toRound(to)
	return m.SessionJob(func() tea.Msg {
		if _, err := r.Round(ctx, to); err == nil && to > r.Extent().Rounds {
			return panel.Reply(func(*panel.Host) tea.Cmd {
				m.Say(cell.Warn, fmt.Sprintf("goto: round %s is after the end of the recording at round %s",
					textfmt.Grouped(to), textfmt.Grouped(r.Extent().Rounds)))
				return nil
			})
		}
		return seek()
	}), nil
}

// goTo moves to a known round, for a live run on a screen that shows it.
func (m *model) goTo(round uint64) tea.Cmd {
	var open tea.Cmd
	if m.Replay == nil && !m.screens()[m.screen].Charts {
		open = m.OpenScreen(0)
	}
	return tea.Batch(open, m.moveTo(round))
}

// toRound seeks a recording to the first commit at or after a round, or to its end.
func (m *model) toRound(to uint64) tea.Cmd {
	r, ctx, gen := m.Replay, m.Reading.Ctx, m.Feed.Gen
	return m.SessionJob(func() tea.Msg {
		at, err := r.Round(ctx, to)
		return seekMsg{gen, at, err}
	})
}

func (m *model) doSpeed(_ *panel.Host, args []string) (tea.Cmd, error) {
	x, err := strconv.ParseFloat(strings.TrimSuffix(args[0], "x"), 64)
	switch {
	case m.Replay == nil:
		return nil, errors.New("speed: this is a live run: only a recording has a speed")
	case err != nil || !(x > 0):
		return nil, fmt.Errorf("speed: %q is not a speed: give a number above 0", args[0])
	}
	r := m.Replay
	return func() tea.Msg { r.SetSpeed(x); return nil }, nil
}

func (m *model) doMember(_ *panel.Host, args []string) (tea.Cmd, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(args[0], "m"), 10, 32)
	for _, id := range m.Shown.Members().Members {
		if err == nil && uint64(id) == n {
			m.Member = id
			return nil, nil
		}
	}
	return nil, fmt.Errorf("member: there is no member %q", args[0])
}

func (m *model) doScreen(_ *panel.Host, args []string) (tea.Cmd, error) {
	for i, s := range m.screens() {
		if strings.EqualFold(s.Name, args[0]) || strconv.Itoa(s.Digit) == args[0] {
			return m.OpenScreen(i), nil
		}
		if s.Instead != "" && strings.EqualFold(s.Instead, args[0]) {
			return m.openInstead(i), nil
		}
	}
	var all []string
	for _, v := range m.screenValues(m.Host) {
		all = append(all, v.Word)
	}
	return nil, fmt.Errorf("screen: there is no %q%s: choose one of %s", args[0], usererr.Suggest(args[0], all),
		strings.Join(all, ", "))
}
