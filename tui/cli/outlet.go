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

// outlet is standard output of a command. After the first write that fails it writes nothing more, so that what arrived
// is whole up to there.
type outlet struct {
	to   io.Writer
	gone chan struct{} // closed once a write has failed
	mu   sync.Mutex
	err  error // of the first write that failed, nil where all arrived
}

func newOutlet(to io.Writer) *outlet { return &outlet{to: to, gone: make(chan struct{})} }

func (o *outlet) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.to.Write(p)
	if err != nil {
		if o.err = err; !closedPipe(err) {
			o.err = &writeError{err: err, next: "send it to a file or a program that takes it"}
		}
		close(o.gone)
	}
	return n, o.err
}

// failure returns why not all arrived; nil where the reader went away, which had enough.
func (o *outlet) failure() *writeError {
	o.mu.Lock()
	defer o.mu.Unlock()
	e, _ := errors.AsType[*writeError](o.err)
	return e
}

// ended reports whether a write has failed.
func (o *outlet) ended() bool {
	select {
	case <-o.gone:
		return true
	default:
		return false
	}
}

// signal is what a failed write means to a run: leave and save.
func (o *outlet) signal() os.Signal {
	if e := o.failure(); e != nil {
		return unwritten{e}
	}
	return syscall.SIGPIPE
}

// unwritten is the signal of a process that cannot write its output.
type unwritten struct{ *writeError }

func (unwritten) Signal()          {}
func (u unwritten) String() string { return u.Error() }

// writeError is a write to standard output that failed.
type writeError struct {
	err  error
	next string // what to do
}

func (e *writeError) Error() string {
	cause := e.err
	if path, ok := errors.AsType[*os.PathError](cause); ok { // it names /dev/stdout, whatever that is
		cause = path.Err
	}
	return fmt.Sprintf("write standard output: %v; %s", cause, e.next)
}

func (e *writeError) Unwrap() error { return e.err }

// closedPipe reports whether a write failed since its reader has gone away.
func closedPipe(err error) bool {
	const brokenPipe, noData = syscall.Errno(109), syscall.Errno(232) // of Windows
	return errors.Is(err, syscall.EPIPE) || goruntime.GOOS == "windows" && (errors.Is(err, brokenPipe) || errors.Is(err, noData))
}

type outletKey struct{}

// outletOf is standard output of the command that runs with this context.
func outletOf(ctx context.Context) *outlet {
	if o, ok := ctx.Value(outletKey{}).(*outlet); ok {
		return o
	}
	return newOutlet(io.Discard)
}

// writing returns a context that ends with standard output: a command that follows a run for long ends too.
func writing(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	gone := outletOf(ctx).gone
	go func() {
		select {
		case <-gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
