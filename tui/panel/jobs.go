package panel

import (
	"sync"

	tea "charm.land/bubbletea/v2"
)

// Jobs counts the commands at work, which Bubble Tea runs and does not wait for.
type Jobs struct {
	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup
}

// Job is a command that does I/O or waits; it must end with the model's context.
func (m *Host) Job(f func() tea.Msg) tea.Cmd { return m.Jobs.Run(f) }

func (j *Jobs) Run(f func() tea.Msg) tea.Cmd {
	return func() tea.Msg {
		j.mu.Lock()
		if j.closed {
			j.mu.Unlock()
			return nil
		}
		j.work.Add(1)
		j.mu.Unlock()
		defer j.work.Done()
		return f()
	}
}

// Close waits for the jobs at work; later ones do nothing.
func (j *Jobs) Close() {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.work.Wait()
}
