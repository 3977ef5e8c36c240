package tui

import (
	"math"
	"slices"
	"testing"
	"time"

	"brood/tui/panel"
	"brood/tui/textfmt"
)

func TestNumbersKeepTheirWidth(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{textfmt.Number(0.1312), "0.1312"}, {textfmt.Number(-0.1312), "-0.1312"}, {textfmt.Number(1.8e-3),
			"0.0018"}, {textfmt.Number(2.5), "2.500"}, {textfmt.Number(9.4e-4), "9.4e-4"},
		{textfmt.Number(12.345), "12.35"}, {textfmt.Number(123.45), "123.5"}, {textfmt.Number(4321.9), "4322"},
		{textfmt.Number(1e-5), "1.0e-5"}, {textfmt.Number(2e6), "2.0e6"}, {textfmt.Number(-3.14e-12), "-3.1e-12"},
		{textfmt.Number(0), "0"}, {textfmt.Grouped(999), "999"}, {textfmt.Grouped(1234567), "1 234 567"},
		{textfmt.Number(math.NaN()), "nan"}, {textfmt.Number(math.Inf(-1)), "-inf"}, {textfmt.Number(math.Inf(1)),
			"inf"},
		{textfmt.ScoreText(2.6, true), "2.60 %"}, {textfmt.Figure("test_error", 2.6),
			"2.60"}, {textfmt.Figure("bytes", 161_780_448), "162 MB"}, {textfmt.SeriesText("test.error", 0.55), "0.55"},
		{textfmt.Size(0), "0 B"}, {textfmt.Size(999), "999 B"}, {textfmt.Size(1000), "1.0 kB"}, {textfmt.Size(35344),
			"35.3 kB"}, {textfmt.Size(412e3), "412 kB"}, {textfmt.Size(999.6e3), "1.0 MB"},
		{textfmt.Size(-999), "-999 B"}, {textfmt.Size(5e15), "5000 TB"},
		{textfmt.Rate(3.21), "3.2"}, {textfmt.Rate(812.3), "812"}, {textfmt.Rate(25630),
			"25.6k"}, {textfmt.Rate(192000), "192k"}, {textfmt.Rate(2e6), "2.0M"},
		{textfmt.Duration(0), "0s"}, {textfmt.Duration(137 * time.Second), "2m 17s"}, {textfmt.Duration(3 * time.Hour),
			"3h 00m"}, {textfmt.Duration(240 * time.Hour), "10d 00h"},
		{textfmt.Estimate(0.0371), "37 ms"}, {textfmt.Estimate(0.9996), "1.0 s"}, {textfmt.Estimate(59.8), "60 s"},
		{textfmt.Estimate(99.4), "99 s"}, {textfmt.Estimate(100), "2 min"}, {textfmt.Estimate(5999), "1 h 40 min"},
		{textfmt.Estimate(4e6), "1 111 h 7 min"},
		{textfmt.PadRight("ab", 4), "ab  "}, {textfmt.PadLeft("ab", 4), "  ab"}, {textfmt.PadLeft("abcde", 4),
			"abcde"}, {textfmt.Count(1, "worker"), "1 worker"}, {textfmt.Count(3, "worker"), "3 workers"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
	if l := textfmt.Wrap("one two  three", 7); !slices.Equal(l, []string{"one two", "three"}) {
		t.Errorf("wrapped to %q", l)
	}
}

func TestLineEditing(t *testing.T) {
	for _, c := range []struct {
		keys []string
		want string
		at   int
	}{
		{[]string{"a", "b", "left", "c"}, "acb", 2},
		{[]string{"a", "b", "home", "c", "end", "d"}, "cabd", 4},
		{[]string{"a", "b", "backspace", "backspace", "backspace"}, "", 0},
		{[]string{"a", "b", "left", "left", "left", "delete"}, "b", 0},
		{[]string{"a", " ", "b", "c", "ctrl+w"}, "a ", 2},
		{[]string{"a", " ", "b", " ", "ctrl+w", "ctrl+u"}, "", 0},
		{[]string{"→", "right", "x"}, "→x", 2},
	} {
		var l panel.TextInput
		for _, k := range c.keys {
			text := k
			if len([]rune(k)) > 1 {
				text = ""
			}
			l.Key(k, text)
		}
		if l.Text() != c.want || l.Cursor != c.at {
			t.Errorf("%q gives %q at %d, want %q at %d", c.keys, l.Text(), l.Cursor, c.want, c.at)
		}
	}
	var l panel.TextInput
	l.Key("", "pasted\x1b[2J\ntext")
	if l.Text() != "pasted[2Jtext" {
		t.Errorf("pasted control characters stay: %q", l.Text())
	}
}

// TestSizesThatDiffer checks that sizes a step apart have different texts of minimal length.
func TestSizesThatDiffer(t *testing.T) {
	for _, c := range []struct {
		bytes, step float64
		want        string
	}{
		{0, 2e5, "0 B"}, {1.2e6, 2e5, "1.2 MB"}, {1.21e6, 1e4, "1.21 MB"}, {1.2e6, 1e6, "1 MB"}, {999, 1, "999 B"},
		{4e9, 1e9, "4 GB"}, {1e15, 5e12, "1000 TB"}, {1_234_567, 1, "1.234567 MB"},
	} {
		if got := textfmt.SizeWithStep(c.bytes, c.step); got != c.want ||
			textfmt.SizeWithStep(c.bytes+c.step, c.step) == got {
			t.Errorf("%g bytes in steps of %g: %q and then %q, want %q", c.bytes, c.step, got,
				textfmt.SizeWithStep(c.bytes+c.step, c.step), c.want)
		}
	}
}
