// Package stderrtail keeps the end of the standard error of other programs, for error messages.
package stderrtail

import (
	"strings"
	"sync"
	"unicode"
)

const (
	kept  = 2 << 10 // bytes
	shown = 300     // characters
)

// Tail keeps the last bytes that are written to it. Its methods are safe for concurrent use.
type Tail struct {
	mu sync.Mutex
	p  []byte
}

func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.p = append(t.p, p[max(0, len(p)-kept):]...)
	t.p = append(t.p[:0], t.p[max(0, len(t.p)-kept):]...)
	return len(p), nil
}

// Lines returns the non-empty lines of the tail, without control characters.
func (t *Tail) Lines() (lines []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for l := range strings.SplitSeq(strings.ToValidUTF8(string(t.p), ""), "\n") {
		if l = strings.TrimSpace(strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return ' '
		}, l)); l != "" {
			lines = append(lines, l)
		}
	}
	return lines
}

// Last returns the end of the tail as one line.
func (t *Tail) Last() string {
	text := []rune(strings.Join(t.Lines(), " | "))
	return string(text[max(0, len(text)-shown):])
}
