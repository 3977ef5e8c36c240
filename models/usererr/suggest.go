package usererr

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Suggest returns ` (did you mean parle?)` with the entry of known that is closest to name: within two typing errors,
// the only one with name as its prefix, or the at most five that have name as a word. It returns "" if there is none.
func Suggest(name string, known []string) string {
	best, least := "", min(max(1, len(name)/3), 2)+1
	for _, x := range known {
		if d := distance(plain(name), plain(x)); d < least && d < len(name) {
			best, least = x, d
		}
	}
	if best = cmp.Or(best, completion(name, known), containing(name, known)); best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// completion returns the only entry of known with name as its prefix; "" if there are none or several.
func completion(name string, known []string) (only string) {
	for _, x := range known {
		switch begins := len(name) > 1 && strings.HasPrefix(plain(x), plain(name)); {
		case begins && only != "":
			return ""
		case begins:
			only = x
		}
	}
	return only
}

// containing returns the entries of known that have name as one of their words, as text; "" if there are more than five.
func containing(name string, known []string) string {
	var found []string
	for _, x := range known {
		if slices.Contains(strings.Split(plain(x), "-"), plain(name)) {
			found = append(found, x)
		}
	}
	switch n := len(found); {
	case n > 5 || name == "":
		return ""
	case n > 1:
		return strings.Join(found[:n-1], ", ") + " or " + found[n-1]
	}
	return strings.Join(found, "")
}

// plain returns name in lower case, with one kind of separator.
func plain(name string) string {
	return strings.NewReplacer("_", "-", " ", "-").Replace(strings.ToLower(name))
}

// distance returns the optimal string alignment distance of a and b: the number of letters to insert, delete, change or
// swap with their neighbour.
func distance(a, b string) int {
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
