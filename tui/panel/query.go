package panel

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"

	tea "charm.land/bubbletea/v2"

	"brood/tui/cell"
	"brood/tui/textfmt"
)

// Query is the state of an expensive request about a recorded round: the last result and the pending request. It only
// starts when the user asks, since it takes processor time from a run that trains on this machine.
type Query[T any] struct {
	Name    string        // noun for messages, such as "measurement"
	Result  *T            // last result; nil: none yet
	Err     error         // of the first request, while there is no result
	Pending *pendingQuery // nil: none
}

// pendingQuery is a running request.
type pendingQuery struct {
	Done   atomic.Uint64 // last recomputed round
	cancel context.CancelFunc
}

// Start runs ask in a session job. The result is stored whatever round is shown by then.
func (q *Query[T]) Start(m *Host, ask func(ctx context.Context, recomputed func(round uint64)) (*T, error)) tea.Cmd {
	ctx, cancel := context.WithCancel(m.Reading.Ctx)
	now := &pendingQuery{cancel: cancel}
	q.Pending = now
	return m.SessionJob(func() tea.Msg {
		defer cancel()
		got, err := ask(ctx, now.Done.Store)
		return Reply(func(m *Host) tea.Cmd {
			if q.Pending != now { // the session was left, or the request canceled
				return nil
			}
			q.Pending = nil
			switch {
			case errors.Is(err, context.Canceled):
				m.Say(cell.Warn, "the "+q.Name+" was canceled")
			case err != nil && q.Result != nil:
				m.Say(cell.Alert, err.Error())
			default:
				q.Result, q.Err = got, err
			}
			return nil
		})
	})
}

// Cancel cancels the pending request. It reports whether there was one.
func (q *Query[T]) Cancel(m *Host) bool {
	if q.Pending == nil {
		return false
	}
	q.Pending.cancel()
	q.Pending = nil
	m.Say(cell.Warn, "the "+q.Name+" of "+filepath.Base(m.Opt.Session)+" was canceled")
	return true
}

// Note returns what the pending request does, or its progress; else the round of the result, "" without one.
func (q *Query[T]) Note(does string, round func(*T) uint64) string {
	switch {
	case q.Pending != nil && q.Pending.Done.Load() > 0:
		return "recomputing round " + textfmt.Grouped(q.Pending.Done.Load())
	case q.Pending != nil:
		return does
	case q.Result != nil:
		return "round " + textfmt.Grouped(round(q.Result))
	}
	return ""
}

// Reset cancels the pending request and forgets the result.
func (q *Query[T]) Reset() {
	if q.Pending != nil {
		q.Pending.cancel()
	}
	*q = Query[T]{Name: q.Name}
}
