package gpu

import (
	"encoding/binary"
	"fmt"
	"math"
)

// group is the number of work items in a group of most kernels.
const group = 64

// none is the offset of the list that maps every row to its own number.
const none = math.MaxUint32

// batch is the work of a task: words, sent in one write, and launches that read them.
type batch struct {
	words    []uint32
	launches []launch
	tensor   bool // products and convolutions use tensor cores
}

type launch struct {
	kernel string
	groups [3]int
	size   int
	args   []any
}

// wordsHere is the placeholder for the memory of the batch's words in the arguments of a launch.
type wordsHere struct{}

// list appends words and returns their offset, a multiple of two.
func (b *batch) list(w ...uint32) uint32 {
	if len(b.words)%2 == 1 {
		b.words = append(b.words, 0)
	}
	at := len(b.words)
	b.words = append(b.words, w...)
	return uint32(at)
}

// floats appends the bits of floats and returns their offset.
func (b *batch) floats(v ...float32) uint32 {
	at := b.list()
	for _, x := range v {
		b.words = append(b.words, math.Float32bits(x))
	}
	return at
}

// launch appends a launch over n columns of a number of rows; nothing if either is 0.
func (b *batch) launch(kernel string, n, rows int, args ...any) *batch {
	return b.grid(kernel, [3]int{(n + group - 1) / group, rows, 1}, group, args...)
}

// grid appends a launch with an explicit number and size of groups; nothing if a dimension is 0.
func (b *batch) grid(kernel string, groups [3]int, size int, args ...any) *batch {
	if groups[0] > 0 && groups[1] > 0 && groups[2] > 0 {
		b.launches = append(b.launches, launch{kernel, groups, size, args})
	}
	return b
}

// mostQueued is the number of queued launches after which issue waits for the queue to empty.
const mostQueued = 2000

// MostEntries is the largest number of rows, samples or members in a launch: the limit of devices for the second and
// third grid dimension.
const MostEntries = 65535

// issue sends the words and queues the launches.
func (e *Engine) issue(b *batch) error {
	if e.sticky != nil {
		return e.sticky
	}
	for _, l := range b.launches {
		if n := max(l.groups[1], l.groups[2]); n > MostEntries {
			return fmt.Errorf("%s: %d rows at once are more than the %d of a launch: take more workers", e.dev.Info().Name, n,
				MostEntries)
		}
	}
	if n := len(b.words); n > 0 {
		if n > e.wordRoom {
			if e.words != 0 {
				e.old = append(e.old, e.words)
			}
			e.wordRoom = max(2*n, 1<<12)
			m, err := e.dev.Alloc(4 * e.wordRoom)
			if err != nil {
				e.words, e.wordRoom = 0, 0
				return e.fail("take memory for words", err)
			}
			e.words = m
		}
		p := make([]byte, 0, 4*n)
		for _, w := range b.words {
			p = binary.LittleEndian.AppendUint32(p, w)
		}
		if err := e.fail("send words", e.dev.Write(e.words, 0, p)); err != nil {
			return err
		}
	}
	calls := make([]Call, 0, len(b.launches))
	for _, l := range b.launches {
		for i, a := range l.args {
			if a == (wordsHere{}) {
				l.args[i] = e.words
			}
		}
		k, ok := e.kernels[l.kernel]
		if !ok {
			var err error
			if k, err = e.dev.Kernel(l.kernel); err != nil {
				return e.fail("find a kernel", err)
			}
			e.kernels[l.kernel] = k
		}
		calls = append(calls, Call{k, l.groups, l.size, l.args})
	}
	if err := e.launch(b, calls); err != nil {
		return err
	}
	for _, m := range e.old {
		e.dev.Free(m)
	}
	e.old = e.old[:0]
	if e.queued += len(b.launches); e.queued > mostQueued {
		e.queued = 0
		return e.fail("finish", e.dev.Finish())
	}
	return nil
}

// launch queues the calls of a batch.
func (e *Engine) launch(b *batch, calls []Call) error {
	if s, ok := e.memory.Device.(Sequencer); ok && len(calls) > 1 {
		return e.fail(fmt.Sprintf("launch %d kernels from %s on", len(calls), b.launches[0].kernel), s.Sequence(calls))
	}
	for i, c := range calls {
		if err := e.fail("launch "+b.launches[i].kernel, e.dev.Launch(c.Kernel, c.Groups, c.Size, c.Args...)); err != nil {
			return err
		}
	}
	return nil
}

// leastLog is the initial size of the log in bytes.
const leastLog = 1 << 16

// reserveLog reserves bytes of the log for results of the next batch, at a multiple of eight; read is called with them
// at the next Wait.
func (e *Engine) reserveLog(bytes int, read func(p []byte)) (at uint64, err error) {
	bytes = (bytes + 7) / 8 * 8
	if e.logged+bytes > e.logRoom {
		if err := e.settle(); err != nil {
			return 0, err
		}
		if bytes > e.logRoom {
			if e.log != 0 {
				e.old = append(e.old, e.log)
			}
			e.logRoom = max(leastLog, 2*bytes)
			m, err := e.dev.Alloc(e.logRoom)
			if err != nil {
				e.log, e.logRoom = 0, 0
				return 0, e.fail("take memory for results", err)
			}
			e.log = m
		}
	}
	at = uint64(e.logged)
	e.logged += bytes
	e.readers = append(e.readers, func(p []byte) { read(p[at : at+uint64(bytes)]) })
	return at, nil
}

// settle empties the queue and reads the log.
func (e *Engine) settle() error {
	e.queued = 0
	if e.logged == 0 {
		return e.fail("finish", e.dev.Finish())
	}
	p := make([]byte, e.logged)
	if err := e.fail("read results", e.dev.Read(p, e.log, 0)); err != nil {
		return err
	}
	for _, f := range e.readers {
		f(p)
	}
	e.logged, e.readers = 0, e.readers[:0]
	return nil
}

// ready uploads the tables that all tasks share.
func (e *Engine) ready() error {
	var w []byte
	tile := 0
	for _, t := range e.layout.Tensors {
		e.tiles = append(e.tiles, tile)
		for _, x := range []int{t.Lo, t.Len, t.Cols, tile} {
			w = binary.LittleEndian.AppendUint32(w, uint32(x))
		}
		tile += t.Len / t.Cols * ((t.Cols + 31) / 32)
	}
	if e.tiles = append(e.tiles, tile); 8*tile > math.MaxUint32 {
		return fmt.Errorf("model %s: %d parameters are more than the kernels of this engine count", e.model.Name,
			e.layout.Params)
	}
	m, err := e.dev.Alloc(len(w))
	if err != nil {
		return e.fail("take memory for the layout", err)
	}
	e.table = m
	if err := e.fail("write", e.dev.Write(m, 0, w)); err != nil {
		return err
	}
	return e.upload()
}
