package tui

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

// sizeTo is [Size] with the digits that tell it from one that lies a step beside it.
func sizeTo(b, step float64) string {
	for _, u := range []string{"B", "kB", "MB", "GB", "TB"} {
		if math.Abs(b) < 1000 || u == "TB" {
			return strconv.FormatFloat(b, 'f', decimals(step), 64) + " " + u
		}
		b, step = b/1000, step/1000
	}
	return ""
}

// decimals are the places behind the point that a step takes.
func decimals(step float64) int {
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

// span writes a duration in its two greatest units.
func span(d time.Duration) string {
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

// pad fills s with blanks on the right to n cells, lead on the left.
func pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-cell.Width(s))) }

func lead(s string, n int) string { return strings.Repeat(" ", max(0, n-cell.Width(s))) + s }

// wrap breaks text at blanks into lines of at most n cells.
func wrap(text string, n int) (lines []string) {
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

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%s %ss", round(uint64(n)), what)
}

// label is a worker's number as the screens write it.
func label(id int) string { return "w" + strconv.Itoa(id) }

// labels are those of several.
func labels(ids []int) string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = label(id)
	}
	return strings.Join(all, ", ")
}

// ranges writes ascending members as compactly as can be: 0–3,8,12–15.
func ranges(ids []engine.Member) string {
	var parts []string
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		part := memberText(ids[i])
		if j > i {
			part += "–" + memberText(ids[j])
		}
		parts, i = append(parts, part), j+1
	}
	return strings.Join(parts, ",")
}
