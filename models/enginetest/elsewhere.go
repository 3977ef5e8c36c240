package enginetest

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"sync"

	"brood/models/engine"
	"brood/models/noise"
)

// Elsewhere wraps an engine to behave like a device: its memory is not host memory, and it works asynchronously. It
// queues tasks and writes and executes them at seeded moments, at the latest at a Read or Wait; until then it poisons
// the tasks' outputs. It counts the traffic, and records as faults of its user double frees, uses after free, and
// memory never freed. Errors of invalid tasks come from a later call, since only the wrapped engine detects them.
type Elsewhere struct {
	engine.Engine
	key     noise.Key
	draws   int
	queue   []func(context.Context) error
	outputs []int64 // bytes of output of each item of the queue
	live    map[*away]engine.Mat
	sticky  error
	faults  []string
	ran     int

	// Fail is called before each task with its number, from 0: its error is a device error, which every later call
	// returns. nil never fails.
	Fail func(task int) error
	mu   sync.Mutex // guards the fields that Traffic and Faults read
	sum  Traffic
}

// Traffic counts the transfers of an engine.
type Traffic struct {
	Wrote, Read int64 // bytes of matrices
	Output      int64 // bytes of task outputs
	Waits       int   // calls of Wait
}

// Less returns the difference to an earlier count.
func (t Traffic) Less(o Traffic) Traffic {
	return Traffic{t.Wrote - o.Wrote, t.Read - o.Read, t.Output - o.Output, t.Waits - o.Waits}
}

// away is a Buffer without host memory.
type away struct{ elements int }

func (a *away) Len() int { return a.elements }

// late is the maximum length of the queue.
const late = 40

// NewElsewhere wraps an engine, which it then owns.
func NewElsewhere(e engine.Engine, seed uint64) *Elsewhere {
	return &Elsewhere{Engine: e, key: noise.Key{Seed: seed, Purpose: noise.Data}, live: map[*away]engine.Mat{}}
}

// Kernels returns the name of the wrapped engine's arithmetic.
func (e *Elsewhere) Kernels() string {
	if k, ok := e.Engine.(interface{ Kernels() string }); ok {
		return k.Kernels()
	}
	return ""
}

// Traffic returns the traffic so far.
func (e *Elsewhere) Traffic() Traffic {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sum
}

// Faults returns the faults of the engine's user; with end, memory that was never freed too.
func (e *Elsewhere) Faults(end bool) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := append([]string(nil), e.faults...)
	if end {
		for a := range e.live {
			out = append(out, fmt.Sprintf("%d elements were never freed", a.elements))
		}
	}
	return out
}

// Live returns the number of allocated elements.
func (e *Elsewhere) Live() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for a := range e.live {
		n += a.elements
	}
	return n
}

func (e *Elsewhere) count(f func(t *Traffic)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f(&e.sum)
}

func (e *Elsewhere) fault(format string, args ...any) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults = append(e.faults, fmt.Sprintf(format, args...))
	return fmt.Errorf(format, args...)
}

// Alloc allocates memory of the wrapped engine.
func (e *Elsewhere) Alloc(rows, cols int) (engine.Mat, error) {
	if e.sticky != nil {
		return engine.Mat{}, e.sticky
	}
	m, err := e.Engine.Alloc(rows, cols)
	if err != nil {
		return m, err
	}
	a := &away{rows * cols}
	e.mu.Lock()
	e.live[a] = m
	e.mu.Unlock()
	return engine.Over(a, 0, rows, cols), nil
}

// Free frees memory after the queued tasks. It ignores a matrix without memory.
func (e *Elsewhere) Free(m engine.Mat) {
	b, _ := m.Behind()
	a, ok := b.(*away)
	if !ok {
		return
	}
	e.mu.Lock()
	inner, ok := e.live[a]
	delete(e.live, a)
	e.mu.Unlock()
	if !ok {
		_ = e.fault("%d elements were freed twice", a.elements)
		return
	}
	e.push(0, func(context.Context) error { e.Engine.Free(inner); return nil })
}

// inner returns the matrix of the wrapped engine.
func (e *Elsewhere) inner(m engine.Mat) (engine.Mat, error) {
	b, at := m.Behind()
	a, ok := b.(*away)
	if !ok {
		return m, nil // without memory: the wrapped engine refuses it
	}
	e.mu.Lock()
	own, ok := e.live[a]
	e.mu.Unlock()
	if !ok {
		return m, e.fault("%d elements were used after they were freed", a.elements)
	}
	to, first := own.Behind()
	return engine.Over(to, first+at, m.Rows, m.Cols), nil
}

