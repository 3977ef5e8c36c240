package cli

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"brood/runtime/event"
)

// TestPlainLinesAreInOrder: an evaluation is told after the commit whose rounds it lies in, and its line stands before that of the commit.
func TestPlainLinesAreInOrder(t *testing.T) {
	var out strings.Builder
	p := &plainPrinter{out: &out, tally: newTally()}
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
