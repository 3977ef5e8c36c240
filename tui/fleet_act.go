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

// actedMsg is what became of an action on some workers, which are asked for one after the other.
type actedMsg struct {
	action  event.Action
	done    []int
	refused []string // "w2: reason"
	err     error
}

// targets are the marked workers, else the one under the cursor.
func (m *model) targets() []int {
	if len(m.fleet.marked) > 0 {
		return slices.Sorted(maps.Keys(m.fleet.marked))
	}
	rows, at := m.fleet.rows(m)
	if len(rows) == 0 {
		return nil
	}
	return []int{rows[at].ID}
}

// able are the targets that an action makes sense for, or why there are none.
func (m *model) able(a event.Action) (ids []int, why string) {
	if why := m.mayCommand(); why != "" {
		return nil, why
	}
	why = "there is no worker to choose"
	for i, id := range m.targets() {
		no := m.unable(a, id)
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
	case (a == event.Cordon || a == event.Drain) && len(m.free(ids)) == 0:
		return nil, fmt.Sprintf("no other worker could take the members of %s: let one join first", labels(ids))
	}
	return ids, ""
}

// unable says why an action makes no sense for a worker, "" when it does. The run judges again.
func (m *model) unable(a event.Action, id int) string {
	for _, x := range m.workers() {
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

// free are the workers besides some that may be given members.
func (m *model) free(but []int) (out []int) {
	for _, x := range m.workers() {
		if (x.State == event.Hosting || x.State == event.Idle) && !slices.Contains(but, x.ID) {
			out = append(out, x.ID)
		}
	}
	return out
}

// ask acts on workers, after a question where that may cost something: a kill, and a drain that leaves one host alone.
func (m *model) ask(a event.Action, ids []int) tea.Cmd {
	q := &question{do: func(m *model) tea.Cmd { return m.act(a, ids) }}
	free := m.free(ids)
	switch {
	case a == event.Kill && len(ids) == 1:
		q.text, q.yes = fmt.Sprintf("Kill worker %d%s? What it held is lost, as in a real failure.", ids[0], m.about(ids[0])), "kill it"
	case a == event.Kill:
		q.text, q.yes = fmt.Sprintf("Kill %s: %s? What they held is lost, as in a real failure.", count(len(ids), "worker"), labels(ids)), "kill them"
	case a == event.Drain && len(free) == 1:
		q.text, q.yes = fmt.Sprintf("Drain %s? Worker %d then hosts all %s alone.", labels(ids), free[0], count(len(m.shown.Members().Members), "member")), "drain"
	default:
		return q.do(m)
	}
	m.overlay = q
	return nil
}

// about is what a worker hosts and where, for a question.
func (m *model) about(id int) string {
	for _, x := range m.workers() {
		if x.ID == id {
			return fmt.Sprintf(" (%s%s)", strings.TrimPrefix(x.Name+", ", ", "), count(len(x.Members), "member"))
		}
	}
	return ""
}

// act sends an action for each worker in turn, so that each is judged by what those before it left.
func (m *model) act(a event.Action, ids []int) tea.Cmd {
	if why := m.mayCommand(); why != "" {
		m.say(cell.Warn, why)
		return nil
	}
	var all []event.Command
	for _, id := range ids {
		all = append(all, m.sign(event.Command{Action: a, Worker: id}))
	}
	ctx, to := m.reading.ctx, m.opt.Commander
	return m.task(func() tea.Msg {
		out := actedMsg{action: a}
		for _, c := range all {
			r, err := to.Command(ctx, c)
			switch {
			case err != nil:
				out.err = err
				return out
			case r.Accepted:
				out.done = append(out.done, c.Worker)
			default:
				out.refused = append(out.refused, label(c.Worker)+": "+r.Reason)
			}
		}
		return out
	})
}

// acted tells it, takes the marks away and asks anew how the workers are.
func (m *model) acted(msg actedMsg) tea.Cmd {
	if errors.Is(msg.err, context.Canceled) {
		return nil // its session was left
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
		text += fmt.Sprintf("%s%s refused: %s", map[bool]string{true: "; "}[text != ""], msg.action, strings.Join(msg.refused, "; "))
	}
	m.say(role, text)
	for _, id := range msg.done {
		delete(m.fleet.marked, id)
	}
	m.fleet.asked = time.Time{}
	return m.survey()
}

// doWorkers is a command line's action on workers, given by their numbers. The run judges whether it may be.
func doWorkers(a event.Action) func(*model, []string) (tea.Cmd, error) {
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
		return m.ask(a, slices.Compact(ids)), nil
	}
}

func completeWorker(m *model, _ []string) (out []string) {
	all := m.workers()
	slices.SortFunc(all, func(a, b fleetRow) int { return cmp.Compare(a.ID, b.ID) })
	for _, x := range all {
		out = append(out, label(x.ID))
	}
	return out
}
