package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"brood/models/engine"
	"brood/models/noise"
	"brood/models/subprocess"
)

// startTimeout is the time in which a program must describe itself: it imports its libraries and reads its data. Tests
// shorten it.
var startTimeout = 5 * time.Minute

// environment returns the variables to add to the environment of a program. They tell the program that brood started
// it, remove the caret lines from tracebacks and, unless the user has set them, raise thresholds so that glibc keeps
// the memory of activations from one step to the next. Without the thresholds, a step of a convolutional network takes
// up to twice as long because of page faults (BenchmarkTorch).
func environment() []string {
	out := []string{"BROOD_PROGRAM=" + strconv.Itoa(protocolVersion), "PYTHONNODEBUGRANGES=1"}
	for _, x := range [][2]string{
		{"MALLOC_MMAP_THRESHOLD_", "33554432"}, // the largest that all versions take
		{"MALLOC_TRIM_THRESHOLD_", "1073741824"},
	} {
		if os.Getenv(x[0]) == "" {
			out = append(out, x[0]+"="+x[1])
		}
	}
	return out
}

// process is one running program with the file that carries rows. It is used from one goroutine.
type process struct {
	*subprocess.Process
	memory memory
	desc   Description
	limit  time.Duration // of one task
	next   uint64        // id of the next task
	frame  []byte
	buf    []byte
}

// start starts the program, has it describe itself and gives it the shared file. On an error the process is ended.
func start(ctx context.Context, command []string, device string) (*process, error) {
	file, err := newMemory()
	if err != nil {
		return nil, err
	}
	p := &process{memory: memory{file: file}}
	if p.Process, err = subprocess.Start(command, environment(), file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	err = p.WithDeadline(ctx, startTimeout, func() (err error) {
		if _, err := p.In.Write(helloFrame(device)); err != nil {
			return err
		}
		if p.buf, err = subprocess.ReadFrame(p.Out, p.buf, kindDescription, page); err != nil {
			return err
		}
		p.desc, err = parseDescription(p.buf)
		return err
	})
	if err == nil {
		err = p.share()
	}
	if err != nil {
		return nil, p.fail(err)
	}
	p.limit = 600 * time.Second
	if p.desc.Timeout > 0 {
		p.limit = time.Duration(p.desc.Timeout * float64(time.Second))
	}
	return p, nil
}

// share sets the size of the shared file and sends its path and layout to the program.
func (p *process) share() error {
	m, err := p.desc.model()
	if err != nil {
		return err
	}
	p.memory.at = offsetsOf(&m.Layout, p.desc.Steps)
	if err := p.memory.file.Truncate(p.memory.at.size); err != nil {
		return fmt.Errorf("the memory shared with it: %w", err)
	}
	_, err = p.In.Write(memoryFrame(memoryPath, p.memory.at))
	return err
}

// task is one request to a program.
type task struct {
	kind    byte
	key     uint64
	flags   uint32
	batches [][]int32

	next      *engine.Draw    // of kindGradient: a batch to announce; nil for none
	steps     *optimiserSteps // of kindSteps; else nil
	candidate *candidate      // of kindCandidate; else nil

	params, stats       []float32 // in; stats may be empty
	first, second       []float32 // in; moments of kindSteps
	anchor, mean        []float32 // in; of kindSteps with flagAnchored
	state               []uint64  // in; of kindSteps by the program's own optimiser
	outParams, outStats []float32 // out; empty if not wanted
	outGrad             []float32
	outFirst, outSecond []float32
	outMean             []float32
	outState            []uint64
}

// optimiserSteps is the optimiser of a task of steps, see [engine.Steps].
type optimiserSteps struct {
	optimiser                                  string
	keys                                       []uint64 // of each step
	taken                                      uint64   // steps taken before the first of these
	eta, mu, b1, b2, eps, coupled, decay, clip float32
	pull, alpha                                float32
}

// candidate is the address of a candidate's noise, and its signed factor.
type candidate struct {
	key   noise.Key
	noise engine.Noise
	step  float32
}

// do has the program execute t. r.metrics is allocated if it is nil. On an error the process is ended and must not be
// used again.
func (p *process) do(ctx context.Context, t task, r *result) error {
	if err := p.exchange(ctx, t, r); err != nil {
		return p.fail(err)
	}
	return nil
}

func (p *process) exchange(ctx context.Context, t task, r *result) error {
	at := p.memory.at
	if r.metrics == nil {
		r.metrics = make([]float64, len(p.desc.Metrics))
	}
	for _, in := range []placed{
		{t.params, at.params}, {t.stats, at.stats}, {t.first, at.first}, {t.second, at.second},
		{t.anchor, at.anchor}, {t.mean, at.mean},
	} {
		if err := p.memory.write(in.row, in.at); err != nil {
			return err
		}
	}
	if err := p.memory.writeWords(t.state, at.state); err != nil {
		return err
	}
	samples := 0
	for _, b := range t.batches {
		samples += len(b)
	}
	id := p.next
	p.next++
	p.frame = taskFrame(p.frame, id, &t)
	err := p.WithDeadline(ctx, time.Duration(max(1, len(t.batches)))*p.limit, func() (err error) {
		if _, err := p.In.Write(p.frame); err != nil {
			return err
		}
		if p.buf, err = subprocess.ReadFrame(p.Out, p.buf, kindDone, page); err != nil {
			return err
		}
		return parseDone(p.buf, id, samples, r)
	})
	if err != nil {
		return err
	}
	for _, out := range []placed{
		{t.outParams, at.params}, {t.outStats, at.stats}, {t.outGrad, at.grad}, {t.outFirst, at.first},
		{t.outSecond, at.second}, {t.outMean, at.mean},
	} {
		if err := p.memory.read(out.row, out.at); err != nil {
			return err
		}
	}
	return p.memory.readWords(t.outState, at.state)
}

// placed is a row and its byte offset in the shared file. An empty row is neither written nor read.
type placed struct {
	row []float32
	at  int64
}

// fail ends the program after the error err, see [subprocess.Process.Fail].
func (p *process) fail(err error) error {
	defer p.memory.file.Close()
	return p.Fail(err)
}

// shutdown closes the program's input and waits for its exit.
func (p *process) shutdown() {
	p.Shutdown()
	p.memory.file.Close()
}
