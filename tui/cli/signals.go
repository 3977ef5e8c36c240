package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// ignoredSIGPIPE receives SIGPIPE, which nothing reads: broken connections of viewers raise it too. Registering it
// prevents the default action.
var ignoredSIGPIPE = make(chan os.Signal, 1)

// notifyExit forwards to out the signals that ask the process to save and exit: SIGINT, SIGTERM, SIGHUP (unless nohup
// ignores it), and a failed write to standard output: as SIGPIPE if its reader has gone, else as [unwritten]. After
// stop, and after signal.Stop, a signal ends the process at once.
//
// Ctrl+C in a pipeline ends the reader too. Both together count as one request, in either order: a second signal
// would prevent the run from saving.
func notifyExit(ctx context.Context, out chan<- os.Signal) (stop func()) {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	in := make(chan os.Signal, 2)
	signal.Notify(in, all...)
	signal.Notify(ignoredSIGPIPE, syscall.SIGPIPE)
	done := make(chan struct{})
	go forwardSignals(out, in, stdoutOf(ctx), done)
	return sync.OnceFunc(func() {
		signal.Stop(in)
		close(done)
	})
}

// forwardSignals forwards signals until done is closed. If standard output fails before the first signal, it forwards
// that failure and drops the next signal, which is part of the same request.
func forwardSignals(out chan<- os.Signal, in <-chan os.Signal, stdout *stdoutWriter, done <-chan struct{}) {
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

// signalStatus returns the exit status of a process that a signal ended: 128 + its number, as shells define it;
// exitFailed for unwritten.
func signalStatus(sig os.Signal) int {
	switch s := sig.(type) {
	case syscall.Signal:
		return 128 + int(s)
	case unwritten:
		return exitFailed
	}
	return exitCtrlC
}
