package cli

import (
	"fmt"
	"os"
	"sync"
	"time"

	"brood/runtime/session"
)

// loggedPrinter is a printer that also appends its notes to the log of the session, for readers on other machines or
// after the run.
// Notes before the session exists are buffered.
type loggedPrinter struct {
	printer
	mu     sync.Mutex
	dir    string // "" until there is a session
	before []string
}

// withLog wraps a printer, unless it is wrapped already.
func withLog(out printer) *loggedPrinter {
	if k, ok := out.(*loggedPrinter); ok {
		return k
	}
	return &loggedPrinter{printer: out}
}

func (k *loggedPrinter) begin(p prepared) {
	text := fmt.Sprintf("brood %s begins as process %d", versionText(), os.Getpid())
	if host, err := os.Hostname(); err == nil {
		text += " on " + host
	}
	if p.from != nil {
		text += fmt.Sprintf(", after round %d", p.from.Checkpoint.Round)
	}
	k.setSession(p.sess.Dir(), text)
	for _, text := range onStart(p.job) {
		k.log(text)
	}
	k.printer.begin(p)
}

// setSession sets the session directory and logs text, then the buffered notes.
func (k *loggedPrinter) setSession(dir, text string) {
	k.mu.Lock()
	k.dir = dir
	before := k.before
	k.before = nil
	k.mu.Unlock()
	k.log(text)
	for _, text := range before {
		k.log(text)
	}
}

// log appends a text to the log of the session. It ignores write errors: a full disk must stop neither the run nor
// its printer, and the run itself reports it.
func (k *loggedPrinter) log(text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dir == "" {
		k.before = append(k.before, text)
		return
	}
	_ = session.AppendProcessLog(k.dir, text, time.Now())
}

func (k *loggedPrinter) note(text string) {
	k.log(text)
	k.printer.note(text)
}

// fail logs the error that ends a command; nil does nothing.
func (k *loggedPrinter) fail(err error) {
	if err != nil {
		k.log(err.Error())
	}
}
