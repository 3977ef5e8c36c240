package cli

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cleaned is a stream of text for people. Names in the text may come from files, peers or the environment, so that it
// replaces all [hostile] characters. Each write must contain whole UTF-8 characters.
type cleaned struct{ to io.Writer }

func (c *cleaned) Write(p []byte) (int, error) {
	if _, err := c.to.Write(clean(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// exact returns the stream without cleaning: for JSON, CSV and other text for programs, and for output that moves the
// cursor.
func exact(w io.Writer) io.Writer {
	if c, ok := w.(*cleaned); ok {
		return c.to
	}
	return w
}

// clean returns p with U+FFFD in place of hostile characters other than line ends and tabs. It converts CRLF to LF.
func clean(p []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if hostile(r) && r != '\n' && r != '\t' {
			return utf8.RuneError
		}
		return r // utf8.RuneError for a byte that is not UTF-8
	}, bytes.ReplaceAll(p, []byte("\r\n"), []byte("\n")))
}

// hostile reports whether a terminal does not show a character but acts on it: control characters of 7 and 8 bits,
// bidirectional controls, and the line and paragraph separators.
func hostile(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// oneLine cleans a text for use within a line: line ends and tabs become spaces.
func oneLine(s string) string {
	return string(clean([]byte(strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ").Replace(s))))
}

// sentence returns the text of an error on one line. Joined errors have a line each.
func sentence(err error) string {
	type joined interface{ Unwrap() []error }
	text := err.Error()
	for at := err; at != nil && at.Error() == text; at = errors.Unwrap(at) {
		all, ok := at.(joined)
		if !ok {
			continue
		}
		var lines, texts []string
		for _, e := range all.Unwrap() {
			lines, texts = append(lines, sentence(e)), append(texts, e.Error())
		}
		if strings.Join(texts, "\n") == text {
			return strings.Join(lines, "\n")
		}
	}
	return oneLine(text)
}
