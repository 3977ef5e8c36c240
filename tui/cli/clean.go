package cli

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cleaned is a stream that a person reads, perhaps on a terminal. Names in it may come from files, peers or the
// environment. It replaces every character that a terminal obeys or that turns the direction of text. Each write holds
// whole characters.
type cleaned struct{ to io.Writer }

func (c *cleaned) Write(p []byte) (int, error) {
	if _, err := c.to.Write(clean(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// exact is a stream without cleaning: for JSON, CSV and other text that programs read, and for the workbench and lines
// that overwrite themselves, which move the cursor.
func exact(w io.Writer) io.Writer {
	if c, ok := w.(*cleaned); ok {
		return c.to
	}
	return w
}

// clean returns p with U+FFFD in place of what hostile reports, but for lines and tabs.
func clean(p []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if hostile(r) && r != '\n' && r != '\t' {
			return utf8.RuneError
		}
		return r // utf8.RuneError too, for a byte that is no UTF-8
	}, bytes.ReplaceAll(p, []byte("\r\n"), []byte("\n")))
}

// hostile reports whether a terminal does something else with a character than to show it: control characters, of 8
// bits too, those that turn the direction of what follows, and separators of lines.
func hostile(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// oneLine cleans a text that has its place within a line: ends of lines and tabs become blanks.
func oneLine(s string) string {
	return string(clean([]byte(strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ").Replace(s))))
}

// sentence is the text of an error on one line, and of several that were joined on a line each.
func sentence(err error) string {
	type joined interface{ Unwrap() []error }
	text := err.Error()
	for at := err; at != nil && at.Error() == text; at = errors.Unwrap(at) {
		all, ok := at.(joined)
		if !ok {
			continue
		}
		var lines, whole []string
		for _, e := range all.Unwrap() {
			lines, whole = append(lines, sentence(e)), append(whole, e.Error())
		}
		if strings.Join(whole, "\n") == text {
			return strings.Join(lines, "\n")
		}
	}
	return oneLine(text)
}
