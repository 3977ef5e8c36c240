package cli

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// outlet is standard output, and notices when its reader goes away.
type outlet struct {
	io.Writer
	once sync.Once
	gone chan struct{}
}

var stdout = &outlet{Writer: os.Stdout, gone: make(chan struct{})}

func (o *outlet) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		o.once.Do(func() { close(o.gone) })
	}
	return n, err
}

// deaf takes the signals of broken pipes. They are of no use: those of a viewer's connection come too.
var deaf = make(chan os.Signal, 1)

// leaving passes on what asks a process to save and leave: Ctrl+C, SIGTERM, a terminal that is closed (unless nohup
// ignores it), and, as SIGPIPE, a reader of standard output that is gone. After stop, and after signal.Stop, a signal
// ends the process at once.
//
// One Ctrl+C in a pipeline ends the reader as well. Both together are one wish to leave, in whatever order they come: a
// second one would not let the run save.
func leaving(out chan<- os.Signal) (stop func()) {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	in := make(chan os.Signal, 2)
	signal.Notify(in, all...)
	signal.Notify(deaf, syscall.SIGPIPE)
	done := make(chan struct{})
	go pass(out, in, stdout.gone, done)
	return sync.OnceFunc(func() {
		signal.Stop(in)
		close(done)
	})
}

// pass hands signals on until done, and SIGPIPE where gone is closed before any came; the next one then is the same
// wish.
func pass(out chan<- os.Signal, in <-chan os.Signal, gone, done <-chan struct{}) {
	came, piped := false, false
	for {
		var sig os.Signal
		select {
		case sig = <-in:
			if came, piped = true, piped && !came; piped {
				continue
			}
		case <-gone:
			if gone = nil; came {
				continue
			}
			sig, piped = syscall.SIGPIPE, true
		case <-done:
			return
		}
		select {
		case out <- sig:
		case <-done:
			return
		}
	}
}

// leftBy is the exit status of a process that a signal made leave, as shells have it.
func leftBy(sig os.Signal) int {
	if s, ok := sig.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return exitCtrlC
}
