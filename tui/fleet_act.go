package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/tui/cell"
)

// actionResult is the result of an action on some workers, which is sent for one worker after the other.
type actionResult struct {
	action  event.Action
	done    []int
	refused []string // "w2: reason"
	err     error    // of the connection; the remaining workers were not tried
}

// targets returns the marked workers, ascending, or the one under the cursor.
func (f *fleet) targets(m *model) []int {
	if len(f.marked) > 0 {
		return slices.Sorted(maps.Keys(f.marked))
	}
	rows, at := f.rows(m)
	if len(rows) == 0 {
		return nil
	}
	return []int{rows[at].ID}
}

// eligible returns the targets to which an action applies. If there are none, why is a message.
func (f *fleet) eligible(m *model, a event.Action) (ids []int, why string) {
	if why := m.whyNoCommand(); why != "" {
		return nil, why
	}
	why = "there is no worker to choose"
	for i, id := range f.targets(m) {
		no := f.whyNotEligible(m, a, id)
		if no == "" {
			ids = append(ids, id)
		}
		if i == 0 {
			why = no
		}
	}
	switch {
	case len(ids) == 0:
		return nil, why
	case (a == event.Cordon || a == event.Drain) && len(f.free(m, ids)) == 0:
		return nil, fmt.Sprintf("no other worker could take the members of %s: let one join first", labels(ids))
	}
	return ids, ""
}

// whyNotEligible returns the message why an action does not apply to a worker; "" if it does. The coordinator validates
// the command again.
func (f *fleet) whyNotEligible(m *model, a event.Action, id int) string {
	for _, x := range f.workers(m) {
		if x.ID != id {
			continue
		}
		_, word, _ := x.standing()
		switch cordoned := x.State == event.Cordoned; {
		case x.State == event.Joining:
			return label(id) + " still reads its data: wait until it has joined"
		case a == event.Kill:
		case x.State == event.Leaving:
			return label(id) + " is leaving: its members move to the others"
		case a == event.Uncordon && !cordoned:
			return label(id) + " takes part already"
		case a == event.Cordon && cordoned, a == event.Drain && word == "drained":
			return label(id) + " is " + word + " already"
		}
	}
	return ""
}

// free returns the workers that may host members, without those in but.
func (f *fleet) free(m *model, but []int) (out []int) {
	for _, x := range f.workers(m) {
		if (x.State == event.Hosting || x.State == event.Idle) && !slices.Contains(but, x.ID) {
			out = append(out, x.ID)
		}
	}
	return out
}

// ask acts on workers. It first asks for confirmation of a kill, and of a drain that leaves a single host.
func (f *fleet) ask(m *model, a event.Action, ids []int) tea.Cmd {
	q := &question{do: func(m *model) tea.Cmd { return f.act(m, a, ids) }}
	free := f.free(m, ids)
	switch {
	case a == event.Kill && len(ids) == 1:
		q.text, q.yes = fmt.Sprintf("Kill worker %d%s? What it held is lost, as in a real failure.", ids[0],
			f.about(m, ids[0])), "kill it"
	case a == event.Kill:
		q.text, q.yes = fmt.Sprintf("Kill %s: %s? What they held is lost, as in a real failure.", count(len(ids), "worker"),
			labels(ids)), "kill them"
	case a == event.Drain && len(free) == 1:
		q.text, q.yes = fmt.Sprintf("Drain %s? Worker %d then hosts all %s alone.", labels(ids), free[0],
			count(len(m.shown.Members().Members), "member")), "drain"
	default:
		return q.do(m)
	}
	m.popup = q
	return nil
}

// about describes the machine and the members of a worker, for a question.
func (f *fleet) about(m *model, id int) string {
	for _, x := range f.workers(m) {
		if x.ID == id {
			return fmt.Sprintf(" (%s%s)", strings.TrimPrefix(x.Name+", ", ", "), count(len(x.Members), "member"))
		}
	}
	return ""
}

// act sends an action for each worker in turn, so that the coordinator validates each with the effect of the earlier
// ones. It stops at the first connection error.
func (f *fleet) act(m *model, a event.Action, ids []int) tea.Cmd {
	if why := m.whyNoCommand(); why != "" {
		m.say(cell.Warn, why)
		return nil
	}
	var all []event.Command
	for _, id := range ids {
		all = append(all, m.sign(event.Command{Action: a, Worker: id}))
	}
	ctx, to := m.reading.ctx, m.opt.Commander
	return m.task(func() tea.Msg {
		out := actionResult{action: a}
		for _, c := range all {
			r, err := to.Command(ctx, c)
			if err != nil {
				out.err = err
				break
			}
			if r.Accepted {
				out.done = append(out.done, c.Worker)
			} else {
				out.refused = append(out.refused, label(c.Worker)+": "+r.Reason)
			}
		}
		return reply(func(m *model) tea.Cmd { return f.showResult(m, out) })
	})
}

// showResult shows the result, removes the marks of the workers that accepted, and requests their state again.
func (f *fleet) showResult(m *model, msg actionResult) tea.Cmd {
	if errors.Is(msg.err, context.Canceled) {
		return nil // the session was closed
	}
	role, text := cell.Good, ""
	if len(msg.done) > 0 {
		text = fmt.Sprintf("%s %s accepted", msg.action, labels(msg.done))
	}
	if err := msg.err; err != nil {
		msg.refused = append(msg.refused, err.Error())
	}
	if len(msg.refused) > 0 {
		role = cell.Alert
		text += fmt.Sprintf("%s%s refused: %s", map[bool]string{true: "; "}[text != ""], msg.action,
			strings.Join(msg.refused, "; "))
	}
	m.say(role, text)
	for _, id := range msg.done {
		delete(f.marked, id)
	}
	f.asked = time.Time{}
	return f.survey(m)
}

func (f *fleet) commands() []command {
	return []command{
		{
			name:     "kill",
			args:     "WORKER",
			title:    "end a worker, to try faults (asks)",
			live:     true,
			complete: f.complete,
			do:       f.doWorkers(event.Kill),
		},
		{
			name:     "cordon",
			args:     "WORKER",
			title:    "give a worker no members any more",
			live:     true,
			complete: f.complete,
			do:       f.doWorkers(event.Cordon),
		},
		{
			name:     "drain",
			args:     "WORKER",
			title:    "move a worker's members to the others now",
			live:     true,
			complete: f.complete,
			do:       f.doWorkers(event.Drain),
		},
		{
			name:     "uncordon",
			args:     "WORKER",
			title:    "let a worker take part again",
			live:     true,
			complete: f.complete,
			do:       f.doWorkers(event.Uncordon),
		},
	}
}

// doWorkers returns the command that applies an action to workers, given by number. The coordinator validates it.
func (f *fleet) doWorkers(a event.Action) func(*model, []string) (tea.Cmd, error) {
	return func(m *model, args []string) (tea.Cmd, error) {
		var ids []int
		for _, s := range args {
			w, err := strconv.Atoi(strings.TrimPrefix(s, "w"))
			if err != nil || w < 0 {
				return nil, fmt.Errorf("%s: %q is no worker: give its number", a, s)
			}
			ids = append(ids, w)
		}
		slices.Sort(ids)
		return f.ask(m, a, slices.Compact(ids)), nil
	}
}

func (f *fleet) complete(m *model, _ []string) (out []string) {
	all := f.workers(m)
	slices.SortFunc(all, func(a, b fleetRow) int { return cmp.Compare(a.ID, b.ID) })
	for _, x := range all {
		out = append(out, label(x.ID))
	}
	return out
}
