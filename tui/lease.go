package tui

import (
	"context"
	"errors"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/panel"
	"brood/tui/panel/fleet"
)

// leasePeriod is the period of lease requests: no record announces that a lease ends or is requested.
const leasePeriod = time.Second

// leaseState is the writer's lease as last reported.
type leaseState struct {
	view.Lease
	asking bool      // a request is pending
	asked  time.Time // time of the last request
	wanted bool      // this viewer has requested the lease
}

type leaseMsg struct {
	gen   int
	act   view.LeaseAct
	lease view.Lease
	err   error
}

// pollLease requests the state of the writer lease every leaseEvery.
func (m *model) pollLease() tea.Cmd {
	l, now := &m.lease, m.Opt.Clock()
	if _, ok := m.Opt.Commander.(panel.Lessee); !ok || m.WhyNoCommand() != "" || l.asking ||
		now.Sub(l.asked) < leasePeriod {
		return nil
	}
	l.asking, l.asked = true, now
	return m.leaseAct(view.LeaseLook)
}

func (m *model) leaseAct(act view.LeaseAct) tea.Cmd {
	gen, ctx, to := m.Feed.Gen, m.Reading.Ctx, m.Opt.Commander.(panel.Lessee)
	return m.SessionJob(func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, fleet.SurveyTimeout)
		defer cancel()
		l, err := to.Lease(ctx, act)
		return leaseMsg{gen, act, l, err}
	})
}

// applyLease applies the answer to a lease request and shows what has changed.
func (m *model) applyLease(msg leaseMsg) {
	if msg.gen != m.Feed.Gen {
		return
	}
	l, now := &m.lease, msg.lease
	if msg.act == view.LeaseLook {
		l.asking = false
	}
	if msg.err != nil {
		if msg.act != view.LeaseLook {
			m.Say(cell.Alert, msg.err.Error())
		}
		return
	}
	was := l.Lease
	l.Lease, l.wanted = now, l.wanted || msg.act == view.LeaseAsk
	switch {
	case l.wanted && now.Mine:
		l.wanted = false
		m.Say(cell.Good, fmt.Sprintf("you control now, until %.0f s after your last command", now.Left.Seconds()))
	case l.wanted && msg.act == view.LeaseAsk:
		m.Say(cell.Plain,
			fmt.Sprintf("requested: you control when %s agrees, or after %.0f s without a command from them",
				now.Holder, now.Left.Seconds()))
	case now.Mine && now.Asks != "" && now.Asks != was.Asks:
		m.Say(cell.Warn, now.Asks+" requests control: :give hands it over, and so does a while without commands")
	case was.Mine && now.Holder != "" && !now.Mine:
		m.Say(cell.Plain, now.Holder+" controls now")
	case msg.act == view.LeaseGive:
		m.Say(cell.Plain, "released: the sender of the next command controls")
	}
}

func (m *model) leaseCommand(act view.LeaseAct) func(*panel.Host, []string) (tea.Cmd, error) {
	return func(*panel.Host, []string) (tea.Cmd, error) {
		if _, ok := m.Opt.Commander.(panel.Lessee); !ok {
			return nil, errors.New("there is no writer's lease here: no other client can send commands")
		}
		return m.leaseAct(act), nil
	}
}

// writerText returns who holds the writer's lease, for the status line. asked reports whether another viewer requests
// it from this one.
func (m *model) writerText(l view.Lease) (text string, asked bool) {
	switch {
	case m.Opt.Commander == nil:
		return "read-only", false
	case l.Mine && l.Asks != "":
		return "you control, " + l.Asks + " requests it", true
	case l.Mine:
		return "you control", false
	case l.Holder != "":
		return l.Holder + " controls", false
	}
	return "you control", false
}

// showOthersChange shows an accepted command of another client. Receipts of own commands are shown elsewhere.
func (m *model) showOthersChange(r event.Record) {
	if r.Accepted == nil || m.Replay != nil {
		return
	}
	c := r.Accepted.Command
	if c.ID > m.firstID && c.ID <= m.lastID {
		return
	}
	what, who := panel.SettingsText(c), c.By
	if who == "" {
		who = "another user"
	}
	if c.Algorithm != "" {
		if what != "" {
			what = ", " + what
		}
		what = "swap to " + c.Algorithm + what
	}
	m.Say(cell.Warn, who+": "+what)
}
