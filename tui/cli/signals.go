package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// deaf takes the signals of broken pipes. They are of no use: those of a viewer's connection come too.
var deaf = make(chan os.Signal, 1)

// leaving passes on what asks a process to save and leave: Ctrl+C, SIGTERM, a terminal that is closed (unless nohup
// ignores it), and standard output that takes no more: as SIGPIPE where its reader is gone, else as [unwritten]. After
// stop, and after signal.Stop, a signal ends the process at once.
//
// One Ctrl+C in a pipeline ends the reader as well. Both together are one wish to leave, in whatever order they come: a
// second one would not let the run save.
func leaving(ctx context.Context, out chan<- os.Signal) (stop func()) {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	in := make(chan os.Signal, 2)
	signal.Notify(in, all...)
	signal.Notify(deaf, syscall.SIGPIPE)
	done := make(chan struct{})
	go pass(out, in, outletOf(ctx), done)
	return sync.OnceFunc(func() {
		signal.Stop(in)
		close(done)
	})
}

// pass hands signals on until done, and that of standard output where that fails before any came; the next one then is
// the same wish.
func pass(out chan<- os.Signal, in <-chan os.Signal, stdout *outlet, done <-chan struct{}) {
	came, piped, gone := false, false, stdout.gone
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
			sig, piped = stdout.signal(), true
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
	switch s := sig.(type) {
	case syscall.Signal:
		return 128 + int(s)
	case unwritten:
		return exitFailed
	}
	return exitCtrlC
}
