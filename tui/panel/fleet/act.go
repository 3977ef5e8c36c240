package fleet

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
	"brood/tui/panel"
	"brood/tui/textfmt"
)

// actionResult is the result of an action on some workers, which is sent for one worker after the other.
type actionResult struct {
	action   event.Action
	done     []int
	rejected []string // "w2: reason"
	err      error    // of the connection; the remaining workers were not tried
}

// targets returns the marked workers, ascending, or the one under the cursor.
func (f *Fleet) targets(m *panel.Host) []int {
	if len(f.Marked) > 0 {
		return slices.Sorted(maps.Keys(f.Marked))
	}
	rows, at := f.Rows(m)
	if len(rows) == 0 {
		return nil
	}
	return []int{rows[at].ID}
}

// eligible returns the targets to which an action applies. If there are none, why is a message.
func (f *Fleet) eligible(m *panel.Host, a event.Action) (ids []int, why string) {
	if why := m.WhyNoCommand(); why != "" {
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
		return nil, fmt.Sprintf("no other worker can host the members of %s: let one join first",
			textfmt.WorkerLabels(ids))
	}
	return ids, ""
}

// whyNotEligible returns the message why an action does not apply to a worker; "" if it does. The coordinator validates
// the command again.
func (f *Fleet) whyNotEligible(m *panel.Host, a event.Action, id int) string {
	for _, x := range f.workers(m) {
		if x.ID != id {
			continue
		}
		_, word, _ := x.status()
		switch cordoned := x.State == event.Cordoned; {
		case x.State == event.Joining:
			return textfmt.WorkerLabel(id) + " is reading its data: wait until it has joined"
		case a == event.Kill:
		case x.State == event.Leaving:
			return textfmt.WorkerLabel(id) + " is leaving: its members move to the others"
		case a == event.Uncordon && !cordoned:
			return textfmt.WorkerLabel(id) + " is not cordoned"
		case a == event.Cordon && cordoned, a == event.Drain && word == "drained":
			return textfmt.WorkerLabel(id) + " is " + word + " already"
		}
	}
	return ""
}

// free returns the workers that may host members, without those in but.
func (f *Fleet) free(m *panel.Host, but []int) (out []int) {
	for _, x := range f.workers(m) {
		if (x.State == event.Hosting || x.State == event.Idle) && !slices.Contains(but, x.ID) {
			out = append(out, x.ID)
		}
	}
	return out
}

// confirm acts on workers. It first asks for confirmation of a kill, and of a drain that leaves a single host.
func (f *Fleet) confirm(m *panel.Host, a event.Action, ids []int) tea.Cmd {
	q := &panel.Question{Do: func(m *panel.Host) tea.Cmd { return f.send(m, a, ids) }}
	free := f.free(m, ids)
	switch {
	case a == event.Kill && len(ids) == 1:
		q.Text, q.Yes = fmt.Sprintf("Kill worker %d%s? Its state is lost, as in a real failure.", ids[0],
			f.workerText(m, ids[0])), "kill it"
	case a == event.Kill:
		q.Text, q.Yes = fmt.Sprintf("Kill %s: %s? Their state is lost, as in a real failure.",
			textfmt.Count(len(ids), "worker"),
			textfmt.WorkerLabels(ids)), "kill them"
	case a == event.Drain && len(free) == 1:
		q.Text, q.Yes = fmt.Sprintf("Drain %s? Worker %d then hosts all %s alone.", textfmt.WorkerLabels(ids), free[0],
			textfmt.Count(len(m.Shown.Members().Members), "member")), "drain"
	default:
		return q.Do(m)
	}
	m.Popup = q
	return nil
}

// workerText describes the machine and the members of a worker, for a question.
func (f *Fleet) workerText(m *panel.Host, id int) string {
	for _, x := range f.workers(m) {
		if x.ID == id {
			return fmt.Sprintf(" (%s%s)", strings.TrimPrefix(x.Name+", ", ", "),
				textfmt.Count(len(x.Members), "member"))
		}
	}
	return ""
}

// send sends an action for each worker in turn, so that the coordinator validates each with the effect of the earlier
// ones. It stops at the first connection error.
func (f *Fleet) send(m *panel.Host, a event.Action, ids []int) tea.Cmd {
	if why := m.WhyNoCommand(); why != "" {
		m.Say(cell.Warn, why)
		return nil
	}
	var all []event.Command
	for _, id := range ids {
		all = append(all, m.Sign(event.Command{Action: a, Worker: id}))
	}
	ctx, to := m.Reading.Ctx, m.Opt.Commander
	return m.SessionJob(func() tea.Msg {
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
				out.rejected = append(out.rejected, textfmt.WorkerLabel(c.Worker)+": "+r.Reason)
			}
		}
		return panel.Reply(func(m *panel.Host) tea.Cmd { return f.showResult(m, out) })
	})
}

// showResult shows the result, removes the marks of the workers that accepted, and requests their state again.
func (f *Fleet) showResult(m *panel.Host, msg actionResult) tea.Cmd {
	if errors.Is(msg.err, context.Canceled) {
		return nil // the session was closed
	}
	role, text := cell.Good, ""
	if len(msg.done) > 0 {
		text = fmt.Sprintf("%s %s accepted", msg.action, textfmt.WorkerLabels(msg.done))
	}
	if err := msg.err; err != nil {
		msg.rejected = append(msg.rejected, err.Error())
	}
	if len(msg.rejected) > 0 {
		role = cell.Alert
		text += fmt.Sprintf("%s%s rejected: %s", map[bool]string{true: "; "}[text != ""], msg.action,
			strings.Join(msg.rejected, "; "))
	}
	m.Say(role, text)
	for _, id := range msg.done {
		delete(f.Marked, id)
	}
	f.asked = time.Time{}
	return f.Survey(m)
}

func (f *Fleet) commands() (out []panel.Command) {
	for _, x := range []struct {
		action event.Action
		title  string
	}{
		{event.Kill, "kill a worker, to test failures (asks)"},
		{event.Cordon, "assign no more members to a worker"},
		{event.Drain, "move a worker's members to the others now"},
		{event.Uncordon, "assign members to a worker again"},
	} {
		out = append(out, panel.Command{
			Name:   string(x.action),
			Args:   "WORKER",
			Title:  x.title,
			Why:    (*panel.Host).WhyNoCommand,
			Values: f.values(x.action),
			Do:     f.doWorkers(x.action),
		})
	}
	return out
}

// doWorkers returns the command that applies an action to workers, given by number. The coordinator validates it.
func (f *Fleet) doWorkers(a event.Action) func(*panel.Host, []string) (tea.Cmd, error) {
	return func(m *panel.Host, args []string) (tea.Cmd, error) {
		var ids []int
		for _, s := range args {
			w, err := strconv.Atoi(strings.TrimPrefix(s, "w"))
			if err != nil || w < 0 {
				return nil, fmt.Errorf("%s: %q is not a worker: give its number", a, s)
			}
			ids = append(ids, w)
		}
		slices.Sort(ids)
		return f.confirm(m, a, slices.Compact(ids)), nil
	}
}

// values returns the workers as values of the command for an action.
func (f *Fleet) values(a event.Action) func(*panel.Host) []panel.Value {
	return func(m *panel.Host) (out []panel.Value) {
		all := f.workers(m)
		slices.SortFunc(all, func(a, b fleetRow) int { return cmp.Compare(a.ID, b.ID) })
		for _, x := range all {
			name := textfmt.WorkerLabel(x.ID)
			out = append(out, panel.Value{Word: name, Title: name + ": " + string(a) + " the worker"})
		}
		return out
	}
}
