package tui

import (
	"testing"

	"brood/runtime/event"
	"brood/runtime/session"
	"brood/tui/panel"
)

// TestSessionState checks the state of a session: that of its log, unless its process is gone or it never started.
func TestSessionState(t *testing.T) {
	for _, c := range []struct {
		is   session.Info
		want string
	}{
		{session.Info{}, "empty"},
		{session.Info{Running: true}, "begins"},
		{session.Info{Err: "damaged"}, "broken"},
		{session.Info{Phase: event.Waiting}, "killed"},
		{session.Info{Phase: event.Waiting, Running: true}, "waiting"},
		{session.Info{Phase: event.Finished}, "finished"},
	} {
		if got := panel.SessionState(c.is); got != c.want {
			t.Errorf("%+v is %s, want %s", c.is, got, c.want)
		}
	}
}
