package cli

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// Executions that take long tell how far they are, and what they told last on a terminal is wiped away.
func TestTrialsTell(t *testing.T) {
	for _, c := range []struct {
		terminal bool
		slept    time.Duration
		want     string
	}{
		{false, 31 * time.Second, "brood: leader: 17 of 20 executions left at a parallel time of 30 000\nbrood: leader: 17 of 20 executions left at a parallel time of 30 000\n"},
		{false, 14 * time.Second, ""},
		{true, 1500 * time.Millisecond, "\r\033[Kleader: 17 of 20 executions left at a parallel time of 30 000\r\033[K"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var err bytes.Buffer
			told := &trials{name: "leader", all: 20}
			silence := told.tell(streams{err: &err, terminal: c.terminal})
			told.at(30000, 2)
			told.at(20000, 1)
			time.Sleep(c.slept)
			silence()
			if got := err.String(); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
