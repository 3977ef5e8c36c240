// Package said keeps what other programs say on their standard error, as far as a person is told of it. It is a leaf.
package said

import (
	"strings"
	"sync"
	"unicode"
)

const (
	keeps = 2 << 10 // bytes of the end
	tells = 300     // characters of that
)

// Tail keeps the end of what is written to it. Its methods may be called by several goroutines.
type Tail struct {
	mu sync.Mutex
	p  []byte
}

func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.p = append(t.p, p[max(0, len(p)-keeps):]...)
	t.p = append(t.p[:0], t.p[max(0, len(t.p)-keeps):]...)
	return len(p), nil
}

// Lines are those of the end that say something, as a terminal can be shown them.
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

// Last is the end as one line.
func (t *Tail) Last() string {
	text := []rune(strings.Join(t.Lines(), " | "))
	return string(text[max(0, len(text)-tells):])
}
