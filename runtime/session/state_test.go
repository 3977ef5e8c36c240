package session

import (
	"testing"

	"brood/runtime/event"
)

// TestState checks the state of a session: that of its log, unless its process is gone or it never started.
func TestState(t *testing.T) {
	for _, c := range []struct {
		is   Info
		want string
	}{
		{Info{}, "empty"},
		{Info{Running: true}, "begins"},
		{Info{Err: "damaged"}, "broken"},
		{Info{Phase: event.Waiting}, "killed"},
		{Info{Phase: event.Waiting, Running: true}, "waiting"},
		{Info{Phase: event.Finished}, "finished"},
	} {
		if got := c.is.State(); got != c.want {
			t.Errorf("%+v is %s, want %s", c.is, got, c.want)
		}
	}
}
