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
	starts   = 4               // tries until a program counts as one that does not start
	farewell = 2 * time.Second // to end by itself once its input has ended
)

// answer is the time within which a program answers hello; tests shorten it.
var answer = 30 * time.Second

// pause is the time after the first start that failed, doubled after each; tests shorten it.
var pause = 100 * time.Millisecond

// process is one running program. It is used by one goroutine.
type process struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *os.File
	read *bufio.Reader // of out
	tail *stderrtail.Tail
	buf  []byte
	next uint64 // id of the next candidate: an answer that was given twice is not taken for that to other candidates

	over chan struct{} // closed when the program has ended, and what it had started with it
	how  *os.ProcessState
	said chan struct{} // closed when all that it said on standard error was read

	greeted greeted
	memory  *shared // nil: parameters go through the pipe

	frames  chan []byte   // to be written; nil until the program has answered hello
	sent    chan struct{} // one for each that is written
	written chan struct{} // closed when all are
}

// start begins a program and greets it.
func start(ctx context.Context, o *Objective) (*process, error) {
	greeting, params, err := hello(&o.Spec)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(o.Command[0], o.Command[1:]...), tail: &stderrtail.Tail{}, over: make(chan struct{}), said: make(chan struct{})}
	if err := p.begin(); err != nil {
		return nil, err
	}
	err = p.within(ctx, answer, func() error {
		if _, err := p.in.Write(greeting); err != nil {
			return err
		}
		if p.buf, err = frame(p.read, p.buf, kindReady); err != nil {
			return err
		}
		if p.greeted, err = ready(p.buf); err != nil || !p.greeted.shared {
			return err
		}
		return p.share(4 * int64(rowsOf(params)) * int64(params))
	})
	if err != nil {
		return nil, p.end(err)
	}
	p.frames, p.sent, p.written = make(chan []byte, 2), make(chan struct{}, 2), make(chan struct{})
	go p.write()
	return p, nil
}

// share tells the program of a file with two slots of so many bytes. Where there can be none its batches come as those
// of others do.
func (p *process) share(slot int64) error {
	if p.memory = share(slot); p.memory == nil {
		return nil
	}
	path, err := p.memory.path()
	if err != nil {
		return err
	}
	frame := begin(nil, kindMemory)
	frame = order.AppendUint64(frame, uint64(2*slot))
	frame = append(order.AppendUint32(frame, uint32(len(path))), path...)
	_, err = p.in.Write(end(frame))
	return err
}

// begin starts the program with pipes of its own, which are read to their end.
func (p *process) begin() (err error) {
	procgroup.Separate(p.cmd)
	out, write, err := os.Pipe()
	if err != nil {
		return err
	}
	said, speak, err := os.Pipe()
	if err != nil {
		return errors.Join(err, out.Close(), write.Close())
	}
	p.cmd.Stdout, p.cmd.Stderr, p.out, p.read = write, speak, out, bufio.NewReader(out)
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	_, _ = write.Close(), speak.Close() // the program has them
	if err != nil {
		return errors.Join(err, out.Close(), said.Close())
	}
	go func() {
		defer close(p.said)
		_, _ = io.Copy(p.tail, said)
		said.Close()
	}()
	go func() {
		defer close(p.over)
		p.how, _ = p.cmd.Process.Wait()
		p.kill() // what it has started would hold its output open, and go on for nobody
		// and what has left its group is not waited for: what was written before can be read at once
		_, _ = out.SetReadDeadline(time.Now().Add(farewell)), said.SetReadDeadline(time.Now().Add(farewell))
	}()
	return nil
}

// within kills the program where f takes too long, or ctx ends.
func (p *process) within(ctx context.Context, limit time.Duration, f func() error) error {
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
		return &lateError{limit}
	}
	return err
}

// lateError says that a program gave no answer in time.
type lateError struct{ limit time.Duration }

func (e *lateError) Error() string { return fmt.Sprintf("it gave no answer within %s", e.limit) }

// send has a batch written, in time; it must not change until it is answered. At most two may be unanswered.
func (p *process) send(frame []byte) { p.frames <- frame }

// write writes what is sent, beside whoever reads: a program may write before it has read all. An error shows where the
// answer is missed.
func (p *process) write() {
	defer close(p.written)
	for f := range p.frames {
		_, _ = p.in.Write(f)
		p.sent <- struct{}{}
	}
}

// receive takes the answer to the batch that was sent first and has none, whose ids are those from first on. metrics
// has a row for each.
func (p *process) receive(ctx context.Context, limit time.Duration, first uint64, fitness, metrics []float64) error {
	return p.within(ctx, limit, func() (err error) {
		if p.buf, err = frame(p.read, p.buf, kindResults); err != nil {
			return err
		}
		<-p.sent          // one that answers before it has read does not come off with it
		p.memory.unlink() // whoever answers has opened it
		return results(p.buf, first, fitness, metrics)
	})
}

// close ends the program's input.
func (p *process) close() {
	if p.frames != nil {
		close(p.frames)
		p.in.Close()
		<-p.written
		return
	}
	p.in.Close()
}

// kill ends the program, and what it has started, where it stands.
func (p *process) kill() { _ = procgroup.Kill(p.cmd) } // it may have ended

// ended says that an error is the end of the program's output.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrDeadlineExceeded) || strings.Contains(err.Error(), "broken pipe")
}

// end kills the program and says why it came to that.
func (p *process) end(err error) error {
	p.close()
	if !ended(err) {
		p.kill()
	}
	p.wait()
	if ended(err) {
		err = errors.New("it ended without an answer")
		if p.how != nil && !p.how.Success() {
			err = fmt.Errorf("it ended without an answer: %s", p.how)
		}
	}
	if said := p.tail.Last(); said != "" {
		err = fmt.Errorf("%w; it said: %s", err, said)
	}
	return err
}

// wait is over when the program is, and all that it said was read; it is killed where it takes its time.
func (p *process) wait() {
	late := time.AfterFunc(farewell, p.kill)
	defer late.Stop()
	<-p.over
	<-p.said
	p.out.Close()
	p.memory.close()
}

// leave lets the program end by itself: its input has ended.
func (p *process) leave() {
	p.close()
	p.wait() // what it thinks of its end is no result
}

// batch has rows with their seeds evaluated, under the ids from first on. frame is memory for it.
func (p *process) batch(frame []byte, first uint64, seeds []int32, rows [][]float32, width int) []byte {
	if p.memory != nil {
		if at, err := p.memory.put(rows); err == nil { // else it is full, and the pipe is not
			frame = frameOf(frame, kindShared, first, seeds, nil, width, uint64(at))
			p.send(frame)
			return frame
		}
	}
	frame = frameOf(frame, kindBatch, first, seeds, rows, width, 0)
	p.send(frame)
	return frame
}

// frameOf is a batch of a kind with the ids from first on, in the memory of p: with its rows, or where in shared memory
// they begin.
func frameOf(p []byte, kind byte, first uint64, seeds []int32, rows [][]float32, width int, at uint64) []byte {
	p = begin(p, kind)
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
	return end(p)
}
