package cli

import (
	"fmt"
	"sync"
	"time"
)

// trials is how far the executions of a protocol are. They all run at once, so that how many have ended says little of
// how long the others take; the time that they are at stands beside it.
type trials struct {
	name string
	all  int

	mu    sync.Mutex
	time  float64 // parallel time, of those that are furthest
	ended int64
}

// at hears of a round of some of them.
func (t *trials) at(time float64, ended int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.time, t.ended = max(t.time, time), t.ended+ended
}

func (t *trials) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("%s: %s of %s left at a parallel time of %s", t.name, grouped(int64(t.all)-t.ended),
		plural(t.all, "execution"), figure(t.time))
}

// tell says how far they are, until its result is called: on a terminal in a line that moves, else by one now and then.
func (t *trials) tell(s streams) (silence func()) {
	period, format := progressPeriod, "brood: %s\n"
	if s.terminal {
		period, format = time.Second, "\r\033[K%s"
	}
	over, quiet := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(quiet)
		tick := time.NewTicker(period)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprintf(exact(s.err), format, t)
			case <-over:
				if s.terminal {
					fmt.Fprintf(exact(s.err), format, "")
				}
				return
			}
		}
	}()
	return func() {
		close(over)
		<-quiet
	}
}
