package cli

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"brood/runtime/archive"

	"brood/runtime/coordinator"
	"brood/runtime/event"
)

// TestPlainLinesAreInOrder: an evaluation arrives after the commit of its round, but its line is printed before the
// line of the commit.
func TestPlainLinesAreInOrder(t *testing.T) {
	var out strings.Builder
	p := &plainPrinter{out: &out, Tally: archive.NewTally()}
	for _, to := range []uint64{830, 2622, 4158} {
		p.last = time.Time{} // long ago
		p.record(event.Record{Commit: &event.Commit{To: to, Progress: event.Progress{Rounds: to}}})
		for _, at := range []uint64{688, 1375, 2063, 2750, 4125} {
			if at <= to && at+1792 > to {
				p.record(event.Record{Evaluation: &event.Evaluation{Round: at, TestError: 80}})
			}
		}
	}
	p.flush()
	var rounds []int
	for _, m := range regexp.MustCompile(`(?m)^round +(\d+)`).FindAllStringSubmatch(out.String(), -1) {
		n, _ := strconv.Atoi(m[1])
		rounds = append(rounds, n)
	}
	if len(rounds) != 8 || !slices.IsSorted(rounds) {
		t.Errorf("the lines are of the rounds %v:\n%s", rounds, out.String())
	}
}

func commit(to, samples uint64, took time.Duration) event.Record {
	return event.Record{Commit: &event.Commit{To: to, Progress: event.Progress{Rounds: to, Samples: samples},
		Nanos: int64(took)}}
}

// TestTestedRound: the test error is the newest one of a round that was not rolled back, and is printed with its round
// if later rounds follow.
func TestTestedRound(t *testing.T) {
	tested := func(round uint64, percent float64) event.Record {
		return event.Record{Evaluation: &event.Evaluation{Round: round, TestError: percent}}
	}
	var out bytes.Buffer
	p := &plainPrinter{out: &out, Tally: archive.NewTally()}
	printed := func() string {
		out.Reset()
		p.end(coordinator.Exit{Phase: event.Stopped}, nil)
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
		if got := printed(); got != step.want {
			t.Errorf("after %d rounds it says %q, want %q", p.Sum.Rounds, got, step.want)
		}
		if (p.Sum.TestError == nil) != (step.want == "") {
			t.Errorf("after %d rounds the summary has %v", p.Sum.Rounds, p.Sum.TestError)
		}
	}
}
