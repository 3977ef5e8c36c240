package panel

import "slices"

// TextInput is a line of text with a cursor.
type TextInput struct {
	Runes  []rune
	Cursor int
}

// Text returns the text.
func (l *TextInput) Text() string { return string(l.Runes) }

// SetText replaces the text and moves the cursor to its end.
func (l *TextInput) SetText(s string) { l.Runes, l.Cursor = []rune(s), len([]rune(s)) }

// Key handles a key. text is the text that the key types; "" for named keys.
func (l *TextInput) Key(name, text string) {
	switch name {
	case "backspace", "ctrl+h":
		if l.Cursor > 0 {
			l.Cursor--
			l.Runes = slices.Delete(l.Runes, l.Cursor, l.Cursor+1)
		}
	case "delete":
		if l.Cursor < len(l.Runes) {
			l.Runes = slices.Delete(l.Runes, l.Cursor, l.Cursor+1)
		}
	case "left":
		l.Cursor = max(0, l.Cursor-1)
	case "right":
		l.Cursor = min(len(l.Runes), l.Cursor+1)
	case "home", "ctrl+a":
		l.Cursor = 0
	case "end", "ctrl+e":
		l.Cursor = len(l.Runes)
	case "ctrl+u":
		l.Runes, l.Cursor = slices.Delete(l.Runes, 0, l.Cursor), 0
	case "ctrl+w":
		from := l.Cursor
		for from > 0 && l.Runes[from-1] == ' ' {
			from--
		}
		for from > 0 && l.Runes[from-1] != ' ' {
			from--
		}
		l.Runes, l.Cursor = slices.Delete(l.Runes, from, l.Cursor), from
	default:
		var add []rune
		for _, r := range text {
			if r >= ' ' && r != 0x7f {
				add = append(add, r)
			}
		}
		l.Runes = slices.Insert(l.Runes, l.Cursor, add...)
		l.Cursor += len(add)
	}
}
