package engine

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// Panic is a recovered panic. [Each] panics with one if f panics on another goroutine.
type Panic struct {
	Value any
	At    string // the file and line that panicked
}

// Recovered returns the panic of a value that recover returned; of a *Panic, that one. Only a deferred function may
// call it, since it finds the line on the stack.
func Recovered(value any) *Panic {
	if p, ok := value.(*Panic); ok {
		return p
	}
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for panicked := false; ; {
		f, more := frames.Next()
		ofGo := strings.HasPrefix(f.Function, "runtime.") || strings.HasPrefix(f.Function, "internal/runtime/")
		if panicked && !ofGo || !more {
			return &Panic{value, fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)}
		}
		panicked = panicked || f.Function == "runtime.gopanic"
	}
}

// String returns the line and the value.
func (p *Panic) String() string { return fmt.Sprintf("%s: %v", p.At, p.Value) }
