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
)

// command is a command of the command line.
type command struct {
	name, args, title string
	live              bool                                    // needs a Commander
	optional          bool                                    // args may be omitted
	complete          func(m *model, words []string) []string // completions of the last word; nil: none
	do                func(m *model, args []string) (tea.Cmd, error)
}

// commands returns the table that the command line, its completion and the palette read: commands of the run, of the
// panels, and of this viewer.
func (m *model) commands() []command {
	all := runCommands()
	for _, p := range m.panels {
		all = append(all, p.commands...)
	}
	return append(append(all, noteCommand()), lookingCommands()...)
}

func runCommands() []command {
	none := func(c event.Command) func(*model, []string) (tea.Cmd, error) {
		return func(m *model, _ []string) (tea.Cmd, error) { return m.send(c), nil }
	}
	return []command{
		{
			name:     "set",
			args:     "KNOB=VALUE",
			title:    "set a knob, or several, to a value or schedule",
			live:     true,
			complete: completeSet,
			do:       doSet,
		},
		{name: "members", args: "N", title: "change the population size", live: true, do: doMembers},
		{
			name:     "swap",
			args:     "ALGORITHM",
			title:    "go on with another algorithm",
			live:     true,
			complete: completeAlgorithm,
			do:       doSwap,
		},
		{name: "pause", title: "pause training", live: true, do: none(event.Command{Action: event.Pause})},
		{name: "resume", title: "resume training", live: true, do: none(event.Command{Action: event.Resume})},
		{name: "stop", title: "finish the round, save and end the run (asks)", live: true, do: doStop},
		{name: "save", title: "save a checkpoint now", live: true, do: none(event.Command{Action: event.Save})},
		{name: "take", title: "ask for the writer's lease", live: true, do: doLease(view.LeaseAsk)},
		{name: "give", title: "give the writer's lease away", live: true, do: doLease(view.LeaseGive)},
	}
}

// lookingCommands returns the commands that affect only this viewer.
func lookingCommands() []command {
	return []command{
		axisCommand(),
		{name: "goto", args: "ROUND|PERCENT%", title: "go to a round of a recording", do: doGoto},
		{name: "speed", args: "X", title: "play a recording X times as fast", do: doSpeed},
		{name: "member", args: "ID", title: "focus a member", do: doMember},
		{name: "screen", args: "NAME|N", title: "open a screen", complete: completeScreen, do: doScreen},
		{name: "help", title: "keys", do: func(m *model, _ []string) (tea.Cmd, error) { m.popup = &help{}; return nil, nil }},
		{name: "quit", title: "detach: training goes on",
			do: func(*model, []string) (tea.Cmd, error) { return tea.Quit, nil }},
	}
}

func completeSet(m *model, words []string) (out []string) {
	if m.alg == nil {
		return nil
	}
	if name, value, ok := strings.Cut(words[0], "="); ok && len(words) == 1 {
		for _, v := range completeSet(m, []string{name, value}) {
			out = append(out, name+"="+v)
		}
		return out
	}
	if len(words) == 2 {
		if k, ok := m.alg.Knob(words[0]); ok {
			out = append(out, k.Choices...)
			if len(k.Choices) == 0 {
				out = append(out, k.Format(m.current(k)), "linear:", "cosine:", "warmup:", "exp:", "step:", "piecewise:")
			}
		}
		return out
	}
	for _, k := range m.alg.Knobs {
		out = append(out, k.Name)
	}
	return out
}

func completeAlgorithm(m *model, _ []string) (out []string) {
	for _, a := range m.opt.Algorithms {
		out = append(out, a.Name)
	}
	return out
}

func completeScreen(m *model, _ []string) (out []string) {
	for _, s := range m.screens() {
		out = append(out, strings.ToLower(s.name))
	}
	for _, s := range m.screens() {
		if s.instead != "" {
			out = append(out, strings.ToLower(s.instead))
		}
	}
	return out
}

// doSet parses NAME VALUE, or one or several NAME=VALUE as brood set does. It sends several knobs in one command, so
// that all take effect in the same round.
func doSet(m *model, args []string) (tea.Cmd, error) {
	if !strings.Contains(args[0], "=") && len(args) > 1 {
		if len(args) > 2 {
			return nil, fmt.Errorf("set: %q is one too many: write set KNOB=VALUE, several with blanks between them", args[2])
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
			return nil, fmt.Errorf("set: %q is no KNOB=VALUE: write set KNOB=VALUE, such as set eta=0.05 momentum=0.5", arg)
		}
		if i := slices.IndexFunc(m.allKnobs(), func(k optim.Knob) bool { return k.Name == name }); i >= 0 {
			x, err := m.rail.evaluate(m, m.allKnobs()[i], value)
			if err != nil {
				return nil, err
			}
			value = x
		}
		if name == view.MembersKnob {
			if len(args) > 1 {
				return nil, errors.New("set: change members by itself, with members N")
			}
			return doMembers(m, []string{value})
		}
		c.Set = append(c.Set, event.Setting{Knob: name, Expr: value})
	}
	return m.send(c), nil
}

