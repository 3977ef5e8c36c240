package objective

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

	"brood/models/engine"
	"brood/models/procgroup"
	"brood/models/stderrtail"
)

const (
	maxStarts   = 4               // attempts to start a program
	exitTimeout = 2 * time.Second // time to exit after its input is closed
)

// helloTimeout is the time in which a program must answer hello. Tests shorten it.
var helloTimeout = 30 * time.Second

// restartDelay is the delay after the first failed start; it doubles after each further one. Tests shorten it.
var restartDelay = 100 * time.Millisecond

// process is one running program. It is used from one goroutine.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *os.File
	read   *bufio.Reader // of out
	stderr *stderrtail.Tail
	buf    []byte
	next   uint64 // next unused evaluation id; ids are unique, so that a duplicate answer is detected

	exited     chan struct{} // closed when the program has exited and its process group is killed
	state      *os.ProcessState
	stderrDone chan struct{} // closed when stderr is read to its end

	reply  helloReply
	memory *shared // nil: parameters are sent through the pipe

	frames  chan []byte   // queue of frames to write; nil until the program has answered hello
	sent    chan struct{} // one element per written frame
	written chan struct{} // closed when all frames are written
}

// start starts the program, sends hello and reads the answer. On an error the process is ended.
func start(ctx context.Context, o *Objective) (*process, error) {
	greeting, params, err := hello(&o.Spec)
	if err != nil {
		return nil, err
	}
	p := &process{
		cmd:        exec.Command(o.Command[0], o.Command[1:]...),
		stderr:     &stderrtail.Tail{},
		exited:     make(chan struct{}),
		stderrDone: make(chan struct{}),
	}
	if err := p.spawn(); err != nil {
		return nil, err
	}
	err = p.withDeadline(ctx, helloTimeout, func() error {
		if _, err := p.in.Write(greeting); err != nil {
			return err
		}
		if p.buf, err = readFrame(p.read, p.buf, kindReady); err != nil {
			return err
		}
		if p.reply, err = parseReady(p.buf); err != nil || !p.reply.shared {
			return err
		}
		return p.offerShared(4 * int64(maxRowsOf(params)) * int64(params))
	})
	if err != nil {
		return nil, p.fail(err)
	}
	p.frames, p.sent, p.written = make(chan []byte, 2), make(chan struct{}, 2), make(chan struct{})
	go p.write()
	return p, nil
}

// offerShared creates a shared memory file with two slots of slot bytes and sends its path to the program. If the file
// cannot be created, batches are sent through the pipe.
func (p *process) offerShared(slot int64) error {
	if p.memory = newShared(slot); p.memory == nil {
		return nil
	}
	path, err := p.memory.path()
	if err != nil {
		return err
	}
	frame := beginFrame(nil, kindMemory)
	frame = order.AppendUint64(frame, uint64(2*slot))
	frame = append(order.AppendUint32(frame, uint32(len(path))), path...)
	_, err = p.in.Write(endFrame(frame))
	return err
}

// spawn starts the program in its own process group, with pipes for its input and outputs, and the goroutines that read
// stderr and wait for its exit.
func (p *process) spawn() (err error) {
	procgroup.Separate(p.cmd)
	out, write, err := os.Pipe()
	if err != nil {
		return err
	}
	errOut, errIn, err := os.Pipe()
	if err != nil {
		return errors.Join(err, out.Close(), write.Close())
	}
	p.cmd.Stdout, p.cmd.Stderr, p.out, p.read = write, errIn, out, bufio.NewReader(out)
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	_, _ = write.Close(), errIn.Close() // the program has inherited them
	if err != nil {
		return errors.Join(err, out.Close(), errOut.Close())
	}
	go func() {
		defer close(p.stderrDone)
		_, _ = io.Copy(p.stderr, errOut)
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
	return nil
}

// withDeadline calls f and returns its error. If f takes longer than limit or ctx is cancelled, it kills the program,
// which makes f return, and returns a *timeoutError or ctx.Err().
func (p *process) withDeadline(ctx context.Context, limit time.Duration, f func() error) error {
	late := false
	var mu sync.Mutex
	timer := time.AfterFunc(limit, func() {
		mu.Lock()
		late = true
		mu.Unlock()
		p.kill()
	})
	defer timer.Stop()
	defer context.AfterFunc(ctx, p.kill)()
	err := f()
	if err == nil {
		return nil
	}
	mu.Lock()
	defer mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case late:
		return &timeoutError{limit}
	}
	return err
}

