package bench

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"brood/models/native/kernel"
	"brood/runtime/view"
)

// fastest returns the rate of f in calls per second: the best of many intervals within the duration long, since other
// load only slows an interval down.
func fastest(ctx context.Context, long time.Duration, f func() error) (float64, error) {
	if err := f(); err != nil { // warm-up: allocates buffers
		return 0, err
	}
	best, calls := time.Duration(1<<62), 1
	for began := time.Now(); time.Since(began) < long; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		at := time.Now()
		for range calls {
			if err := f(); err != nil {
				return 0, err
			}
		}
		took := time.Since(at)
		if took < 200*time.Microsecond { // too short to measure
			calls *= 2
			continue
		}
		best = min(best, took/time.Duration(calls))
	}
	return 1 / best.Seconds(), nil
}

// machine holds the kernels that a suite measures and the limits of the processor.
type machine struct {
	*kernel.Kernels
	variant   kernel.Variant
	perFigure time.Duration
	report    func(Figure)
}

// newMachine reads the kernel variant from the environment. perFigure is the measuring time of a figure.
func newMachine(perFigure time.Duration, report func(Figure)) (*machine, error) {
	variant, err := kernel.FromEnv()
	if err != nil {
		return nil, err
	}
	k, err := kernel.New(variant)
	return &machine{k, variant, perFigure, report}, err
}

// peaks returns the multiply-add rate of this many concurrent threads, in GFLOP/s.
func (m *machine) peaks(threads int, spell time.Duration) float64 {
	rates := make([]float64, threads)
	var all sync.WaitGroup
	for i := range rates {
		k, err := kernel.New(m.variant)
		if err != nil {
			return 0
		}
		all.Go(func() { rates[i] = k.Peak(spell) })
	}
	all.Wait()
	sum := 0.0
	for _, r := range rates {
		sum += r
	}
	return sum
}

// limit is an upper bound of a figure. rate measures the bound now, in the unit of the figure, over intervals of at
// least spell.
type limit struct {
	name string
	rate func(spell time.Duration) float64
}

// registers returns the limit by register arithmetic of an operation that does work GFLOP per unit.
func (m *machine) registers(work float64) limit {
	return limit{"registers", func(spell time.Duration) float64 { return m.Peak(spell) / work }}
}

// loads returns the limit of a loop by its loads. work is the work of one value, in units of the figure and 1e-9.
func (m *machine) loads(l kernel.Loop, work float64) limit {
	return limit{"loads", func(spell time.Duration) float64 { return m.Loads(l, spell) * work / 1e9 }}
}

// ports returns the limit of a loop by the ports of this core, named by the kind of instruction that limits it.
func (m *machine) ports(l kernel.Loop) limit {
	_, by := m.Ports(l, kernel.Short)
	return limit{"ports: " + by.String(),
		func(spell time.Duration) float64 { rate, _ := m.Ports(l, spell); return rate / 1e9 }}
}

// memory returns the bandwidth limit of an operation that moves this many GB per unit and repeatedly accesses
// operands of this many bytes.
func (m *machine) memory(moved float64, bytes int) limit {
	return limit{"memory of " + view.Size(float64(bytes)),
		func(spell time.Duration) float64 { return m.Stream(bytes, spell) / moved }}
}

// reads returns the limit of an operation that reads this share of the GB that it moves, by loads from operands of this
// many bytes.
func (m *machine) reads(share float64, bytes int) limit {
	return limit{"reads of " + view.Size(float64(bytes)),
		func(spell time.Duration) float64 { return m.Reading(bytes, spell) / share }}
}

// speed is a figure that measure measures: work per second.
type speed struct {
	name, unit string
	work       float64 // of one call, in the unit
	goal       float64 // target of the ratio of the figure to its limit; 0: none
	limits     []limit // the lowest counts; empty: no ratio
	call       func() error
}

// longestSpell bounds the interval over which a limit is measured.
const longestSpell = 50 * time.Millisecond

// measure measures a figure and its limits in alternation, so that both see the same clock frequency and the same
// other load. It reports the medians over those pairs with their scatter. The interval of a limit is as long as one
// call of the figure: the best of some long intervals includes more of what slows both than the best of some short
// ones.
func (m *machine) measure(ctx context.Context, f speed) error {
	if err := f.call(); err != nil { // warm-up: allocates buffers
		return err
	}
	spell := longestSpell // the shortest of three calls, since other load may delay any of them
	for range 3 {
		at := time.Now()
		if err := f.call(); err != nil {
			return err
		}
		spell = min(spell, time.Since(at))
		if spell == longestSpell {
			break
		}
	}
	spell = max(spell, kernel.Short)
	var rates, ratios []float64
	names := map[string]int{}
	for began := time.Now(); len(rates) < 3 || time.Since(began) < m.perFigure && len(rates) < 101; {
		if err := ctx.Err(); err != nil {
			return err
		}
		least, by := math.Inf(1), ""
		for _, l := range f.limits {
			if r := l.rate(spell); r > 0 && r < least {
				least, by = r, l.name
			}
		}
		var failed error
		rate := f.work * kernel.Spell(spell, func() { failed = errors.Join(failed, f.call()) })
		if failed != nil {
			return failed
		}
		rates = append(rates, rate)
		if by != "" {
			ratios = append(ratios, rate/least)
			names[by]++
		}
	}
	x := Figure{Name: f.name, Value: view.Median(rates), Unit: f.unit}
	if len(ratios) > 0 {
		slices.Sort(ratios)
		x.Ratio, x.Goal = view.Median(ratios), f.goal
		x.Scatter = (ratios[(3*len(ratios)-1)/4] - ratios[len(ratios)/4]) / 2
		for name, n := range names {
			if n > names[x.Limit] || n == names[x.Limit] && name < x.Limit {
				x.Limit = name
			}
		}
	}
	m.report(x)
	return nil
}

// filledFloats allocates n values and writes them: pages that were never written all map to one page of zeros.
func filledFloats(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i%7) - 3
	}
	return x
}

// gigabytes returns the size of this many float32 values, in GB.
func gigabytes(floats int) float64 { return 4e-9 * float64(floats) }

// limits reports each limit of the machine by itself.
func (m *machine) limits() {
	m.report(Figure{Name: "clock", Value: m.Clock(false), Unit: "GHz"})
	m.report(Figure{Name: "clock among vector instructions", Value: m.Clock(true), Unit: "GHz"})
	for _, bytes := range []int{16 << 10, 512 << 10, 8 << 20, 192 << 20} {
		m.report(Figure{Name: "memory of " + view.Size(float64(bytes)), Value: m.Stream(bytes, kernel.Short), Unit: "GB/s"})
	}
	for o := range kernel.Ops {
		if r := m.Issue(o, kernel.Short); r > 0 {
			m.report(Figure{Name: o.String() + " alone", Value: r / 1e9, Unit: "G vectors/s"})
		}
	}
	m.report(Figure{Name: "registers, " + m.variant.String(), Value: m.Peak(kernel.Short), Unit: "GFLOP/s"})
}
