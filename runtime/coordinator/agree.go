package coordinator

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/event"
)

// reached is how far a worker reports that a grant went.
type reached struct {
	to       uint64
	ended    bool
	progress event.Progress
}

// claim is what all workers must report alike of a grant.
type claim struct {
	reached
	shared string // digests of the shared rows, in the order of their names
}

// claim is what the worker of a place claims.
func (c *Coordinator) claim(o *outstanding, place int) claim {
	var shared strings.Builder
	shared.Grow(32 * len(c.shared))
	for _, sum := range o.sums[c.from[place]:][:len(c.shared)] {
		shared.Write(sum[:])
	}
	return claim{o.reached[place], shared.String()}
}

// claims says whether the worker of a place claims that.
func (c *Coordinator) claims(o *outstanding, place int, k claim) bool {
	if o.reached[place] != k.reached {
		return false
	}
	for i, sum := range o.sums[c.from[place]:][:len(c.shared)] {
		if string(sum[:]) != k.row(i) {
			return false
		}
	}
	return true
}

// row is the digest of a shared row.
func (k claim) row(i int) string { return k.shared[32*i : 32*(i+1)] }

// differ names the first thing in which two claims differ.
func (c *Coordinator) differ(a, b claim) string {
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

// agree believes the report that more than half of a grant's workers give, whoever has members; those that differ from
// it are put out. Where no report has that many nobody is believed, and the run pauses. ok says that there is nothing
// to do, and all may be committed.
func (c *Coordinator) agree(o *outstanding) (fx []Effect, ok bool) {
	all := o.reached
	if !o.differ && c.checkProgress(all[0].to, all[0].progress) == nil { // as it nearly always is
		return c.account(&o.sum, all[0].to), true
	}
	workers := c.hosting.Workers
	claims, votes, believed := make([]claim, len(all)), map[claim]int{}, -1
	for i := range all {
		claims[i] = c.claim(o, i)
		if votes[claims[i]]++; 2*votes[claims[i]] > len(workers) {
			believed = i
		}
	}
	if believed < 0 {
		other := slices.IndexFunc(claims, func(k claim) bool { return k != claims[0] })
		return c.doubt(workers, fmt.Sprintf("differ in %s after round %d, and no more than half of them agree", c.differ(claims[0], claims[other]), all[0].to)), false
	}
	first := all[believed]
	var out []Lost
	for i, w := range workers {
		if claims[i] != claims[believed] {
			out = append(out, Lost{w, fmt.Sprintf("it differs from most others in %s after round %d", c.differ(claims[believed], claims[i]), first.to)})
		} else if err := c.checkProgress(all[i].to, all[i].progress); err != nil { // of what was committed since it came
			out = append(out, Lost{w, err.Error()})
		}
	}
	if len(out) > 0 {
		return c.fence(out...), false
	}
	return c.account(&o.sum, first.to), true
}

// account says once of an algorithm that its bytes are not those that it predicts. The state is what all agree on, so
// the run goes on.
func (c *Coordinator) account(sum *sum, to uint64) []Effect {
	op, sent, predicted := c.unaccounted(sum.sent, sum.predicted)
	if op == "" || c.misjudged[c.alg.Name] {
		return nil
	}
	c.misjudged[c.alg.Name] = true
	return []Effect{c.alert(event.LevelWarning, event.AlertBytes, fmt.Sprintf("Bytes of %s predicts %d bytes for %s up to round %d, and its workers sent %d: correct that formula; where it is right, a worker (of %s) counts wrongly, or lies. The run goes on; its bytes are not compared any more",
		c.alg.Name, predicted, op, to, sent, list(c.hosting.Workers)), engine.None)}
}

// unaccounted is the first operation whose bytes, summed over workers, are not those that were predicted; "" where all
// are.
func (c *Coordinator) unaccounted(all, want optim.Ledger) (op optim.Op, sent, predicted int64) {
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

// doubt throws the rounds in progress away and pauses: one of these workers lies or has failed, and the core cannot
// know which.
func (c *Coordinator) doubt(workers []int, said string) []Effect {
	text := fmt.Sprintf("workers %s %s: one of them lies, or its memory failed; end one of them (:kill N) or let others join, and resume; the rounds after %d are done again",
		list(workers), said, c.committed)
	c.granted = c.committed
	clear(c.done)
	if c.change == nil {
		c.change = &change{alg: c.alg.Name, members: c.roster.Members, cause: event.CauseRestore, note: "back to the last round that all agreed on"}
	}
	return append(c.halt(event.PauseDisagree, text, engine.None), c.reshape()...)
}

// list names workers: "0, 2 and 3".
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
