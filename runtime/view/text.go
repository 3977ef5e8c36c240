package view

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Plural returns a number with its noun, to which it adds an s unless n is 1.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Size formats a number of bytes with three digits and its unit: at most 7 characters.
func Size(b float64) string {
	for _, u := range []string{"B", "kB", "MB", "GB", "TB"} {
		if math.Abs(b) < 999.5 || u == "TB" {
			switch {
			case u == "B" || math.Abs(b) >= 99.95:
				return fmt.Sprintf("%.0f %s", b, u)
			default:
				return fmt.Sprintf("%.1f %s", b, u)
			}
		}
		b /= 1000
	}
	return ""
}

// ShortExponent removes the plus and the leading zero of the exponent of a formatted number.
func ShortExponent(s string) string { return exponent.Replace(s) }

var exponent = strings.NewReplacer("e-0", "e-", "e+0", "e", "e+", "e")

// Number formats a measurement with four digits, at most four of them decimals, so that its width is constant while it
// changes. Below 0.001 and from 1e6 on it uses two digits and an exponent.
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
		return ShortExponent(strconv.FormatFloat(x, 'e', 1, 64))
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

// Percent formats a percentage with two decimals, the resolution of a test set of 10 000 samples.
func Percent(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// ScoreText formats a score with its unit; a dash for NaN.
func ScoreText(x float64, percent bool) string {
	switch {
	case x != x:
		return "–"
	case percent:
		return Percent(x) + " %"
	}
	return Number(x)
}

// Duration formats a duration in its two largest units.
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

// Grouped formats n with its digits in groups of three.
func Grouped(n uint64) string {
	s := strconv.FormatUint(n, 10)
	if n < 1000 {
		return s
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}
