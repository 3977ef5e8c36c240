package compare

import (
	"slices"
	"sort"
	"strings"

	"brood/models/typed"
	"brood/runtime/event"
)

// Axis is what a curve is drawn over.
type Axis int

// The axes: what a round costs differs between runs, and so does which of them is ahead.
const (
	Rounds Axis = iota
	Steps
	Samples
	Epochs
	Bytes   // payload that workers sent for the algorithm
	Seconds // of the workers' rounds: pauses do not count
)

// Axes are their names, in the order of the constants.
var Axes = []string{"round", "step", "sample", "epoch", "byte", "second"}

func (a Axis) String() string { return Axes[a] }

// ParseAxis finds an axis by its name, in the singular or the plural.
func ParseAxis(name string) (Axis, error) {
	for i, n := range Axes {
		if name == n || name == n+"s" {
			return Axis(i), nil
		}
	}
	return 0, typed.Errorf("there is no axis %q: choose one of %s", name, strings.Join(Axes, ", "))
}

// maxTicks bounds a clock: a longer run keeps every second one, again and again.
const maxTicks = 4096

// tick is how far a run was on every axis; all of them grow from tick to tick.
type tick [Seconds + 1]float64

// clock tells how far a run was on one axis when it was so far on another. It knows the commits, and takes what lies
// between two of them as even.
type clock struct {
	ticks []tick // ascending in rounds
	every int    // so many commits are one tick; 0 and 1: each
	since int    // commits of the last tick, which moves on until it has all of its own
}

// reached is a tick without what was spent.
func reached(p event.Progress) tick {
	return tick{Rounds: float64(p.Rounds), Steps: float64(p.Steps), Samples: float64(p.Samples), Epochs: p.Epochs}
}

// commit adds what a commit tells.
func (c *clock) commit(k *event.Commit) {
	t := reached(k.Progress)
	if n := len(c.ticks); n > 0 {
		t[Bytes], t[Seconds] = c.ticks[n-1][Bytes], c.ticks[n-1][Seconds]
	}
	for _, sent := range k.Sent {
		t[Bytes] += float64(sent)
	}
	t[Seconds] += float64(k.Nanos) / 1e9
	if c.since > 0 && c.since < c.every {
		c.ticks[len(c.ticks)-1] = t
	} else {
		c.ticks, c.since = append(c.ticks, t), 0
	}
	c.since++
	if len(c.ticks) == maxTicks {
		kept := c.ticks[:1] // where the run set out
		for i := 2; i < maxTicks; i += 2 {
			kept = append(kept, c.ticks[i])
		}
		last := c.ticks[maxTicks-1]
		c.every, c.since = 2*max(1, c.every), 1
		c.ticks = append(kept, last)
	}
}

// begin sets where a run sets out: where another one was, or at nothing.
func (c *clock) begin(p event.Progress) {
	if len(c.ticks) == 0 {
		c.ticks = append(c.ticks, reached(p))
	}
}

// back forgets the rounds after one, which are done again.
func (c *clock) back(round uint64) {
	x := float64(round)
	if c.end()[Rounds] <= x {
		return
	}
	var t tick // it may lie between two that were kept
	for a := range t {
		t[a] = c.at(Axis(a), Rounds, x)
	}
	c.ticks = slices.DeleteFunc(c.ticks, func(t tick) bool { return t[Rounds] >= x })
	c.ticks, c.since = append(c.ticks, t), 0
}

// end is the last tick.
func (c *clock) end() tick {
	if len(c.ticks) == 0 {
		return tick{}
	}
	return c.ticks[len(c.ticks)-1]
}

// at is how far the run was on an axis when it was at x on another one, within what the run has done.
func (c *clock) at(to, from Axis, x float64) float64 {
	n := len(c.ticks)
	if n == 0 {
		return 0
	}
	i := sort.Search(n, func(i int) bool { return c.ticks[i][from] >= x })
	switch {
	case i == 0:
		return c.ticks[0][to]
	case i == n:
		return c.ticks[n-1][to]
	}
	a, b := c.ticks[i-1], c.ticks[i]
	part := (x - a[from]) / (b[from] - a[from])
	return a[to] + part*(b[to]-a[to])
}

// shift moves an axis on by what a run before this one had done there.
func (c *clock) shift(a Axis, by float64) {
	for i := range c.ticks {
		c.ticks[i][a] += by
	}
}
