package panel

import "slices"

// Line is a line of text being typed.
type Line struct {
	Runes []rune
	At    int
}

func (l *Line) Text() string { return string(l.Runes) }

func (l *Line) Set(s string) { l.Runes, l.At = []rune(s), len([]rune(s)) }

// Key edits; text is what the key stands for, "" for the named ones.
func (l *Line) Key(name, text string) {
	switch name {
	case "backspace", "ctrl+h":
		if l.At > 0 {
			l.At--
			l.Runes = slices.Delete(l.Runes, l.At, l.At+1)
		}
	case "delete":
		if l.At < len(l.Runes) {
			l.Runes = slices.Delete(l.Runes, l.At, l.At+1)
		}
	case "left":
		l.At = max(0, l.At-1)
	case "right":
		l.At = min(len(l.Runes), l.At+1)
	case "home", "ctrl+a":
		l.At = 0
	case "end", "ctrl+e":
		l.At = len(l.Runes)
	case "ctrl+u":
		l.Runes, l.At = slices.Delete(l.Runes, 0, l.At), 0
	case "ctrl+w":
		from := l.At
		for from > 0 && l.Runes[from-1] == ' ' {
			from--
		}
		for from > 0 && l.Runes[from-1] != ' ' {
			from--
		}
		l.Runes, l.At = slices.Delete(l.Runes, from, l.At), from
	default:
		var add []rune
		for _, r := range text {
			if r >= ' ' && r != 0x7f {
				add = append(add, r)
			}
		}
		l.Runes = slices.Insert(l.Runes, l.At, add...)
		l.At += len(add)
	}
}
