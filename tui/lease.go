package tui

import (
	"context"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
)

// leaseEvery is how often the workbench asks who writes: a lease ends and is asked for without a record.
const leaseEvery = time.Second

// leasing is what this viewer knows of the writer's lease.
type leasing struct {
	view.Lease
	asking bool // a question is on its way
	asked  time.Time
	wanted bool // by this viewer
}

type leaseMsg struct {
	gen   int
	act   view.LeaseAct
	lease view.Lease
	err   error
}

// heedLease asks now and then who writes.
func (m *model) heedLease() tea.Cmd {
	l, now := &m.leasing, m.opt.Clock()
	if _, ok := m.opt.Commander.(Lessee); !ok || m.mayCommand() != "" || l.asking || now.Sub(l.asked) < leaseEvery {
		return nil
	}
	l.asking, l.asked = true, now
	return m.leaseAct(view.LeaseLook)
}

func (m *model) leaseAct(act view.LeaseAct) tea.Cmd {
	gen, ctx, to := m.feed.gen, m.reading.ctx, m.opt.Commander.(Lessee)
	return m.task(func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, surveyWait)
		defer cancel()
		l, err := to.Lease(ctx, act)
		return leaseMsg{gen, act, l, err}
	})
}

// leased takes an answer and says what is new.
func (m *model) leased(msg leaseMsg) {
	if msg.gen != m.feed.gen {
		return
	}
	l, now := &m.leasing, msg.lease
	if msg.act == view.LeaseLook {
		l.asking = false
	}
	if msg.err != nil {
		if msg.act != view.LeaseLook {
			m.say(cell.Alert, msg.err.Error())
		}
		return
	}
	was := l.Lease
	l.Lease, l.wanted = now, l.wanted || msg.act == view.LeaseAsk
	switch {
	case l.wanted && now.Mine:
		l.wanted = false
		m.say(cell.Good, fmt.Sprintf("you write now, until %.0f s after your last command", now.Left.Seconds()))
	case l.wanted && msg.act == view.LeaseAsk:
		m.say(cell.Plain, fmt.Sprintf("%s is asked: you write when they agree, or in %.0f s if they do no more", now.Holder, now.Left.Seconds()))
	case now.Mine && now.Asks != "" && now.Asks != was.Asks:
		m.say(cell.Warn, now.Asks+" asks to write: :give lets them, and so does not commanding for a while")
	case was.Mine && now.Holder != "" && !now.Mine:
		m.say(cell.Plain, now.Holder+" writes now")
	case msg.act == view.LeaseGive:
		m.say(cell.Plain, "who commands next writes")
	}
}

func doLease(act view.LeaseAct) func(*model, []string) (tea.Cmd, error) {
	return func(m *model, _ []string) (tea.Cmd, error) {
		if _, ok := m.opt.Commander.(Lessee); !ok {
			return nil, fmt.Errorf("there is no writer's lease here: nobody else can command")
		}
		return m.leaseAct(act), nil
	}
}

// writer says who writes, for the status line; asked: somebody else wants to.
func (m *model) writer(l view.Lease) (text string, asked bool) {
	switch {
	case m.opt.Commander == nil:
		return "read-only", false
	case l.Mine && l.Asks != "":
		return "you write, " + l.Asks + " asks", true
	case l.Mine:
		return "you write", false
	case l.Holder != "":
		return l.Holder + " writes", false
	}
	return "you control", false
}

// overhear tells of what somebody else changed: the answer to one's own command is told anyway.
func (m *model) overhear(r event.Record) {
	if r.Accepted == nil || m.replay != nil {
		return
	}
	c := r.Accepted.Command
	if c.ID > m.firstID && c.ID <= m.lastID {
		return
	}
	what, who := words(c), c.By
	if who == "" {
		who = "somebody else"
	}
	if c.Algorithm != "" {
		if what != "" {
			what = ", " + what
		}
		what = "swap to " + c.Algorithm + what
	}
	m.say(cell.Warn, who+": "+what)
}
