package view

import (
	"fmt"
	"math"
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
