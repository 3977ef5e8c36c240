package panel

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"

	tea "charm.land/bubbletea/v2"

	"brood/tui/cell"
)

// Inquiry is what panels ask of a recorded round: the last answer, and a question that is on its way. Nothing is asked
// unless somebody wants to know: it takes processor time from a run that trains here.
type Inquiry[T any] struct {
	Name string // "measurement", say
	Got  *T
	Err  error // in place of the first answer
	Now  *measuring
}

// measuring is a question on its way.
type measuring struct {
	Done   atomic.Uint64 // the last round that was executed again
	cancel context.CancelFunc
}

// Begin asks; an answer comes in wherever in the run one has looked meanwhile.
func (q *Inquiry[T]) Begin(m *Host, ask func(ctx context.Context, recomputed func(round uint64)) (*T, error)) tea.Cmd {
	ctx, cancel := context.WithCancel(m.Reading.Ctx)
	now := &measuring{cancel: cancel}
	q.Now = now
	return m.Task(func() tea.Msg {
		defer cancel()
		got, err := ask(ctx, now.Done.Store)
		return Reply(func(m *Host) tea.Cmd {
			if q.Now != now { // another run is shown, or it was given up
				return nil
			}
			q.Now = nil
			switch {
			case errors.Is(err, context.Canceled):
				m.Say(cell.Warn, "the "+q.Name+" was given up")
			case err != nil && q.Got != nil:
				m.Say(cell.Alert, err.Error())
			default:
				q.Got, q.Err = got, err
			}
			return nil
		})
	})
}

// GiveUp says whether there was a question to give up.
func (q *Inquiry[T]) GiveUp(m *Host) bool {
	if q.Now == nil {
		return false
	}
	q.Now.cancel()
	q.Now = nil
	m.Say(cell.Warn, "the "+q.Name+" of "+filepath.Base(m.Opt.Session)+" was given up")
	return true
}

// Forget drops question and answer.
func (q *Inquiry[T]) Forget() {
	if q.Now != nil {
		q.Now.cancel()
	}
	*q = Inquiry[T]{Name: q.Name}
}
