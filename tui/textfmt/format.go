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
)

// Number is [view.Number].
func Number(x float64) string { return view.Number(x) }

// Percent is [view.Percent].
func Percent(x float64) string { return view.Percent(x) }

// ScoreText is [view.ScoreText].
func ScoreText(x float64, percent bool) string { return view.ScoreText(x, percent) }

// SeriesText formats a value of a series without its unit.
func SeriesText(name string, x float64) string {
	switch name {
	case event.SeriesTestError, event.SeriesTestHamming, "validation.error", "validation.hamming":
		return Percent(x)
	}
	return Number(x)
}

// Figure formats the value of a comparison metric without its unit.
func Figure(metric string, x float64) string {
	switch metric {
	case "bytes":
		return Size(x)
	case "samples_per_s":
		return Rate(x)
	case event.KeyTestError, event.KeyTestHamming, event.KeyValidationError, event.KeyValidationHamming:
		return Percent(x)
	}
	return Number(x)
}

// Uncertainty formats a standard error with two digits.
func Uncertainty(x float64) string { return view.ShortExponent(strconv.FormatFloat(x, 'g', 2, 64)) }

// Size is [view.Size] of a number of bytes.
func Size[N int | int64 | uint64 | float64](b N) string { return view.Size(float64(b)) }

// SizeWithStep formats a number of bytes with enough decimals to distinguish it from one that differs by step.
func SizeWithStep(b, step float64) string {
	for _, u := range []string{"B", "kB", "MB", "GB", "TB"} {
		if math.Abs(b) < 1000 || u == "TB" {
			return strconv.FormatFloat(b, 'f', Decimals(step), 64) + " " + u
		}
		b, step = b/1000, step/1000
	}
	return ""
}

// Decimals returns the number of decimals that resolves a step, at most 9.
func Decimals(step float64) int {
	return min(max(0, int(math.Ceil(-math.Log10(max(step, 1e-9))-1e-9))), 9)
}

// Rate formats a quantity per second with a k or M, in at most 5 characters.
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

// Duration is [view.Duration].
func Duration(d time.Duration) string { return view.Duration(d) }

// Estimate formats an estimated duration in seconds with few digits.
func Estimate(seconds float64) string {
	minutes := math.Round(seconds / 60)
	switch {
	case seconds < 0.9995:
		return fmt.Sprintf("%.0f ms", 1e3*seconds)
	case seconds < 10:
		return fmt.Sprintf("%.1f s", seconds)
	case seconds < 99.5:
		return fmt.Sprintf("%.0f s", seconds)
	case minutes < 100:
		return fmt.Sprintf("%.0f min", minutes)
	}
	return fmt.Sprintf("%s h %.0f min", Grouped(int(minutes)/60), math.Mod(minutes, 60))
}

// PadRight appends blanks to s up to n cells.
func PadRight(s string, n int) string { return s + strings.Repeat(" ", max(0, n-cell.Width(s))) }

// PadLeft prepends blanks to s up to n cells.
func PadLeft(s string, n int) string { return strings.Repeat(" ", max(0, n-cell.Width(s))) + s }

// Wrap breaks text at blanks into lines of at most n cells. It splits words that are longer.
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

// Count formats a number with a noun, which gets an s unless n is 1.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%s %ss", Grouped(uint64(n)), what)
}

// WorkerLabel returns the label of a worker: w3.
func WorkerLabel(id int) string { return "w" + strconv.Itoa(id) }

// WorkerLabels returns the labels of workers, separated by commas.
func WorkerLabels(ids []int) string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = WorkerLabel(id)
	}
	return strings.Join(all, ", ")
}

// MemberRanges formats ascending members as ranges: 0–3,8,12–15.
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

// Grouped is [view.Grouped] of a count.
func Grouped[N int | int64 | uint64](n N) string { return view.Grouped(uint64(n)) }

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

// OneDecimal formats x with one decimal.
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

// Uint formats n in decimal.
func Uint(n uint64) string { return strconv.FormatUint(n, 10) }

// Exact formats x with the fewest digits that parse to the same number.
func Exact(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// MemberID formats the id of a member.
func MemberID(id engine.Member) string { return Uint(uint64(id)) }

// CutMiddle shortens a name to n cells and keeps its beginning and end, where names of machines in a cluster differ.
func CutMiddle(s string, n int) string {
	if cell.Width(s) <= n {
		return s
	}
	r := []rune(s)
	end, tail := len(r), 0
	for n >= 4 && tail+cell.Width(string(r[end-1])) <= n/2 {
		end--
		tail += cell.Width(string(r[end]))
	}
	return cell.Cut(s, n-tail) + string(r[end:])
}

// NumberOrDash formats a number; a dash for NaN, which means that it is undefined.
func NumberOrDash(x float64) string {
	if math.IsNaN(x) {
		return "–"
	}
	return Number(x)
}
