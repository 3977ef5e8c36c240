package kernel

import "time"

// Op is a kind of vector instruction, by what executes it in a core.
type Op uint8

const (
	MultiplyAdd Op = iota // of floats: fused or one of both, and conversions from integers
	Multiply              // of integers
	Shift                 // of integers
	Root                  // square roots of floats
	Dot                   // products of bytes, summed by fours
	Logic                 // the rest: logic and addition of integers, moves within and between vectors
	Ops
)

func (o Op) String() string {
	return [...]string{"multiply-adds", "integer multiplies", "shifts", "roots", "byte products", "instructions"}[o]
}

// Spell is the rate of f, in calls a second: the best of five short spells of at least least each, or of fewer where
// they take fifty times that together. A neighbour on the same machine only ever slows one down.
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

// Short is how long a spell takes at least: below it the clock's own grain shows. A limit that is held beside a figure
// is measured in spells as long as those of the figure, since in a longer one more of what slows both is met.
const Short = 100 * time.Microsecond

// Issue is how many vector instructions of a kind this core does in a second where none waits for another or for
// memory, in spells of at least least: what the ports allow. It is 0 where the variant has no loop that measures it.
func (k *Kernels) Issue(o Op, least time.Duration) float64 {
	loop := k.isa.issue[o]
	if loop == nil || o == Dot && k.isa.bytes == nil {
		return 0
	}
	const turns = 1000
	return Spell(least, func() { loop(turns) }) * turns * float64(k.isa.issueTurn)
}

// Peak is the multiply-add rate of the registers alone in GFLOP/s, which no product exceeds. The portable variant has
// none, and 0 is returned.
func (k *Kernels) Peak(least time.Duration) float64 {
	return k.Issue(MultiplyAdd, least) * 2 * float64(k.isa.vector) / 1e9
}

// BytesPeak is the same of products of bytes, in G multiply-adds a second: 0 where the variant has none.
func (k *Kernels) BytesPeak(least time.Duration) float64 {
	return k.Issue(Dot, least) * float64(k.isa.bytesDot) / 1e9
}

// Stream is what the memory behind so many bytes gives in GB/s, so that a cache serves what fits it: the better of a
// vector that is scaled in place and one that another is added to, again and again. (A result of its own would be read
// before it is written, unseen.)
func (k *Kernels) Stream(bytes int, least time.Duration) float64 {
	const piece = 1 << 14
	n := max(bytes/8, 1)
	if len(k.stream) < 2*n {
		k.stream = aligned(2 * n)
		for i := range k.stream { // memory that was never written is one page of zeros
			k.stream[i] = 1
		}
	}
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

// Drawn is a kind of noise whose instructions are counted.
type Drawn string

const (
	DrawnNormals  Drawn = "noiseFill"
	DrawnSum      Drawn = "noiseSum"
	DrawnBytes    Drawn = "noiseBytes"
	DrawnWholeSum Drawn = "noiseWhole"
	DrawnMasks    Drawn = "drop"
)

// Draws is how many values of a kind of noise the ports of this core allow in a second, and which kind of instruction
// allows no more: each kind alone, and all of them at the rate of the fastest. It is 0 where that is not counted.
func (k *Kernels) Draws(d Drawn, least time.Duration) (rate float64, by Op) {
	counts, ok := k.isa.ports[string(d)]
	if !ok {
		return 0, Logic
	}
	all, fastest, seconds := 0.0, 0.0, 0.0
	for o, n := range counts {
		all += n
		if n == 0 {
			continue
		}
		issue := k.Issue(Op(o), least)
		if fastest = max(fastest, issue); n/issue > seconds {
			seconds, by = n/issue, Op(o)
		}
	}
	if all/fastest > seconds {
		seconds, by = all/fastest, Logic
	}
	return 1 / seconds, by
}

// Clock is that of this core in GHz, by a chain of additions of which each takes a cycle; wide: between vector
// instructions of this variant, under which some processors run slower. It is 0 where there is no such chain.
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

// chainTurn is the additions of a turn of isa.chain.
const chainTurn = 32
