package cli

import (
	"strings"
	"testing"
	"time"

	"brood/runtime/archive"

	"brood/runtime/view"
)

// TestPlainReportsWaits: during a long wait for the first round, lines report what workers do, but not every
// second.
func TestPlainReportsWaits(t *testing.T) {
	var out strings.Builder
	p := &plainPrinter{out: &out, Tally: archive.NewTally()}
	now := time.Unix(1e9, 0)
	for i := range 60 {
		now = now.Add(time.Second)
		d := &view.Doing{
			Stage:   view.StageMembers,
			Done:    200 * i,
			Of:      4096,
			Members: 4096,
			For:     time.Duration(i) * time.Second,
		}
		if i > 18 {
			d = &view.Doing{
				Stage:   view.StageRound,
				Round:   1,
				Done:    100 * (i - 18),
				Of:      4096,
				Members: 4096,
				For:     time.Duration(i-18) * time.Second,
			}
		}
		p.printWait(d, now)
	}
	p.last = now // a line of a round
	p.printWait(&view.Doing{Stage: view.StageRound, Round: 2, For: 20 * time.Second}, now.Add(time.Second))
	p.printWait(nil, now.Add(time.Minute))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 6 || lines[0] != "brood: preparing 4 096 members: 400 initialised, 2.0 s" ||
		lines[2] != "brood: round 1: 1 000 of 4 096 members done, 10 s" {
		t.Errorf("%d lines:\n%s", len(lines), out.String())
	}
}
