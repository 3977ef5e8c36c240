package axis

import (
	"slices"
	"sort"

	"brood/runtime/event"
)

// maxTicks bounds a clock: a longer run keeps every second one, again and again.
const maxTicks = 2048

// Tick is how far a run was on every axis; all of them grow from tick to tick.
type Tick [Seconds + 1]float64

// Clock tells how far a run was on one axis when it was so far on another. It knows the commits, and takes what lies
// between two of them as even. The zero Clock is of a run that has not begun.
type Clock struct {
	Ticks []Tick `cbor:"0,keyasint,omitempty"` // ascending in rounds
	Every int    `cbor:"1,keyasint,omitempty"` // so many commits are one tick; 0 and 1: each
	Since int    `cbor:"2,keyasint,omitempty"` // commits of the last tick, which moves on until it has all of its own
}

// reached is a tick without what was spent.
func reached(p event.Progress) Tick {
	return Tick{Rounds: float64(p.Rounds), Steps: float64(p.Steps), Samples: float64(p.Samples), Epochs: p.Epochs}
}

// Commit adds what a commit tells.
func (c *Clock) Commit(k *event.Commit) {
	t := reached(k.Progress)
	if n := len(c.Ticks); n > 0 {
		t[Bytes], t[Seconds] = c.Ticks[n-1][Bytes], c.Ticks[n-1][Seconds]
	}
	for _, sent := range k.Sent {
		t[Bytes] += float64(sent)
	}
	t[Seconds] += float64(k.Nanos) / 1e9
	if c.Since > 0 && c.Since < c.Every {
		c.Ticks[len(c.Ticks)-1] = t
	} else {
		c.Ticks, c.Since = append(c.Ticks, t), 0
	}
	c.Since++
	if len(c.Ticks) == maxTicks {
		kept := c.Ticks[:1] // where the run set out
		for i := 2; i < maxTicks; i += 2 {
			kept = append(kept, c.Ticks[i])
		}
		last := c.Ticks[maxTicks-1]
		c.Every, c.Since = 2*max(1, c.Every), 1
		c.Ticks = append(kept, last)
	}
}

// Begin sets where a run sets out: where another one was, or at nothing.
func (c *Clock) Begin(p event.Progress) {
	if len(c.Ticks) == 0 {
		c.Ticks = append(c.Ticks, reached(p))
	}
}

// Back forgets the rounds after one, which are done again.
func (c *Clock) Back(round uint64) {
	x := float64(round)
	if c.End()[Rounds] <= x {
		return
	}
	var t Tick // it may lie between two that were kept
	for a := range t {
		t[a] = c.At(Axis(a), Rounds, x)
	}
	c.Ticks = slices.DeleteFunc(c.Ticks, func(t Tick) bool { return t[Rounds] >= x })
	c.Ticks, c.Since = append(c.Ticks, t), 0
}

// End is the last tick.
func (c *Clock) End() Tick {
	if len(c.Ticks) == 0 {
		return Tick{}
	}
	return c.Ticks[len(c.Ticks)-1]
}

// At is how far the run was on an axis when it was at x on another one, within what the run has done.
func (c *Clock) At(to, from Axis, x float64) float64 {
	n := len(c.Ticks)
	if n == 0 {
		return 0
	}
	i := sort.Search(n, func(i int) bool { return c.Ticks[i][from] >= x })
	switch {
	case i == 0:
		return c.Ticks[0][to]
	case i == n:
		return c.Ticks[n-1][to]
	}
	a, b := c.Ticks[i-1], c.Ticks[i]
	part := (x - a[from]) / (b[from] - a[from])
	return a[to] + part*(b[to]-a[to])
}

// Shift moves an axis on by what a run before this one had done there.
func (c *Clock) Shift(a Axis, by float64) {
	for i := range c.Ticks {
		c.Ticks[i][a] += by
	}
}

// Clone is a clock of its own.
func (c *Clock) Clone() Clock {
	out := *c
	out.Ticks = slices.Clone(c.Ticks)
	return out
}
