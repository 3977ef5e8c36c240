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
func leaving(out chan<- os.Signal) (stop func()) {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	signal.Notify(out, all...)
	signal.Notify(deaf, syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		select {
		case <-stdout.gone:
			select {
			case out <- syscall.SIGPIPE:
			case <-done:
			}
		case <-done:
		}
	}()
	return sync.OnceFunc(func() {
		signal.Stop(out)
		close(done)
	})
}

// leftBy is the exit status of a process that a signal made leave, as shells have it.
func leftBy(sig os.Signal) int {
	if s, ok := sig.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return exitCtrlC
}
