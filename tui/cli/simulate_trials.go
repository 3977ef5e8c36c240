package cli

import (
	"fmt"
	"sync"
	"time"

	"brood/tui/textfmt"
)

// trialProgress is the progress of the executions of a protocol. All executions run concurrently, so the number that
// has ended does not predict the remaining time; the progress therefore includes the parallel time reached.
type trialProgress struct {
	name  string
	total int // executions

	mu    sync.Mutex
	time  float64 // parallel time of the execution that is furthest
	ended int64   // executions
}

// update records that some executions reached a parallel time and that ended more of them are over. It is safe for
// concurrent use.
func (t *trialProgress) update(time float64, ended int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.time, t.ended = max(t.time, time), t.ended+ended
}

func (t *trialProgress) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("%s: %s of %s left at a parallel time of %s", t.name, textfmt.Grouped(int64(t.total)-t.ended),
		textfmt.Count(t.total, "execution"), figure(t.time))
}

// start prints the progress to stderr until the caller calls stop, which waits for the printing goroutine. A terminal
// gets one line that is overwritten every second, other outputs one line every progressPeriod.
func (t *trialProgress) start(s streams) (stop func()) {
	period, format := progressPeriod, "brood: %s\n"
	if s.terminal {
		period, format = time.Second, "\r\033[K%s"
	}
	end := every(period, func(time.Time) { fmt.Fprintf(exact(s.err), format, t) })
	return func() {
		if end(); s.terminal {
			fmt.Fprintf(exact(s.err), format, "")
		}
	}
}
