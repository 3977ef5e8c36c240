package program

import (
	"fmt"
	"math"
	"slices"

	"brood/models/engine"
	"brood/models/noise"
	"brood/models/subprocess"
)

// The kinds of frames. docs/programs.md specifies them byte by byte.
const (
	protocolVersion = 2

	// from brood
	kindHello      = 1
	kindMemory     = 2
	kindInit       = 3
	kindGradient   = 4
	kindEvaluate   = 5
	kindStatistics = 6
	kindSteps      = 7
	kindCandidate  = 8

	// from the program
	kindDescription = 65
	kindDone        = 66
)

// page specifies the protocol.
const page = "docs/programs.md"

var order = subprocess.Order

// The flags of a task.
const (
	flagOwnStatistics = 1 // an evaluation normalises by the statistics of the batch
	flagAnchored      = 2 // steps have an anchor and a running mean
	flagCentre        = 4 // the row of parameters is the centre of this candidate and those that follow
	flagParameters    = 8 // a candidate's parameters are written to the row of parameters

	flagAnnounced = 16 // the second batch of a gradient, and the key after it, are those of a later gradient
)

// offsets are the byte offsets in the shared file, each of one row: of the parameters, the statistics, the gradient,
// and those that only a program that takes steps itself has: the moments of optimisers, the anchor, the running mean
// and, if it brings an optimiser, the state; and the size of the file. Rows that are not written take no memory.
type offsets struct{ params, stats, grad, first, second, anchor, mean, state, size int64 }

const alignment = 64 // of each row in the shared file, in bytes

func offsetsOf(l *engine.Layout, steps bool) offsets {
	align := func(n int64) int64 { return (n + alignment - 1) / alignment * alignment }
	o := offsets{stats: align(4 * int64(l.Params))}
	o.grad = o.stats + align(4*int64(l.Stats))
	o.size = o.grad + align(4*int64(l.Params))
	if steps {
		for _, at := range []*int64{&o.first, &o.second, &o.anchor, &o.mean} {
			*at = o.size
			o.size += align(4 * int64(l.Params))
		}
	}
	if l.State > 0 {
		o.state = o.size
		o.size += align(8 * int64(l.State))
	}
	return o
}

func helloFrame(device string) []byte {
	p := subprocess.BeginFrame(nil, kindHello)
	p = order.AppendUint32(p, protocolVersion)
	p = order.AppendUint32(p, uint32(len(device)))
	return subprocess.EndFrame(append(p, device...))
}

func memoryFrame(path string, at offsets) []byte {
	p := subprocess.BeginFrame(nil, kindMemory)
	for _, n := range []int64{at.size, at.params, at.stats, at.grad, at.first, at.second, at.anchor, at.mean} {
		p = order.AppendUint64(p, uint64(n))
	}
	p = order.AppendUint32(p, uint32(len(path)))
	p = append(p, path...)
	if at.state > 0 {
		p = order.AppendUint64(p, uint64(at.state))
	}
	return subprocess.EndFrame(p)
}

// key64 returns a random number that depends on the whole address.
func key64(k noise.Key) uint64 {
	w := k.Words(math.MaxUint32)
	return uint64(w[0])<<32 | uint64(w[1])
}

// optimisers lists the optimisers of steps by their numbers in frames.
var optimisers = []string{"sgd", "adam", "adamw", engine.Program}

const ownOptimisers = 3 // of optimisers, those whose steps brood can take too

// taskFrame returns the frame of a task in the memory of p: its id, a random key, flags, and batches of sample ids; of
// steps, a key for each batch, and the optimiser; of a candidate, the address of its noise.
func taskFrame(p []byte, id uint64, t *task) []byte {
	p = subprocess.BeginFrame(p, t.kind)
	p = order.AppendUint64(p, id)
	p = order.AppendUint64(p, t.key)
	flags, batches := t.flags, t.batches
	if t.next != nil {
		flags, batches = flags|flagAnnounced, [][]int32{t.batches[0], t.next.Batch}
	}
	p = order.AppendUint32(p, flags)
	p = order.AppendUint32(p, uint32(len(batches)))
	for _, b := range batches {
		p = order.AppendUint32(p, uint32(len(b)))
	}
	for _, b := range batches {
		for _, sample := range b {
			p = order.AppendUint32(p, uint32(sample))
		}
	}
	if t.next != nil {
		p = order.AppendUint64(p, key64(t.next.Mask))
	}
	if s := t.steps; s != nil {
		for _, k := range s.keys {
			p = order.AppendUint64(p, k)
		}
		p = order.AppendUint32(p, uint32(slices.Index(optimisers, s.optimiser)))
		p = order.AppendUint64(p, s.taken)
		for _, x := range []float32{
			s.eta, s.mu, s.b1, s.b2, s.eps, s.coupled, s.decay, s.clip, s.pull, s.alpha,
		} {
			p = order.AppendUint32(p, math.Float32bits(x))
		}
	}
	if c := t.candidate; c != nil {
		cipher, counter, form := c.key.Schedule(), c.key.Counter(0), uint32(0)
		if c.noise.Integer {
			form = 1
		}
		for _, w := range []uint32{
			cipher[0], cipher[1], counter[2], counter[3], math.Float32bits(c.step), form, uint32(c.noise.Rank),
		} {
			p = order.AppendUint32(p, w)
		}
	}
	return subprocess.EndFrame(p)
}

// result is the answer to a task.
type result struct {
	loss    float64 // mean of a gradient, sum of an evaluation
	correct uint64
	metrics []float64 // sums
}

// parseDone parses the answer to task id, with room for its metrics in r.
func parseDone(body []byte, id uint64, samples int, r *result) error {
	if want := 24 + 8*len(r.metrics); len(body) != want {
		return fmt.Errorf("its answer has %d bytes, want %d: an id, a loss, a count and %d metrics",
			len(body), want, len(r.metrics))
	}
	if got := order.Uint64(body); got != id {
		return fmt.Errorf("it answered task %d instead of task %d", got, id)
	}
	r.loss = math.Float64frombits(order.Uint64(body[8:]))
	if r.correct = order.Uint64(body[16:]); r.correct > uint64(samples) {
		return fmt.Errorf("it counts %d correct predictions of %d samples", r.correct, samples)
	}
	for i := range r.metrics {
		r.metrics[i] = math.Float64frombits(order.Uint64(body[24+8*i:]))
	}
	return nil
}
