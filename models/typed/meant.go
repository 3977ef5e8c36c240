package typed

import (
	"fmt"
	"strings"
)

// Meant is what follows a name that is none of those that there are: which of them is meant, where one differs by a
// slip or two or is the only one that begins so, as in ` (did you mean parle?)`; else "".
func Meant(name string, there []string) string {
	best, least := "", min(max(1, len(name)/3), 2)+1
	for _, x := range there {
		if d := slips(plain(name), plain(x)); d < least && d < len(name) {
			best, least = x, d
		}
	}
	if best == "" {
		best = onlyLonger(name, there)
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// onlyLonger is the one of them that begins with so much of a name; "" where there are none or several.
func onlyLonger(name string, there []string) (only string) {
	for _, x := range there {
		switch begins := len(name) > 1 && strings.HasPrefix(plain(x), plain(name)); {
		case begins && only != "":
			return ""
		case begins:
			only = x
		}
	}
	return only
}

// plain is a name without what people do not hear.
func plain(name string) string {
	return strings.NewReplacer("_", "-", " ", "-").Replace(strings.ToLower(name))
}

// slips are the letters to be put in, left out, changed, or swapped with the one beside them to make b of a: the
// distance of Damerau and Levenshtein, where nothing is changed that was swapped.
func slips(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1) // the rows of i-2 and i-1 letters of a
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
