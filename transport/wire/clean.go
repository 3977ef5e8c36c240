package wire

import (
	"strings"
	"unicode"
)

// Limits of text lengths, in characters.
const (
	maxName = 64
	maxText = 512
)

// CleanText makes a peer's text safe to display: one line, no control characters, at most 512 characters.
func CleanText(s string) string { return clean(s, maxText, "") }

// CleanName makes a peer's name safe to display and to use in a file name: as CleanText, at most 64 characters, and
// without path separators.
func CleanName(s string) string {
	s = strings.TrimSpace(clean(s, maxName, `/\`))
	if strings.Trim(s, ".") == "" {
		return strings.Repeat("_", len(s))
	}
	return s
}

func clean(s string, most int, replace string) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		switch {
		case strings.ContainsRune(replace, r):
			r = '_'
		case r == '\n' || r == '\t':
			r = ' '
		// Control characters, and format characters such as those that change the text direction.
		case !unicode.IsGraphic(r):
			continue
		case unicode.IsSpace(r):
			r = ' '
		}
		if n++; n > most {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

func cleanAll(in []string) []string {
	for i, s := range in {
		in[i] = CleanText(s)
	}
	return in
}
