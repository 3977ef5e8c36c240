package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"sync"
	"syscall"
)

// stdoutWriter is the standard output of a command. After the first failed write it writes nothing more, so that the
// output is a complete prefix. It is safe for concurrent use.
type stdoutWriter struct {
	to   io.Writer
	gone chan struct{} // closed once a write has failed
	mu   sync.Mutex
	err  error // of the first failed write; nil if all succeeded
}

func newStdout(to io.Writer) *stdoutWriter { return &stdoutWriter{to: to, gone: make(chan struct{})} }

func (o *stdoutWriter) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.to.Write(p)
	if err != nil {
		if o.err = err; !closedPipe(err) {
			o.err = &writeError{err: err, next: "redirect it to a file or a program that reads it"}
		}
		close(o.gone)
	}
	return n, o.err
}

// failure returns the error of the first failed write; nil if all succeeded, and if the reader closed the pipe.
func (o *stdoutWriter) failure() *writeError {
	o.mu.Lock()
	defer o.mu.Unlock()
	e, _ := errors.AsType[*writeError](o.err)
	return e
}

// ended reports whether a write has failed.
func (o *stdoutWriter) ended() bool {
	select {
	case <-o.gone:
		return true
	default:
		return false
	}
}

// signal returns the signal that a failed write stands for, with which a run saves and exits: SIGPIPE if the reader
// closed the pipe, else unwritten.
func (o *stdoutWriter) signal() os.Signal {
	if e := o.failure(); e != nil {
		return unwritten{e}
	}
	return syscall.SIGPIPE
}

// unwritten is the pseudo-signal of a failed write to standard output.
type unwritten struct{ *writeError }

func (unwritten) Signal()          {}
func (u unwritten) String() string { return u.Error() }

// writeError is a failed write to standard output.
type writeError struct {
	err  error
	next string // what the user can do
}

func (e *writeError) Error() string {
	cause := e.err
	if path, ok := errors.AsType[*os.PathError](cause); ok { // drop the path /dev/stdout
		cause = path.Err
	}
	return fmt.Sprintf("write standard output: %v; %s", cause, e.next)
}

func (e *writeError) Unwrap() error { return e.err }

// closedPipe reports whether a write failed because the reader closed the pipe.
func closedPipe(err error) bool {
	const brokenPipe, noData = syscall.Errno(109), syscall.Errno(232) // Windows error codes
	return errors.Is(err, syscall.EPIPE) || goruntime.GOOS == "windows" &&
		(errors.Is(err, brokenPipe) || errors.Is(err, noData))
}

type stdoutKey struct{}

// stdoutOf returns the standard output of the command that runs with this context, or a discarding one.
func stdoutOf(ctx context.Context) *stdoutWriter {
	if o, ok := ctx.Value(stdoutKey{}).(*stdoutWriter); ok {
		return o
	}
	return newStdout(io.Discard)
}

// writing returns a context that also ends when a write to standard output fails. Commands that follow a run use it to
// exit after their reader has closed the pipe.
func writing(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	gone := stdoutOf(ctx).gone
	go func() {
		select {
		case <-gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
