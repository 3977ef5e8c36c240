// Package subprocess runs a program of the user that answers frames: a length, a kind and a body, on its standard input
// and output. It bounds how long an answer may take, ends the program and its children, and reports in one sentence why
// a program failed, with the last lines of its standard error.
//
// It knows no protocol. Packages objective and program define the frames.
package subprocess

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"brood/models/procgroup"
	"brood/models/stderrtail"
)

// exitTimeout is the time in which a program must exit after its input is closed.
const exitTimeout = 2 * time.Second

// Process is one running program. It is used from one goroutine. The creator must call Fail or Shutdown.
type Process struct {
	In  io.WriteCloser // its standard input
	Out *bufio.Reader  // its standard output

	cmd    *exec.Cmd
	out    *os.File // under Out
	stderr stderrtail.Tail

	exited     chan struct{} // closed when the program has exited and its process group is killed
	state      *os.ProcessState
	stderrDone chan struct{} // closed when stderr is read to its end
}

// Start starts a command in its own process group, with pipes for its input and outputs. env is added to the
// environment of this process. The program inherits files as descriptors 3, 4 and so on; the caller keeps and closes
// its own.
func Start(command, env []string, files ...*os.File) (*Process, error) {
	p := &Process{
		cmd:        exec.Command(command[0], command[1:]...),
		exited:     make(chan struct{}),
		stderrDone: make(chan struct{}),
	}
	procgroup.Separate(p.cmd)
	out, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	errOut, errIn, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, out.Close(), write.Close())
	}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.ExtraFiles = write, errIn, files
	if len(env) > 0 {
		p.cmd.Env = append(os.Environ(), env...)
	}
	p.out, p.Out = out, bufio.NewReader(out)
	if p.In, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	_, _ = write.Close(), errIn.Close() // the program has inherited them
	if err != nil {
		return nil, errors.Join(err, out.Close(), errOut.Close())
	}
	go func() {
		defer close(p.stderrDone)
		_, _ = io.Copy(&p.stderr, errOut)
		errOut.Close()
	}()
	go func() {
		defer close(p.exited)
		p.state, _ = p.cmd.Process.Wait()
		p.kill() // its child processes would keep the pipes open
		// Children that left the process group are not waited for. Output already written can be read at once.
		_ = out.SetReadDeadline(time.Now().Add(exitTimeout))
		_ = errOut.SetReadDeadline(time.Now().Add(exitTimeout))
	}()
	return p, nil
}

// WithDeadline calls f and returns its error. If f takes longer than limit or ctx is cancelled, it kills the program,
// which makes f return, and returns a *TimeoutError or ctx.Err().
func (p *Process) WithDeadline(ctx context.Context, limit time.Duration, f func() error) error {
	late := false
	var mu sync.Mutex
	timer := time.AfterFunc(limit, func() {
		mu.Lock()
		late = true
		mu.Unlock()
		p.kill()
	})
	stop := context.AfterFunc(ctx, p.kill)
	err := f()
	inTime, wanted := timer.Stop(), stop()
	if err == nil && inTime && wanted {
		return nil // else the program is being killed, although it has answered
	}
	mu.Lock()
	defer mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case late || err == nil:
		return &TimeoutError{limit}
	}
	return err
}

// TimeoutError reports that a program gave no answer in time.
type TimeoutError struct{ Limit time.Duration }

func (e *TimeoutError) Error() string { return fmt.Sprintf("it gave no answer within %s", e.Limit) }

// Exited reports whether the program has exited.
func (p *Process) Exited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// kill kills the program and its process group. Errors are ignored, since it may have exited.
func (p *Process) kill() { _ = procgroup.Kill(p.cmd) }

// isOutputEnd reports whether err means that the program closed its output or exited.
func isOutputEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrDeadlineExceeded) ||
		strings.Contains(err.Error(), "broken pipe")
}

// Fail ends the program after the error err and waits for its exit. It returns err with the exit status, if the program
// exited by itself, and the last lines of its standard error.
func (p *Process) Fail(err error) error {
	p.In.Close()
	if !isOutputEnd(err) {
		p.kill()
	}
	p.wait()
	if isOutputEnd(err) {
		err = errors.New("it ended without an answer")
		if p.state != nil && !p.state.Success() {
			err = fmt.Errorf("it ended without an answer: %s", p.state)
		}
	}
	if tail := p.stderr.Last(); tail != "" {
		err = fmt.Errorf("%w; stderr: %s", err, tail)
	}
	return err
}

// wait waits until the program has exited and its stderr is read, then releases its resources. After exitTimeout it
// kills the program.
func (p *Process) wait() {
	late := time.AfterFunc(exitTimeout, p.kill)
	defer late.Stop()
	<-p.exited
	<-p.stderrDone
	p.out.Close()
}

// Shutdown closes the program's input and waits for its exit. It ignores the exit status.
func (p *Process) Shutdown() {
	p.In.Close()
	p.wait()
}
