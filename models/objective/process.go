package objective

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
	"unicode"

	"brood/models/engine"
)

const (
	starts   = 4                      // tries until a program counts as one that does not start
	pause    = 100 * time.Millisecond // after the first that failed; doubled after each
	answer   = 30 * time.Second       // within which a program answers hello
	farewell = 2 * time.Second        // to end by itself once its input has ended
	tailMost = 2 << 10                // bytes of standard error that are kept
	tellMost = 300                    // of them, in a reason
)

// process is one running program. It is used by one goroutine.
type process struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  io.Reader
	tail *tail
	buf  []byte

	frames  chan []byte   // to be written; nil until the program has answered hello
	sent    chan struct{} // one for each that is written
	written chan struct{} // closed when all are
}

// start begins a program and greets it.
func start(ctx context.Context, o *Objective) (*process, error) {
	greeting, err := hello(&o.Spec)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(o.Command[0], o.Command[1:]...), tail: &tail{}}
	p.cmd.Stderr, p.cmd.WaitDelay = p.tail, farewell
	own(p.cmd)
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.out, err = p.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	err = p.within(ctx, answer, func() error {
		if _, err := p.in.Write(greeting); err != nil {
			return err
		}
		if p.buf, err = frame(p.out, p.buf, kindReady); err != nil {
			return err
		}
		return ready(p.buf)
	})
	if err != nil {
		return nil, p.end(err)
	}
	p.frames, p.sent, p.written = make(chan []byte, 2), make(chan struct{}, 2), make(chan struct{})
	go p.write()
	return p, nil
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
		return fmt.Errorf("it gave no answer within %s", limit)
	}
	return err
}

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

// receive takes the answer to the batch that was sent first and has none.
func (p *process) receive(ctx context.Context, limit time.Duration, fitness []float64) error {
	return p.within(ctx, limit, func() (err error) {
		if p.buf, err = frame(p.out, p.buf, kindResults); err != nil {
			return err
		}
		<-p.sent // one that answers before it has read does not come off with it
		return results(p.buf, fitness)
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
func (p *process) kill() { killAll(p.cmd) }

// end kills the program and says why it came to that.
func (p *process) end(err error) error {
	p.close()
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		p.kill()
	}
	over := time.AfterFunc(farewell, p.kill)
	wait := p.cmd.Wait()
	over.Stop()
	var exit *exec.ExitError
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "broken pipe") {
		err = errors.New("it ended without an answer")
		if errors.As(wait, &exit) {
			err = fmt.Errorf("it ended without an answer: %s", exit)
		}
	}
	if said := p.tail.last(); said != "" {
		err = fmt.Errorf("%w; it said: %s", err, said)
	}
	return err
}

// leave lets the program end by itself: its input has ended.
func (p *process) leave() {
	p.close()
	over := time.AfterFunc(farewell, p.kill)
	defer over.Stop()
	_ = p.cmd.Wait() // what it thinks of its end is no result
}

// tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	p  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.p = append(t.p, p[max(0, len(p)-tailMost):]...)
	t.p = append(t.p[:0], t.p[max(0, len(t.p)-tailMost):]...)
	return len(p), nil
}

// last is the end of it as one line that a terminal can be shown.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for _, l := range strings.Split(strings.ToValidUTF8(string(t.p), ""), "\n") {
		if l = strings.TrimSpace(strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return ' '
		}, l)); l != "" {
			lines = append(lines, l)
		}
	}
	text := []rune(strings.Join(lines, " | "))
	return string(text[max(0, len(text)-tellMost):])
}

// frameOf is rows with their seeds, in the memory of p.
func frameOf(p []byte, seeds []int32, rows [][]float32, width int) []byte {
	p = begin(p, kindBatch)
	p = order.AppendUint32(p, uint32(len(rows)))
	p = order.AppendUint32(p, uint32(width))
	for i, s := range seeds {
		p = order.AppendUint64(p, uint64(i))
		p = order.AppendUint64(p, uint64(s))
	}
	for _, row := range rows {
		p = engine.AppendFloats(p, row)
	}
	return end(p)
}
