package tui

import (
	"sync"

	tea "charm.land/bubbletea/v2"
)

// jobs counts the commands at work, which Bubble Tea runs and does not wait for.
type jobs struct {
	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup
}

// job is a command that does I/O or waits; it must end with the model's context.
func (m *model) job(f func() tea.Msg) tea.Cmd { return m.jobs.run(f) }

func (j *jobs) run(f func() tea.Msg) tea.Cmd {
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

// end waits for the jobs at work; later ones do nothing.
func (j *jobs) end() {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.work.Wait()
}
