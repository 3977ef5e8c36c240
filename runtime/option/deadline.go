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
	if t, ok := nextTime(text, now); ok {
		return t, nil
	}
	return time.Time{}, usererr.Errorf("deadline = %s: give a duration such as 2h, a time such as 17:30, or a date and "+
		"time such as 2026-05-01T17:30", text)
}

// nextTime returns the next time after now at a time of day, such as 17:30.
func nextTime(text string, now time.Time) (next time.Time, ok bool) {
	for _, layout := range []string{time.TimeOnly, "15:04"} {
		t, err := time.ParseInLocation(layout, text, now.Location())
		if err != nil {
			continue
		}
		year, month, day := now.Date()
		next = time.Date(year, month, day, t.Hour(), t.Minute(), t.Second(), 0, now.Location())
		if !next.After(now) {
			next = time.Date(year, month, day+1, t.Hour(), t.Minute(), t.Second(), 0, now.Location())
		}
		return next, true
	}
	return next, false
}

// DatedDeadline returns a value of the option deadline with the date of a time of day. Other values are unchanged. A
// command calls it when it starts: if it prepares a run over that time, the next one would be on the next day.
func DatedDeadline(text string, now time.Time) string {
	if t, ok := nextTime(text, now); ok {
		return t.Format(time.RFC3339)
	}
	return text
}

func checkDeadline(text string) error {
	now := time.Now()
	at, err := ParseDeadline(text, now)
	if err == nil && !at.IsZero() && !at.After(now) {
		err = fmt.Errorf("the deadline %s has passed", at.Format(time.DateTime))
	}
	return err
}
