package sourcetest

import (
	"errors"
	"testing"

	"brood/runtime/event"
	"brood/runtime/session"
)

// Write records a session in dir, which no process writes any more.
func Write(t testing.TB, dir string, records ...event.Record) {
	t.Helper()
	s, err := session.Create(dir)
	if err == nil {
		err = errors.Join(s.Append(records...), s.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
