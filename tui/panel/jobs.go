package panel

import (
	"sync"

	tea "charm.land/bubbletea/v2"
)

// Jobs counts the running commands, since Bubble Tea does not wait for them.
type Jobs struct {
	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup
}

// Job wraps f as a command that does I/O or waits. f must return when the context of the workbench ends.
func (m *Host) Job(f func() tea.Msg) tea.Cmd { return m.Jobs.Run(f) }

// Run wraps f as a command. It does nothing after Close.
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

// Close waits for the running jobs. Jobs that start later do nothing.
func (j *Jobs) Close() {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.work.Wait()
}