func doMembers(m *model, args []string) (tea.Cmd, error) {
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 1 {
		return nil, fmt.Errorf("members: %q is no population size: give a whole number above 0", args[0])
	}
	return m.send(event.Command{Members: n}), nil
}

func doSwap(m *model, args []string) (tea.Cmd, error) {
	all := completeAlgorithm(m, nil)
	if len(all) > 0 && !slices.Contains(all, args[0]) {
		return nil, fmt.Errorf("swap: there is no algorithm %q%s: choose one of %s", args[0], usererr.Suggest(args[0], all),
			strings.Join(all, ", "))
	}
	return m.send(event.Command{Algorithm: args[0]}), nil
}

func doStop(m *model, _ []string) (tea.Cmd, error) {
	m.popup = &question{
		text: "Stop the run? It finishes its round, saves and ends; it can be resumed later. To leave only this screen press q " +
			"instead.",
		yes: "stop the run",
		do:  func(m *model) tea.Cmd { return m.send(event.Command{Action: event.Stop}) },
	}
	return nil, nil
}

func doGoto(m *model, args []string) (tea.Cmd, error) {
	if m.replay == nil {
		return nil, fmt.Errorf("goto: this is a live run: open its recording to move in time")
	}
	if pc, ok := strings.CutSuffix(args[0], "%"); ok {
		x, err := strconv.ParseFloat(pc, 64)
		if err != nil || x < 0 || x > 100 {
			return nil, fmt.Errorf("goto: %q is no percentage from 0 to 100", args[0])
		}
		return m.seek(view.Position(x / 100 * float64(m.replay.Extent().Records))), nil
	}
	to, err := strconv.ParseUint(args[0], 10, 63)
	if err != nil {
		return nil, fmt.Errorf("goto: %q is no round: give a whole number or a percentage", args[0])
	}
	r, ctx, seek := m.replay, m.reading.ctx, m.toRound(to)
	return m.task(func() tea.Msg {
		if _, err := r.Round(ctx, to); err == nil && to > r.Extent().Rounds {
			return reply(func(m *model) tea.Cmd {
				m.say(cell.Warn, fmt.Sprintf("goto: round %d lies beyond the end of the recording at round %d", to,
					r.Extent().Rounds))
				return nil
			})
		}
		return seek()
	}), nil
}

// toRound seeks a recording to the first commit at or after a round, or to its end.
func (m *model) toRound(to uint64) tea.Cmd {
	r, ctx, gen := m.replay, m.reading.ctx, m.feed.gen
	return m.task(func() tea.Msg {
		at, err := r.Round(ctx, to)
		return seekMsg{gen, at, err}
	})
}

func doSpeed(m *model, args []string) (tea.Cmd, error) {
	x, err := strconv.ParseFloat(strings.TrimSuffix(args[0], "x"), 64)
	switch {
	case m.replay == nil:
		return nil, fmt.Errorf("speed: this is a live run: only a recording has a speed")
	case err != nil || !(x > 0):
		return nil, fmt.Errorf("speed: %q is no speed: give a number above 0", args[0])
	}
	r := m.replay
	return func() tea.Msg { r.SetSpeed(x); return nil }, nil
}

func doMember(m *model, args []string) (tea.Cmd, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(args[0], "m"), 10, 32)
	for _, id := range m.shown.Members().Members {
		if err == nil && uint64(id) == n {
			m.member = id
			return nil, nil
		}
	}
	return nil, fmt.Errorf("member: there is no member %q", args[0])
}

func doScreen(m *model, args []string) (tea.Cmd, error) {
	for i, s := range m.screens() {
		if strings.EqualFold(s.name, args[0]) || strconv.Itoa(s.digit) == args[0] {
			return m.openScreen(i), nil
		}
		if s.instead != "" && strings.EqualFold(s.instead, args[0]) {
			return m.openInstead(i), nil
		}
	}
	all := completeScreen(m, nil)
	return nil, fmt.Errorf("screen: there is no %q%s: choose one of %s", args[0], usererr.Suggest(args[0], all),
		strings.Join(all, ", "))
}
