package tui

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"

	tea "charm.land/bubbletea/v2"

	"brood/tui/cell"
)

// inquiry is what panels ask of a recorded round: the last answer, and a question that is on its way. Nothing is asked
// unless somebody wants to know: it takes processor time from a run that trains here.
type inquiry[T any] struct {
	name string // "measurement", say
	got  *T
	err  error // in place of the first answer
	now  *measuring
}

// measuring is a question on its way.
type measuring struct {
	done   atomic.Uint64 // the last round that was executed again
	cancel context.CancelFunc
}

// begin asks; an answer comes in wherever in the run one has looked meanwhile.
func (q *inquiry[T]) begin(m *model, ask func(ctx context.Context, recomputed func(round uint64)) (*T, error)) tea.Cmd {
	ctx, cancel := context.WithCancel(m.reading.ctx)
	now := &measuring{cancel: cancel}
	q.now = now
	return m.task(func() tea.Msg {
		defer cancel()
		got, err := ask(ctx, now.done.Store)
		return reply(func(m *model) tea.Cmd {
			if q.now != now { // another run is shown, or it was given up
				return nil
			}
			q.now = nil
			switch {
			case errors.Is(err, context.Canceled):
				m.say(cell.Warn, "the "+q.name+" was given up")
			case err != nil && q.got != nil:
				m.say(cell.Alert, err.Error())
			default:
				q.got, q.err = got, err
			}
			return nil
		})
	})
}

// giveUp says whether there was a question to give up.
func (q *inquiry[T]) giveUp(m *model) bool {
	if q.now == nil {
		return false
	}
	q.now.cancel()
	q.now = nil
	m.say(cell.Warn, "the "+q.name+" of "+filepath.Base(m.opt.Session)+" was given up")
	return true
}

// forget drops question and answer.
func (q *inquiry[T]) forget() {
	if q.now != nil {
		q.now.cancel()
	}
	*q = inquiry[T]{name: q.name}
}
