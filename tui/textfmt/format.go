// Package textfmt formats numbers, sizes, durations and names for screens and printed lines.
package textfmt

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"brood/models/engine"
	"brood/runtime/event"
	"brood/runtime/view"
	"brood/tui/cell"
	"brood/tui/chart"
)

var exponent = strings.NewReplacer("e-0", "e-", "e+0", "e", "e+", "e")

// Number writes a measurement as all screens and lines do: with four digits, of which those behind the point are at
// most four, so that it keeps its width while it changes; below a thousandth, and from a million on, with two digits
// and an exponent.
func Number(x float64) string {
	a := math.Abs(x)
	digits := 4
	switch {
	case math.IsNaN(x):
		return "nan"
	case math.IsInf(x, 0):
		return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(x, 'f', 0, 64), "+"))
	case x == 0:
		return "0"
	case a >= 1e6 || a < 1e-3:
		return exponent.Replace(strconv.FormatFloat(x, 'e', 1, 64))
	case a >= 1000:
		digits = 0
	case a >= 100:
		digits = 1
	case a >= 10:
		digits = 2
	case a >= 1:
		digits = 3
	}
	return strconv.FormatFloat(x, 'f', digits, 64)
}

// Percent writes a share in percent, which a test of ten thousand samples tells to two places.
func Percent(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// ScoreText is a score with its unit.
func ScoreText(x float64, percent bool) string {
	switch {
	case x != x:
		return "–"
	case percent:
		return Percent(x) + " %"
	}
	return Number(x)
}

// SeriesText is a value of a series without its unit.
func SeriesText(name string, x float64) string {
	if name == event.SeriesTestError || name == event.SeriesTestHamming {
		return Percent(x)
	}
	return Number(x)
}

// Figure is what a run came to by a metric of a comparison, without its unit, which stands above it.
func Figure(metric string, x float64) string {
	switch metric {
	case "bytes":
		return Size(x)
	case "samples_per_s":
		return Rate(x)
	case event.KeyTestError, event.KeyTestHamming:
		return Percent(x)
	}
	return Number(x)
}

// Uncertainty writes a standard error with two digits, however small it is beside what it is of.
func Uncertainty(x float64) string { return exponent.Replace(strconv.FormatFloat(x, 'g', 2, 64)) }

// Size is [view.Size].
func Size(b float64) string { return view.Size(b) }

// SizeWithStep is [Size] with the digits that tell it from one that lies a step beside it.
func SizeWithStep(b, step float64) string {
	for _, u := range []string{"B", "kB", "MB", "GB", "TB"} {
		if math.Abs(b) < 1000 || u == "TB" {
			return strconv.FormatFloat(b, 'f', Decimals(step), 64) + " " + u
		}
		b, step = b/1000, step/1000
	}
	return ""
}

// Decimals are the places behind the point that a step takes.
func Decimals(step float64) int {
	return min(max(0, int(math.Ceil(-math.Log10(max(step, 1e-9))-1e-9))), 9)
}

// Rate writes a quantity per second with a k or M: at most 5 characters.
func Rate(x float64) string {
	switch {
	case x >= 999_500:
		return fmt.Sprintf("%.1fM", x/1e6)
	case x >= 99_950:
		return fmt.Sprintf("%.0fk", x/1e3)
	case x >= 9_999.5:
		return fmt.Sprintf("%.1fk", x/1e3)
	case x >= 99.95:
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.1f", x)
}

// Duration writes a duration in its two greatest units.
func Duration(d time.Duration) string {
	s := int64(d.Round(time.Second).Seconds())
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm %02ds", s/60, s%60)
	case s < 100*3600:
		return fmt.Sprintf("%dh %02dm", s/3600, s%3600/60)
	}
	return fmt.Sprintf("%dd %02dh", s/86400, s%86400/3600)
}

// PadRight fills s with blanks on the right to n cells, lead on the left.
func PadRight(s string, n int) string { return s + strings.Repeat(" ", max(0, n-cell.Width(s))) }

func PadLeft(s string, n int) string { return strings.Repeat(" ", max(0, n-cell.Width(s))) + s }

// Wrap breaks text at blanks into lines of at most n cells.
func Wrap(text string, n int) (lines []string) {
	line := ""
	for _, w := range strings.Fields(text) {
		for r := []rune(w); n > 0 && len(r) > n; w = string(r) { // a schedule has no spaces to break it at
			if line != "" {
				lines, line = append(lines, line), ""
			}
			lines, r = append(lines, string(r[:n])), r[n:]
		}
		switch {
		case line == "":
			line = w
		case cell.Width(line)+1+cell.Width(w) <= n:
			line += " " + w
		default:
			lines = append(lines, line)
			line = w
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%s %ss", Grouped(uint64(n)), what)
}

// WorkerLabel is a worker's number as the screens write it.
func WorkerLabel(id int) string { return "w" + strconv.Itoa(id) }

// WorkerLabels are those of several.
func WorkerLabels(ids []int) string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = WorkerLabel(id)
	}
	return strings.Join(all, ", ")
}

// MemberRanges writes ascending members as compactly as can be: 0–3,8,12–15.
func MemberRanges(ids []engine.Member) string {
	var parts []string
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		part := MemberID(ids[i])
		if j > i {
			part += "–" + MemberID(ids[j])
		}
		parts, i = append(parts, part), j+1
	}
	return strings.Join(parts, ",")
}

func Grouped(n uint64) string { return chart.Count(n) }

// ShortSize formats a number of bytes in at most five characters.
func ShortSize(b float64) string {
	return strings.ReplaceAll(strings.TrimSuffix(Size(b), "B"), " ", "")
}

// ThreeDigits formats a number below 1000 with three digits.
func ThreeDigits(x float64) string {
	switch {
	case x < 9.995:
		return fmt.Sprintf("%.2f", x)
	case x < 99.95:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

func OneDecimal(x float64) string { return fmt.Sprintf("%.1f", x) }

// FileCut shortens a path to n cells and keeps the file name, which matters more than its folders.
func FileCut(s string, n int) string {
	at := strings.LastIndexByte(strings.TrimRight(s, "/"), '/')
	if cell.Width(s) <= n || at < 0 {
		return CutMiddle(s, n)
	}
	if name := s[at:]; cell.Width(name)+1 <= n {
		return "…" + name
	}
	return CutMiddle(s[at+1:], n)
}

func Uint(n uint64) string { return strconv.FormatUint(n, 10) }

// Exact is the shortest text that reads back as the same number.
func Exact(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func MemberID(id engine.Member) string { return Uint(uint64(id)) }

// CutMiddle shortens a name to n cells in the middle: names of machines in a cluster differ at the end.
func CutMiddle(s string, n int) string {
	r := []rune(s)
	if len(r) <= n || n < 3 {
		return s
	}
	tail := n / 2
	return string(r[:n-1-tail]) + "…" + string(r[len(r)-tail:])
}