func (e *Elsewhere) push(output int64, f func(context.Context) error) {
	e.queue, e.outputs = append(e.queue, f), append(e.outputs, output)
}

// below returns the next seeded number below n.
func (e *Elsewhere) below(n int) int {
	e.draws++
	return e.key.Below(e.draws, n)
}

// run executes the first n items of the queue.
func (e *Elsewhere) run(n int) error {
	for ; n > 0 && e.sticky == nil; n-- {
		f, output := e.queue[0], e.outputs[0]
		e.queue, e.outputs = e.queue[1:], e.outputs[1:]
		if e.sticky = f(context.Background()); e.sticky == nil {
			e.count(func(t *Traffic) { t.Output += output })
		}
	}
	return e.sticky
}

// failed returns the error of asynchronous work: once if the caller caused it, at every call if the device did.
func (e *Elsewhere) failed() error {
	err := e.sticky
	if _, device := err.(*engine.DeviceError); err != nil && !device {
		e.sticky, e.queue, e.outputs = nil, nil, nil
	}
	return err
}

// Write queues a copy of p.
func (e *Elsewhere) Write(ctx context.Context, dst engine.Span, p []byte) error {
	if err := e.ready(ctx); err != nil {
		return err
	}
	inner, err := e.inner(dst.Mat)
	if err != nil {
		return err
	}
	if err := dst.Check(); err != nil {
		return err
	}
	if b, _ := dst.Mat.Behind(); b == nil || len(p) != dst.Bytes() {
		return fmt.Errorf("write: %d bytes into %d of a matrix", len(p), dst.Bytes())
	}
	p, dst.Mat = append([]byte(nil), p...), inner
	e.count(func(t *Traffic) { t.Wrote += int64(len(p)) })
	e.push(0, func(ctx context.Context) error { return e.Engine.Write(ctx, dst, p) })
	return nil
}

// ready returns why a call cannot be accepted.
func (e *Elsewhere) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return e.failed()
}

// Read executes the whole queue first.
func (e *Elsewhere) Read(ctx context.Context, p []byte, src engine.Span) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	inner, err := e.inner(src.Mat)
	if err == nil {
		_ = e.run(len(e.queue))
		err = e.failed()
	}
	if err != nil {
		return err
	}
	src.Mat = inner
	if err := e.Engine.Read(ctx, p, src); err != nil {
		return err
	}
	e.count(func(t *Traffic) { t.Read += int64(len(p)) })
	return nil
}

// Wait executes the whole queue.
func (e *Elsewhere) Wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_ = e.run(len(e.queue))
	e.count(func(t *Traffic) { t.Waits++ })
	if err := e.failed(); err != nil {
		return err
	}
	return e.Engine.Wait(ctx)
}

// Do queues the tasks, and executes a part of the queue.
func (e *Elsewhere) Do(ctx context.Context, tasks ...engine.Task) error {
	if err := e.ready(ctx); err != nil {
		return err
	}
	for _, t := range tasks {
		var wrong error
		inner := mapMatrices(t, func(m engine.Mat) engine.Mat {
			own, err := e.inner(m)
			if err != nil {
				wrong = err
			}
			return own
		})
		if wrong != nil {
			return wrong
		}
		e.push(poison(t), func(ctx context.Context) error {
			if e.Fail != nil {
				if err := e.Fail(e.ran); err != nil {
					return &engine.DeviceError{Device: "elsewhere", Op: fmt.Sprintf("%T", t), Err: err}
				}
			}
			e.ran++
			if err := e.Engine.Do(ctx, inner); err != nil {
				return err
			}
			return e.Engine.Wait(ctx)
		})
	}
	n := e.below(2 * (len(e.queue) + 1)) // half of the time all of it
	_ = e.run(max(min(n, len(e.queue)), len(e.queue)-late))
	return nil
}

// poison overwrites a task's outputs, and returns their size.
func poison(t engine.Task) (bytes int64) {
	v := reflect.ValueOf(t)
	for i := range v.NumField() {
		if !outputs[v.Type().Field(i).Name] {
			continue
		}
		out := v.Field(i)
		bytes += int64(out.Len()) * int64(out.Type().Elem().Size())
		switch out := out.Interface().(type) {
		case []float32:
			fill(out, float32(math.NaN()))
		case []float64:
			fill(out, math.NaN())
		case []int64:
			fill(out, -1<<40)
		case []bool:
			fill(out, false)
		case [][32]byte:
			fill(out, [32]byte{0xde, 0xad})
		default:
			panic(fmt.Sprintf("%T writes out %T", t, out))
		}
	}
	return bytes
}

func fill[T any](v []T, x T) {
	for i := range v {
		v[i] = x
	}
}
