package panel

import (
	"brood/tui/cell"
	"brood/tui/textfmt"
	"slices"
)

// Distinct shortens names to width cells and keeps them different. It removes the common prefix and suffix of the names
// that are too long, and then the middle of those that would still look the same.
func Distinct(names []string, width int) []string {
	var long [][]rune
	for _, n := range names {
		if cell.Width(n) > width {
			long = append(long, []rune(n))
		}
	}
	head, tail := 0, 0
	if len(long) > 1 {
		head, tail = alike(long)
		for head > 0 && numeric(long[0][head-1]) { // the rest of a number would look like another number
			head--
		}
		for tail > 0 && numeric(long[0][len(long[0])-tail]) {
			tail--
		}
	}
	out, looks := make([]string, len(names)), map[string]int{}
	for i, n := range names {
		if out[i] = n; cell.Width(n) > width {
			r := []rune(n)
			out[i] = string(r[head : len(r)-tail])
			if head > 0 {
				out[i] = "…" + out[i]
			}
			if tail > 0 {
				out[i] += "…"
			}
		}
		looks[fitted(out[i], width)]++
	}
	for i, n := range out {
		if out[i] = fitted(n, width); looks[out[i]] > 1 || len(long) == 1 {
			out[i] = textfmt.CutMiddle(n, width)
		}
	}
	return out
}

// alike returns the lengths of the common prefix and suffix of names in characters. A length of 1 becomes 0, since an
// ellipsis takes its place.
func alike(names [][]rune) (head, tail int) {
	least := len(names[0])
	for _, n := range names {
		least = min(least, len(n))
	}
	same := func(at func(n []rune) rune) bool {
		return !slices.ContainsFunc(names, func(n []rune) bool { return at(n) != at(names[0]) })
	}
	for head < least && same(func(n []rune) rune { return n[head] }) {
		head++
	}
	if head == 1 {
		head = 0
	}
	for tail < least-head && same(func(n []rune) rune { return n[len(n)-1-tail] }) {
		tail++
	}
	if tail == 1 {
		tail = 0
	}
	return head, tail
}

// numeric reports whether a number can contain r.
func numeric(r rune) bool { return r >= '0' && r <= '9' || r == '.' }

// fitted cuts s to width cells if it is longer.
func fitted(s string, width int) string {
	if cell.Width(s) > width {
		return cell.Cut(s, width)
	}
	return s
}

// Initials returns one character of each name: the first position at which the names differ.
func Initials(names []string) []string {
	all := make([][]rune, len(names))
	for i, n := range names {
		all[i] = []rune(n)
	}
	head := 0
	if len(all) > 1 {
		head, _ = alike(all)
	}
	out := make([]string, len(names))
	for i, r := range all {
		if out[i] = " "; head < len(r) {
			out[i] = string(r[head])
		}
	}
	return out
}
