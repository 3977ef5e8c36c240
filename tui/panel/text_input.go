package panel

import (
	"slices"
	"strings"
)

// TextInput is a line of text with a cursor.
type TextInput struct {
	Runes  []rune
	Cursor int

	Cycle   []string // lines that Complete goes through, nil while there are none
	CycleAt int      // index of the shown one
}

// Text returns the text.
func (l *TextInput) Text() string { return string(l.Runes) }

// SetText replaces the text and moves the cursor to its end.
func (l *TextInput) SetText(s string) { l.Runes, l.Cursor = []rune(s), len([]rune(s)) }

// Key handles a key. text is the text that the key types; "" for named keys.
func (l *TextInput) Key(name, text string) {
	l.Cycle = nil
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

// Complete extends the last word by the common prefix of its completions, and a single one by end. If there is nothing
// to extend, it cycles through the completions, forward for d = 1, backward for d = -1.
func (l *TextInput) Complete(all []string, d int, end string) {
	if l.Cycle != nil {
		l.CycleAt = (l.CycleAt + d + len(l.Cycle)) % len(l.Cycle)
		l.SetText(l.Cycle[l.CycleAt])
		return
	}
	if len(all) == 0 {
		return
	}
	same := all[0]
	for _, w := range all[1:] {
		for !strings.HasPrefix(w, same) {
			same = same[:len(same)-1]
		}
	}
	if len(all) == 1 {
		same += end
	}
	text := l.Text()
	stem := text[:strings.LastIndex(text, " ")+1]
	if l.SetText(stem + same); l.Text() != text || len(all) == 1 {
		return
	}
	for _, w := range all {
		l.Cycle = append(l.Cycle, stem+w)
	}
	if l.CycleAt = 0; d < 0 {
		l.CycleAt = len(all) - 1
	}
	l.SetText(l.Cycle[l.CycleAt])
}
