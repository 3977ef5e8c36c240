package cli

import (
	"fmt"
	"os"
	"sync"
	"time"

	"brood/runtime/session"
)

// keeping is a printer whose notes are kept beside the session too, for those who look later or from elsewhere. What is
// said before there is a session waits for it.
type keeping struct {
	printer
	mu     sync.Mutex
	dir    string // "" until there is a session
	before []string
}

// keep makes a printer one that keeps what it says.
func keep(out printer) *keeping {
	if k, ok := out.(*keeping); ok {
		return k
	}
	return &keeping{printer: out}
}

func (k *keeping) begin(p prepared) {
	text := fmt.Sprintf("brood %s begins as process %d", versionText(), os.Getpid())
	if host, err := os.Hostname(); err == nil {
		text += " on " + host
	}
	if p.from != nil {
		text += fmt.Sprintf(", after round %d", p.from.Checkpoint.Round)
	}
	k.settle(p.sess.Dir(), text)
	for _, text := range onStart(p.job) {
		k.say(text)
	}
	k.printer.begin(p)
}

// settle says in which session it is kept, and first of all text.
func (k *keeping) settle(dir, text string) {
	k.mu.Lock()
	k.dir = dir
	before := k.before
	k.before = nil
	k.mu.Unlock()
	k.say(text)
	for _, text := range before {
		k.say(text)
	}
}

// say keeps a text. A disk that takes no more stops neither the run nor its printer: the log of the run says so.
func (k *keeping) say(text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dir == "" {
		k.before = append(k.before, text)
		return
	}
	_ = session.Say(k.dir, text, time.Now())
}

func (k *keeping) note(text string) {
	k.say(text)
	k.printer.note(text)
}

// fail keeps why a command ends with an error.
func (k *keeping) fail(err error) {
	if err != nil {
		k.say(err.Error())
	}
}
