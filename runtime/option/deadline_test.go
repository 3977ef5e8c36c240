package option

import (
	"testing"
	"time"
)

func TestDeadlines(t *testing.T) {
	zone := time.FixedZone("test", 2*3600)
	now := time.Date(2026, 5, 1, 16, 0, 0, 0, zone)
	for text, want := range map[string]string{
		"90m":                  "2026-05-01T17:30:00+02:00",
		"1.5d":                 "2026-05-03T04:00:00+02:00",
		"17:30":                "2026-05-01T17:30:00+02:00",
		"15:59:30":             "2026-05-02T15:59:30+02:00",
		"16:00":                "2026-05-02T16:00:00+02:00",
		"2026-05-01T17:30":     "2026-05-01T17:30:00+02:00",
		"2026-05-01 17:30:01":  "2026-05-01T17:30:01+02:00",
		"2026-05-01T17:30:00Z": "2026-05-01T17:30:00Z",
		"none":                 "0001-01-01T00:00:00Z",
		"":                     "0001-01-01T00:00:00Z",
	} {
		if got, err := ParseDeadline(text, now); err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%q is %s, %v; want %s", text, got.Format(time.RFC3339), err, want)
		}
	}
	for _, text := range []string{"-1h", "0s", "25:00", "tomorrow", "2026-13-01T00:00", "7"} {
		if got, err := ParseDeadline(text, now); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func TestDatedDeadlines(t *testing.T) {
	now := time.Date(2026, 5, 1, 17, 29, 59, 0, time.FixedZone("test", 2*3600))
	for text, want := range map[string]string{"17:30": "2026-05-01T17:30:00+02:00", "17:29": "2026-05-02T17:29:00+02:00",
		"2h": "2h", "none": "none", "": "", "2026-05-01T17:30": "2026-05-01T17:30"} {
		if got := DatedDeadline(text, now); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
