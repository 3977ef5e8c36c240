package kernel

import "time"

// Op is a kind of vector instruction, by the execution unit.
type Op uint8

const (
	MultiplyAdd Op = iota // of floats: fused or one of both, and conversions from integers
	Multiply              // of integers
	Shift                 // of integers
	Root                  // square roots of floats
	Dot                   // products of bytes, summed by fours
	Logic                 // the rest: logic and addition of integers, moves within and between vectors
	Load                  // of any instruction, from the first-level cache; prefetches too
	Ops
)

func (o Op) String() string {
	names := [Ops]string{"multiply-adds", "integer multiplies", "shifts", "roots", "byte products", "instructions", "loads"}
	return names[o]
}

// Spell returns the rate of f in calls per second: the best of five runs of at least least each, or of fewer if they
// take fifty times that together. Other load on the machine only slows a run down.
func Spell(least time.Duration, f func()) float64 {
	best, calls, began := time.Duration(1<<62), 1, time.Now()
	for spells := 0; spells < 5 && (spells == 0 || time.Since(began) < 50*least); {
		at := time.Now()
		for range calls {
			f()
		}
		took := time.Since(at)
		if took < least { // too short to measure
			calls *= 2
			continue
		}
		best = min(best, took/time.Duration(calls))
		spells++
	}
	return float64(time.Second) / float64(best)
}

// Short is the minimum time of a run: below it the clock's resolution shows. Measure a limit in runs as long as those
// of the figure that it is compared with, since longer runs are disturbed more.
const Short = 100 * time.Microsecond

// Issue returns how many independent vector instructions of a kind, only loads with memory access, this core executes
// per second, in runs of at least least: the limit of its ports. It returns 0 if the variant has no loop that measures
// it.
func (k *Kernels) Issue(o Op, least time.Duration) float64 {
	loop := k.isa.issue[o]
	if loop == nil || o == Dot && k.isa.bytes == nil {
		return 0
	}
	const turns = 250
	return Spell(least, func() { loop(turns) }) * turns * float64(k.isa.issueTurn)
}

// Peak returns the multiply-add rate of registers in GFLOP/s, an upper bound for products; 0 for the portable variant.
func (k *Kernels) Peak(least time.Duration) float64 {
	return k.Issue(MultiplyAdd, least) * 2 * float64(k.isa.vector) / 1e9
}

// BytesPeak returns the same for products of bytes, in G multiply-adds per second; 0 if the variant has none.
func (k *Kernels) BytesPeak(least time.Duration) float64 {
	return k.Issue(Dot, least) * float64(k.isa.bytesDot) / 1e9
}

// Stream returns the bandwidth in GB/s of memory for a working set of this many bytes, which may fit into a cache: the
// better of scaling a vector in place and adding another to it, repeatedly. (Writing to a third vector would cause
// hidden reads of it.)
func (k *Kernels) Stream(bytes int, least time.Duration) float64 {
	const piece = 1 << 14
	n := max(bytes/8, 1)
	k.growStream(2 * n)
	best := 0.0
	for _, sweep := range []struct {
		vectors, moved int // moved: of a value
		f              func(x, y []float32)
	}{{1, 2, func(x, _ []float32) { k.Scale(x, 1) }}, {2, 3, func(x, y []float32) { k.Add(x, x, y) }}} {
		x, y := k.stream[:2*n/sweep.vectors], k.stream[(sweep.vectors-1)*n:2*n]
		step, at := min(piece, len(x)), 0
		rate := Spell(least, func() {
			sweep.f(x[at:at+step], y[at:at+step])
			if at += step; at+step > len(x) {
				at = 0
			}
		})
		best = max(best, rate*float64(4*sweep.moved*step)/1e9)
	}
	return best
}

// growStream makes the memory of Stream and Reading at least n elements long.
func (k *Kernels) growStream(n int) {
	if len(k.stream) >= n {
		return
	}
	k.stream = aligned(n)
	for i := range k.stream { // memory that was never written is mapped to one page of zeros
		k.stream[i] = 1
	}
}

// Reading returns the bandwidth in GB/s of loads alone from a working set of this many bytes, which may fit into a
// cache; 0 if the variant has no loop that measures it. A cache that reads and writes at the same time has a greater
// [Kernels.Stream].
func (k *Kernels) Reading(bytes int, least time.Duration) float64 {
	if k.isa.read == nil {
		return 0
	}
	const turn = 8 * 16 // elements that the loop of AVX-512 loads in a turn
	n := max(bytes/4/turn, 1) * turn
	k.growStream(n)
	k.sweep(n)
	k.vec.x[0] = ptr(k.stream, 0)
	return Spell(least, func() { k.isa.read(&k.vec) }) * float64(4*n) / 1e9
}

// Loop is an inner loop whose instructions are counted.
type Loop string

const (
	LoopNormals  Loop = "noiseFill"
	LoopSum      Loop = "noiseSum"
	LoopBytes    Loop = "noiseBytes"
	LoopWholeSum Loop = "noiseWhole"
	LoopMasks    Loop = "drop"
	LoopProduct  Loop = "product" // the largest tile of each
	LoopConv     Loop = "conv"
	LoopWeights  Loop = "dot"
)

// Ports returns how many values of a loop, of noise or multiply-adds, the ports of this core allow per second, and the
// kind of instruction that limits them: each kind separately, and all but loads at the rate of the fastest. It returns
// 0 if instructions are not counted.
func (k *Kernels) Ports(l Loop, least time.Duration) (rate float64, by Op) {
	counts, ok := k.isa.ports[string(l)]
	if !ok {
		return 0, Logic
	}
	all, fastest, seconds := 0.0, 0.0, 0.0
	for o, n := range counts {
		if n == 0 {
			continue
		}
		issue := k.Issue(Op(o), least)
		if Op(o) != Load {
			all, fastest = all+n, max(fastest, issue)
		}
		if n/issue > seconds {
			seconds, by = n/issue, Op(o)
		}
	}
	if all/fastest > seconds {
		seconds, by = all/fastest, Logic
	}
	return 1 / seconds, by
}

// Loads returns how many values of a loop the loads of this core allow per second; 0 if they are not counted. A load of
// a word or a prefetch counts like one of a vector, though some processors do more of them.
func (k *Kernels) Loads(l Loop, least time.Duration) float64 {
	counts, ok := k.isa.ports[string(l)]
	if !ok {
		return 0
	}
	return k.Issue(Load, least) / counts[Load]
}

// Clock returns the frequency of this core in GHz, measured by a chain of dependent additions of one cycle each; with
// wide, between vector instructions of this variant, which slow some CPUs down. It returns 0 if there is no such chain.
func (k *Kernels) Clock(wide bool) float64 {
	if k.isa.chain == nil {
		return 0
	}
	const turns = 2000
	best := time.Duration(1 << 62)
	for range 50 {
		if wide {
			k.isa.issue[MultiplyAdd](10_000)
		}
		began := time.Now()
		k.isa.chain(turns)
		best = min(best, time.Since(began))
	}
	return turns * chainTurn / best.Seconds() / 1e9
}

// chainTurn is the number of additions in a turn of isa.chain.
const chainTurn = 32
