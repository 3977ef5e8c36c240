package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"brood/runtime/coordinator"
	"brood/runtime/event"
)

func commit(to, samples uint64, took time.Duration) event.Record {
	return event.Record{Commit: &event.Commit{To: to, Progress: event.Progress{Rounds: to, Samples: samples}, Nanos: int64(took)}}
}

// TestSpeedOfRounds: the speed is that of the rounds; an hour's wait for workers, or of a paused run, is no part of it.
func TestSpeedOfRounds(t *testing.T) {
	m := newTally()
	m.config.Data = "glyphs"
	m.began = time.Now().Add(-time.Hour)
	m.record(event.Record{Plan: &event.Plan{}})
	m.record(commit(1, 300, time.Second))
	m.record(commit(2, 600, 2*time.Second))
	if got := m.rate(event.Progress{Rounds: 2, Samples: 600}); got != "200 samples/s" {
		t.Errorf("%s, want 200 samples/s", got)
	}
	m.record(commit(3, 900, 3*time.Second))
	m.record(event.Record{Plan: &event.Plan{At: 2}}) // which are done again, faster
	m.record(commit(3, 900, time.Second))
	if got := m.rate(event.Progress{Rounds: 3, Samples: 900}); got != "225 samples/s" {
		t.Errorf("%s after going back, want 225 samples/s", got)
	}
	if sum := m.finish(coordinator.Exit{}); sum.SamplesPerSecond != 225 || sum.Seconds > 3000 {
		t.Errorf("%v samples/s in %v s, want 225 and no hour", sum.SamplesPerSecond, sum.Seconds)
	}
}

// TestTestedRound: the test error is the newest of a round that is part of the run, and is told with its round where the
// run has gone on.
func TestTestedRound(t *testing.T) {
	tested := func(round uint64, percent float64) event.Record {
		return event.Record{Evaluation: &event.Evaluation{Round: round, TestError: percent}}
	}
	var out bytes.Buffer
	p := &plainPrinter{out: &out, tally: newTally()}
	said := func() string {
		out.Reset()
		p.end(coordinator.Exit{Phase: event.Stopped})
		for line := range strings.Lines(out.String()) {
			if text, ok := strings.CutPrefix(line, "  test error   "); ok {
				return strings.TrimSpace(text)
			}
		}
		return ""
	}
	for _, step := range []struct {
		records []event.Record
		want    string
	}{
		{[]event.Record{commit(5, 1, 1)}, ""},
		{[]event.Record{commit(10, 1, 1), tested(10, 4)}, "4.00 %"},
		{[]event.Record{commit(15, 1, 1)}, "4.00 %, of round 10"},
		{[]event.Record{commit(20, 1, 1), tested(20, 3)}, "3.00 %"},
		{[]event.Record{{Plan: &event.Plan{At: 12}}, commit(13, 1, 1)}, "4.00 %, of round 10"},
		{[]event.Record{{Plan: &event.Plan{At: 8}}, commit(9, 1, 1)}, ""},
	} {
		for _, r := range step.records {
			p.record(r)
		}
		if got := said(); got != step.want {
			t.Errorf("after %d rounds it says %q, want %q", p.sum.Rounds, got, step.want)
		}
		if (p.sum.TestError == nil) != (step.want == "") {
			t.Errorf("after %d rounds the summary has %v", p.sum.Rounds, p.sum.TestError)
		}
	}
}
