package summary

import (
	"errors"
	"io"

	"brood/runtime/coordinator"
	"brood/runtime/session"
)

// Read is the tally of the session in dir by its whole log. Its time is that of the workers' rounds, so that pauses
// between processes do not count.
func Read(dir string) (*Tally, error) {
	r, err := session.OpenReader(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	t := New()
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		t.Record(rec)
	}
	t.Finish(coordinator.Exit{})
	t.Sum.Seconds = t.Spent()
	return t, nil
}
