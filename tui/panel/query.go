package panel

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"

	tea "charm.land/bubbletea/v2"

	"brood/tui/cell"
)

// Query is what panels ask of a recorded round: the last answer, and a question that is on its way. Nothing is asked
// unless somebody wants to know: it takes processor time from a run that trains here.
type Query[T any] struct {
	Name    string // "measurement", say
	Result  *T
	Err     error // in place of the first answer
	Pending *pendingQuery
}

// pendingQuery is a question on its way.
type pendingQuery struct {
	Done   atomic.Uint64 // the last round that was executed again
	cancel context.CancelFunc
}

// Start asks; an answer comes in wherever in the run one has looked meanwhile.
func (q *Query[T]) Start(m *Host, ask func(ctx context.Context, recomputed func(round uint64)) (*T, error)) tea.Cmd {
	ctx, cancel := context.WithCancel(m.Reading.Ctx)
	now := &pendingQuery{cancel: cancel}
	q.Pending = now
	return m.SessionJob(func() tea.Msg {
		defer cancel()
		got, err := ask(ctx, now.Done.Store)
		return Reply(func(m *Host) tea.Cmd {
			if q.Pending != now { // another run is shown, or it was given up
				return nil
			}
			q.Pending = nil
			switch {
			case errors.Is(err, context.Canceled):
				m.Say(cell.Warn, "the "+q.Name+" was given up")
			case err != nil && q.Result != nil:
				m.Say(cell.Alert, err.Error())
			default:
				q.Result, q.Err = got, err
			}
			return nil
		})
	})
}

// Cancel says whether there was a question to give up.
func (q *Query[T]) Cancel(m *Host) bool {
	if q.Pending == nil {
		return false
	}
	q.Pending.cancel()
	q.Pending = nil
	m.Say(cell.Warn, "the "+q.Name+" of "+filepath.Base(m.Opt.Session)+" was given up")
	return true
}

// Reset drops question and answer.
func (q *Query[T]) Reset() {
	if q.Pending != nil {
		q.Pending.cancel()
	}
	*q = Query[T]{Name: q.Name}
}
