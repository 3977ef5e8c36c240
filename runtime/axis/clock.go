package axis

import (
	"slices"
	"sort"

	"brood/runtime/event"
)

// maxTicks bounds the size of a clock. When it is reached, the clock drops every second tick.
const maxTicks = 2048

// Tick is the progress of a run on every axis. All values increase from tick to tick.
type Tick [Seconds + 1]float64

// Clock converts the position of a run on one axis to another one. It interpolates linearly between commits. The zero
// Clock is that of a run that has not begun.
type Clock struct {
	Ticks []Tick `cbor:"0,keyasint,omitempty"` // ascending in rounds
	Every int    `cbor:"1,keyasint,omitempty"` // commits per tick; 0 means 1
	Since int    `cbor:"2,keyasint,omitempty"` // commits in the last tick, which is updated until it has Every of them
}

// reached returns a tick without bytes and seconds.
func reached(p event.Progress) Tick {
	return Tick{Rounds: float64(p.Rounds), Steps: float64(p.Steps), Samples: float64(p.Samples), Epochs: p.Epochs}
}

// Commit adds a commit.
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
		kept := c.Ticks[:1] // the start of the run
		for i := 2; i < maxTicks; i += 2 {
			kept = append(kept, c.Ticks[i])
		}
		last := c.Ticks[maxTicks-1]
		c.Every, c.Since = 2*max(1, c.Every), 1
		c.Ticks = append(kept, last)
	}
}

// Begin sets the start of the run, unless it is set: the progress of its parent, or zero.
func (c *Clock) Begin(p event.Progress) {
	if len(c.Ticks) == 0 {
		c.Ticks = append(c.Ticks, reached(p))
	}
}

// Back removes the rounds after a round, to which the run rolled back.
func (c *Clock) Back(round uint64) {
	x := float64(round)
	if c.End()[Rounds] <= x {
		return
	}
	var t Tick // interpolated, since the round may be between two ticks
	for a := range t {
		t[a] = c.At(Axis(a), Rounds, x)
	}
	c.Ticks = slices.DeleteFunc(c.Ticks, func(t Tick) bool { return t[Rounds] >= x })
	c.Ticks, c.Since = append(c.Ticks, t), 0
}

// End returns the last tick.
func (c *Clock) End() Tick {
	if len(c.Ticks) == 0 {
		return Tick{}
	}
	return c.Ticks[len(c.Ticks)-1]
}

// At returns the position of the run on the axis to when it was at x on the axis from. Outside the range of the run it
// returns the nearest end.
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

// Shift adds the progress of a parent run to an axis.
func (c *Clock) Shift(a Axis, by float64) {
	for i := range c.Ticks {
		c.Ticks[i][a] += by
	}
}

// Clone returns an independent copy.
func (c *Clock) Clone() Clock {
	out := *c
	out.Ticks = slices.Clone(c.Ticks)
	return out
}
