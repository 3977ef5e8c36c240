package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"brood/runtime/view"
	"brood/tui/panel"
)

// parentRead is the state of the jobs that read the log of the run that the shown one was forked from.
type parentRead struct {
	busy  bool
	again time.Time // earliest time of the next read
	bytes int64     // size of the log when it was read
}

// Waits between reads of a parent: it is read again only for a change whose rounds it had not reached.
const (
	parentWait       = 5 * time.Second
	parentWaitFactor = 20 // of the duration of the last read
)

// pollParent reads the parent of the shown fork, from this machine's list of runs, if a change needs it.
func (m *model) pollParent() tea.Cmd {
	now := m.Opt.Clock()
	if m.Opt.Library == nil || m.Opt.Session == "" || m.parent.busy || now.Before(m.parent.again) || !m.wantsParent() {
		return nil
	}
	m.parent.busy = true
	ctx, lib, clock, dir := m.Reading.Ctx, m.Opt.Library, m.Opt.Clock, m.Opt.Session
	fork, bytes := *m.Shown.Config, m.parent.bytes
	return m.SessionJob(func() tea.Msg {
		var found *view.View
		all, _ := lib.Scan(ctx, "") // without the list, nothing is known of the parent
		for _, e := range all {
			if e.Folder != "" || e.Host != "" || e.Bytes == bytes || e.Name != fork.Parent && e.Dir != fork.Parent {
				continue
			}
			if run, err := lib.Curves(e); err == nil && run.MayBeParent(&fork) {
				found, bytes = run.View, e.Bytes
			}
		}
		took := clock().Sub(now)
		return panel.Reply(func(*panel.Host) tea.Cmd {
			if m.Opt.Session != dir {
				return nil
			}
			m.parent = parentRead{again: clock().Add(max(parentWait, parentWaitFactor*took)), bytes: bytes}
			if found != nil {
				m.Parent = found
			}
			return nil
		})
	})
}

// wantsParent reports whether a change of the shown fork has an effect whose rounds the parent is not known to have
// reached, and may have.
func (m *model) wantsParent() bool {
	c := m.Shown.Config
	if c == nil || c.Parent == "" || m.Parent != nil && m.Parent.Over() {
		return false
	}
	last := uint64(0)
	if m.Shown.ForkText() != "" && m.Shown.Progress.Rounds > c.ParentAt {
		last = c.ParentAt + m.Shown.EffectWindow()
	}
	for _, e := range m.Shown.Lane {
		if e.Effect != nil {
			last = max(last, e.Round)
		}
	}
	return last > 0 && (m.Parent == nil || m.Parent.Progress.Rounds < last)
}