// timeoutError reports that a program gave no answer in time.
type timeoutError struct{ limit time.Duration }

func (e *timeoutError) Error() string { return fmt.Sprintf("it gave no answer within %s", e.limit) }

// send queues a frame for writing. The frame must not change until it is answered. At most two may be unanswered.
func (p *process) send(frame []byte) { p.frames <- frame }

// write writes the queued frames. It runs on its own goroutine, since a program may write an answer before it has read
// the whole frame. It ignores write errors: receive fails instead, as no answer arrives.
func (p *process) write() {
	defer close(p.written)
	for f := range p.frames {
		_, _ = p.in.Write(f)
		p.sent <- struct{}{}
	}
}

// receive reads the answer to the oldest unanswered batch, whose ids start at first, and writes one fitness and one row
// of metrics per evaluation.
func (p *process) receive(ctx context.Context, limit time.Duration, first uint64, fitness, metrics []float64) error {
	return p.withDeadline(ctx, limit, func() (err error) {
		if p.buf, err = readFrame(p.read, p.buf, kindResults); err != nil {
			return err
		}
		<-p.sent          // the whole batch was written, even if the program answered earlier
		p.memory.unlink() // the program has opened the file
		return parseResults(p.buf, first, fitness, metrics)
	})
}

// closeInput closes the program's input, after all queued frames are written or have failed.
func (p *process) closeInput() {
	if p.frames != nil {
		close(p.frames)
		p.in.Close()
		<-p.written
		return
	}
	p.in.Close()
}

// kill kills the program and its process group. Errors are ignored, since it may have exited.
func (p *process) kill() { _ = procgroup.Kill(p.cmd) }

// isOutputEnd reports whether err means that the program closed its output or exited.
func isOutputEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrDeadlineExceeded) ||
		strings.Contains(err.Error(), "broken pipe")
}

// fail ends the program after the error err and waits for its exit. It returns err with the exit status, if the program
// exited by itself, and the tail of its stderr.
func (p *process) fail(err error) error {
	p.closeInput()
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
		err = fmt.Errorf("%w; it said: %s", err, tail)
	}
	return err
}

// wait waits until the program has exited and its stderr is read, then releases its resources. After exitTimeout it
// kills the program.
func (p *process) wait() {
	late := time.AfterFunc(exitTimeout, p.kill)
	defer late.Stop()
	<-p.exited
	<-p.stderrDone
	p.out.Close()
	p.memory.close()
}

// shutdown closes the program's input and waits for its exit.
func (p *process) shutdown() {
	p.closeInput()
	p.wait() // the exit status is ignored
}

// sendBatch sends rows with their seeds for evaluation, with ids from first on. It returns the frame, built in the
// memory of frame, which must not change until it is answered.
func (p *process) sendBatch(frame []byte, first uint64, seeds []int32, rows [][]float32, width int) []byte {
	if p.memory != nil {
		if at, err := p.memory.put(rows); err == nil { // on an error, such as a full file system, use the pipe
			frame = batchFrame(frame, kindShared, first, seeds, nil, width, uint64(at))
			p.send(frame)
			return frame
		}
	}
	frame = batchFrame(frame, kindBatch, first, seeds, rows, width, 0)
	p.send(frame)
	return frame
}

// batchFrame returns a batch frame with ids from first on, in the memory of p. The frame contains the rows or, for
// kindShared, their offset at in shared memory.
func batchFrame(p []byte, kind byte, first uint64, seeds []int32, rows [][]float32, width int, at uint64) []byte {
	p = beginFrame(p, kind)
	p = order.AppendUint32(p, uint32(len(seeds)))
	p = order.AppendUint32(p, uint32(width))
	if kind == kindShared {
		p = order.AppendUint64(p, at)
	}
	for i, s := range seeds {
		p = order.AppendUint64(p, first+uint64(i))
		p = order.AppendUint64(p, uint64(s))
	}
	for _, row := range rows {
		p = engine.AppendFloats(p, row)
	}
	return endFrame(p)
}
