package axis

import (
	"math"
	"math/rand/v2"
	"testing"

	"brood/runtime/event"
)

// TestGoingBackKeepsTheStart: after a rollback in a thinned clock, new ticks follow the target of the rollback.
func TestGoingBackKeepsTheStart(t *testing.T) {
	for _, to := range []int{0, 1000, maxTicks - 3} { // the start, and between two ticks
		var c Clock
		commit := func(r int) {
			c.Commit(&event.Commit{Nanos: 1e9, Progress: event.Progress{Rounds: uint64(r), Samples: uint64(3 * r)}})
		}
		c.Begin(event.Progress{})
		for r := 1; r < maxTicks; r++ {
			commit(r)
		}
		if c.Every < 2 {
			t.Fatal("nothing was thinned out")
		}
		c.Back(uint64(to))
		for r := to + 1; r <= to+20; r++ {
			commit(r)
		}
		if first := c.Ticks[0]; first != (Tick{}) {
			t.Errorf("after going back to %d the start is %v", to, first)
		}
		want := Tick{Rounds: float64(to + 20), Samples: float64(3 * (to + 20)), Seconds: float64(to + 20)}
		if got := c.End(); got != want {
			t.Errorf("after going back to %d the end is %v, want %v", to, got, want)
		}
	}
}

// TestClockIsBounded: a clock has a bounded number of ticks, however long the run, and stays accurate for rounds of
// unequal duration.
func TestClockIsBounded(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var c Clock
	c.Begin(event.Progress{})
	const n = 100_000
	exact := make([]float64, n+1)
	for r := 1; r <= n; r++ {
		nanos := int64(1e6 * (1 + rng.Float64()) * float64(1+r/20_000))
		exact[r] = exact[r-1] + float64(nanos)/1e9
		c.Commit(&event.Commit{Nanos: nanos, Progress: event.Progress{Rounds: uint64(r), Samples: uint64(3 * r)}})
	}
	if len(c.Ticks) > maxTicks || len(c.Ticks) < maxTicks/4 {
		t.Errorf("%d ticks", len(c.Ticks))
	}
	if c.End()[Rounds] != n || c.End()[Samples] != 3*n || math.Abs(c.End()[Seconds]-exact[n]) > 1e-6 {
		t.Errorf("the end is %v", c.End())
	}
	for r := 0; r <= n; r += 997 {
		if got := c.At(Seconds, Rounds, float64(r)); math.Abs(got-exact[r]) > 0.002*exact[n] {
			t.Errorf("round %d after %v s, was %v", r, got, exact[r])
		}
	}
	c.Back(500)
	if end := c.End()[Rounds]; end > 500 || end < 400 {
		t.Errorf("after going back the end is round %v", end)
	}
}

func TestAxesHaveNames(t *testing.T) {
	for i, name := range Names {
		for _, typed := range []string{name, name + "s"} {
			if a, err := Parse(typed); err != nil || a != Axis(i) || a.String() != name {
				t.Errorf("%s is %v, %v", typed, a, err)
			}
		}
	}
	if _, err := Parse("weeks"); err == nil ||
		err.Error() != `no axis "weeks": choose one of round, step, sample, epoch, byte, second` {
		t.Error(err)
	}
	if len(Names) != int(Seconds)+1 {
		t.Error("an axis has no name")
	}
}
