package cli

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// TestTrialsProgress: long executions print their progress; on a terminal the last progress line is erased.
func TestTrialsProgress(t *testing.T) {
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
			progress := &trialProgress{name: "leader", total: 20}
			stop := progress.start(streams{err: &err, terminal: c.terminal})
			progress.update(30000, 2)
			progress.update(20000, 1)
			time.Sleep(c.slept)
			stop()
			if got := err.String(); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
