package option

import (
	"fmt"
	"time"

	"brood/models/usererr"
)

// noDeadline is the value of the option deadline with which a launcher does not set its own.
const noDeadline = "none"

// ParseDeadline parses a value of the option deadline: a duration from now, as [ParseAge] reads it, a time as in RFC
// 3339, or a date and time, or a time, of this machine's time zone: then the next one after now. It returns the zero
// time for "" and none.
func ParseDeadline(text string, now time.Time) (time.Time, error) {
	if text == "" || text == noDeadline {
		return time.Time{}, nil
	}
	if d, err := ParseAge(text); err == nil && d > 0 {
		return now.Add(d), nil
	}
	dates := []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, "2006-01-02 15:04"}
	for _, layout := range dates {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	for _, layout := range []string{time.TimeOnly, "15:04"} {
		t, err := time.ParseInLocation(layout, text, now.Location())
		if err != nil {
			continue
		}
		year, month, day := now.Date()
		next := time.Date(year, month, day, t.Hour(), t.Minute(), t.Second(), 0, now.Location())
		if !next.After(now) {
			next = time.Date(year, month, day+1, t.Hour(), t.Minute(), t.Second(), 0, now.Location())
		}
		return next, nil
	}
	return time.Time{}, usererr.Errorf("deadline = %s: give a duration such as 2h, a time such as 17:30, or a date and "+
		"time such as 2026-05-01T17:30", text)
}

func checkDeadline(text string) error {
	now := time.Now()
	at, err := ParseDeadline(text, now)
	if err == nil && !at.IsZero() && !at.After(now) {
		err = fmt.Errorf("the deadline %s has passed", at.Format(time.DateTime))
	}
	return err
}
