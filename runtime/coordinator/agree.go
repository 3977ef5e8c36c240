package coordinator

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/event"
	"brood/runtime/message"
)

// claim is the part of a Done report on which all workers of a grant must agree.
type claim struct {
	to       uint64
	ended    bool
	progress event.Progress
	shared   string // digests of the shared rows, in the order of their names
}

// claimOf returns the claim of a report. The first shared of its digests belong to shared rows.
func claimOf(d *message.Done, shared int) claim {
	var sums strings.Builder
	for _, x := range d.Digests[:shared] {
		sums.Write(x.Sum[:])
	}
	return claim{d.To, d.Ended, d.Progress, sums.String()}
}

// matches reports whether d makes this claim.
func (k *claim) matches(d *message.Done) bool {
	if d.To != k.to || d.Ended != k.ended || d.Progress != k.progress {
		return false
	}
	for i := range len(k.shared) / 32 {
		if sum := &d.Digests[i].Sum; string(sum[:]) != k.row(i) {
			return false
		}
	}
	return true
}

// claimIndex returns the 1-based index of d's claim in o.claims. A claim that is new is appended.
func (o *outstanding) claimIndex(d *message.Done, shared int) int {
	if len(o.claims) == 0 || !o.claims[0].matches(d) {
		k := claimOf(d, shared)
		if at := slices.Index(o.claims, k); at >= 0 {
			return at + 1
		}
		o.claims = append(o.claims, k)
		return len(o.claims)
	}
	return 1
}

// row returns the digest of the i-th shared row.
func (k claim) row(i int) string { return k.shared[32*i : 32*(i+1)] }

// firstDifference names the first field in which two claims differ, for an error message.
func (c *Coordinator) firstDifference(a, b claim) string {
	switch {
	case a.to != b.to || a.ended != b.ended:
		return "the round to stop at"
	case a.progress != b.progress:
		return "the progress that is counted"
	}
	for i, row := range c.shared {
		if a.row(i) != b.row(i) {
			return "block " + strings.TrimSuffix(row, "/shared")
		}
	}
	return "nothing"
}

// agree compares the reports of a complete grant that was examined. If they are all equal and the progress is
// plausible, ok is true and the grant may be committed. If they differ, it trusts none and pauses the run: it does not
// count votes, since wrong frames of one worker can give several honest ones wrong states.
func (c *Coordinator) agree(o *outstanding) (fx []Effect, ok bool) {
	k := &o.claims[0]
	if len(o.claims) > 1 {
		text := fmt.Sprintf("differ in %s after round %d", c.firstDifference(*k, o.claims[1]), k.to)
		return c.pauseDisagree(c.hosting.Workers, text), false
	}
	if err := c.checkProgress(k.to, k.progress); err != nil { // again: other grants may have been committed since
		var out []Lost
		for _, w := range c.hosting.Workers {
			out = append(out, Lost{w, err.Error()})
		}
		return c.evict(out...), false
	}
	return c.checkBytes(&o.sum, k.to), true
}

// checkBytes warns once per algorithm that the bytes sent differ from the bytes that Algorithm.Bytes predicts. The run
// continues, since all workers agree on the state.
func (c *Coordinator) checkBytes(sum *sum, to uint64) []Effect {
	op, sent, predicted := c.bytesMismatch(sum.sent, sum.predicted)
	if op == "" || c.bytesWarned[c.alg.Name] {
		return nil
	}
	c.bytesWarned[c.alg.Name] = true
	text := fmt.Sprintf("Bytes of %s predicts %d bytes for %s up to round %d, and its workers sent %d: "+
		"correct that formula; if it is right, a worker (of %s) counts or reports wrongly. "+
		"The run continues; its bytes are no longer compared",
		c.alg.Name, predicted, op, to, sent, list(c.hosting.Workers))
	return []Effect{c.alert(event.LevelWarning, event.AlertBytes, text, engine.None)}
}

// bytesMismatch returns the first operation whose bytes, summed over workers, differ from the prediction. op is "" if
// there is none or if the algorithm predicts no bytes.
func (c *Coordinator) bytesMismatch(all, want collective.Ledger) (op collective.Op, sent, predicted int64) {
	if c.alg.Bytes == nil {
		return "", 0, 0
	}
	for _, op := range slices.Sorted(maps.Keys(all)) {
		if all[op] != want[op] {
			return op, all[op], want[op]
		}
	}
	for _, op := range slices.Sorted(maps.Keys(want)) {
		if all[op] != want[op] {
			return op, all[op], want[op]
		}
	}
	return "", 0, 0
}

// pauseDisagree discards the rounds in progress and pauses the run: at least one of these workers is faulty, and the
// core cannot know which. difference completes the sentence "workers 0 and 1 ...".
func (c *Coordinator) pauseDisagree(workers []int, difference string) []Effect {
	text := fmt.Sprintf("workers %s %s: one of them reports wrongly, or its memory failed; "+
		"end one of them (:kill N) or let others join, and resume; the rounds after %d are repeated",
		list(workers), difference, c.committed)
	fx := c.halt(event.PauseDisagree, text, engine.None)
	return append(fx, c.repeatRounds("back to the last round that all agreed on")...)
}

// list joins worker ids for a sentence: "0, 2 and 3".
func list(workers []int) string {
	var b strings.Builder
	for i, w := range workers {
		switch {
		case i > 0 && i == len(workers)-1:
			b.WriteString(" and ")
		case i > 0:
			b.WriteString(", ")
		}
		fmt.Fprint(&b, w)
	}
	return b.String()
}
