package tui

import "slices"

// line is a line of text being typed.
type line struct {
	runes []rune
	at    int
}

func (l *line) text() string { return string(l.runes) }

func (l *line) set(s string) { l.runes, l.at = []rune(s), len([]rune(s)) }

// key edits; text is what the key stands for, "" for the named ones.
func (l *line) key(name, text string) {
	switch name {
	case "backspace", "ctrl+h":
		if l.at > 0 {
			l.at--
			l.runes = slices.Delete(l.runes, l.at, l.at+1)
		}
	case "delete":
		if l.at < len(l.runes) {
			l.runes = slices.Delete(l.runes, l.at, l.at+1)
		}
	case "left":
		l.at = max(0, l.at-1)
	case "right":
		l.at = min(len(l.runes), l.at+1)
	case "home", "ctrl+a":
		l.at = 0
	case "end", "ctrl+e":
		l.at = len(l.runes)
	case "ctrl+u":
		l.runes, l.at = slices.Delete(l.runes, 0, l.at), 0
	case "ctrl+w":
		from := l.at
		for from > 0 && l.runes[from-1] == ' ' {
			from--
		}
		for from > 0 && l.runes[from-1] != ' ' {
			from--
		}
		l.runes, l.at = slices.Delete(l.runes, from, l.at), from
	default:
		var add []rune
		for _, r := range text {
			if r >= ' ' && r != 0x7f {
				add = append(add, r)
			}
		}
		l.runes = slices.Insert(l.runes, l.at, add...)
		l.at += len(add)
	}
}
