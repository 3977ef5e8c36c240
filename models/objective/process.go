package objective

import (
	"context"
	"time"

	"brood/models/engine"
	"brood/models/subprocess"
)

const maxStarts = 4 // attempts to start a program

// environment is the variable that programs find in their environment: spec if they are to print their parameters, else
// 1.
const environment = "BROOD_OBJECTIVE"

// helloTimeout is the time in which a program must answer hello. Tests shorten it.
var helloTimeout = 30 * time.Second

// restartDelay is the delay after the first failed start; it doubles after each further one. Tests shorten it.
var restartDelay = 100 * time.Millisecond

// process is one running program. It is used from one goroutine.
type process struct {
	*subprocess.Process
	buf    []byte
	next   uint64 // next unused evaluation id; ids are unique, so that a duplicate answer is detected
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
	p := &process{}
	if p.Process, err = subprocess.Start(o.Command, []string{environment + "=1"}); err != nil {
		return nil, err
	}
	err = p.WithDeadline(ctx, helloTimeout, func() error {
		if _, err := p.In.Write(greeting); err != nil {
			return err
		}
		if p.buf, err = subprocess.ReadFrame(p.Out, p.buf, kindReady, page); err != nil {
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
	frame := subprocess.BeginFrame(nil, kindMemory)
	frame = order.AppendUint64(frame, uint64(2*slot))
	frame = append(order.AppendUint32(frame, uint32(len(path))), path...)
	_, err = p.In.Write(subprocess.EndFrame(frame))
	return err
}

// send queues a frame for writing. The frame must not change until it is answered. At most two may be unanswered.
func (p *process) send(frame []byte) { p.frames <- frame }

// write writes the queued frames. It runs on its own goroutine, since a program may write an answer before it has read
// the whole frame. It ignores write errors: receive fails instead, as no answer arrives.
func (p *process) write() {
	defer close(p.written)
	for f := range p.frames {
		_, _ = p.In.Write(f)
		p.sent <- struct{}{}
	}
}

// receive reads the answer to the oldest unanswered batch, whose ids start at first, and writes one fitness and one row
// of metrics per evaluation.
func (p *process) receive(ctx context.Context, limit time.Duration, first uint64, fitness, metrics []float64) error {
	return p.WithDeadline(ctx, limit, func() (err error) {
		if p.buf, err = subprocess.ReadFrame(p.Out, p.buf, kindResults, page); err != nil {
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
		p.In.Close()
		<-p.written
	}
}

// fail ends the program after the error err and waits for its exit, see [subprocess.Process.Fail].
func (p *process) fail(err error) error {
	p.closeInput()
	defer p.memory.close()
	return p.Fail(err)
}

// shutdown closes the program's input and waits for its exit.
func (p *process) shutdown() {
	p.closeInput()
	p.Shutdown()
	p.memory.close()
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
	p = subprocess.BeginFrame(p, kind)
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
	return subprocess.EndFrame(p)
}
