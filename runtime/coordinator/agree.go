package coordinator

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/event"
	"brood/runtime/message"
)

// claim is what all workers must report alike of a grant.
type claim struct {
	to       uint64
	ended    bool
	progress event.Progress
	shared   string // digests of the shared rows, in the order of their names
}

// claimOf is what a report claims, which has digests of so many shared rows.
func claimOf(d *message.Done, shared int) claim {
	var sums strings.Builder
	for _, x := range d.Digests[:shared] {
		sums.Write(x.Sum[:])
	}
	return claim{d.To, d.Ended, d.Progress, sums.String()}
}

// of says whether a report claims that.
func (k *claim) of(d *message.Done) bool {
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

// heard is which of the claims a report makes, counted from 1.
func (o *outstanding) heard(d *message.Done, shared int) int {
	if len(o.claims) == 0 || !o.claims[0].of(d) {
		k := claimOf(d, shared)
		if at := slices.Index(o.claims, k); at >= 0 {
			return at + 1
		}
		o.claims = append(o.claims, k)
		return len(o.claims)
	}
	return 1
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
	if k := &o.claims[0]; len(o.claims) == 1 && c.checkProgress(k.to, k.progress) == nil { // as it nearly always is
		return c.account(&o.sum, k.to), true
	}
	workers := c.hosting.Workers
	votes, believed := make([]int, len(o.claims)+1), 0
	for _, k := range o.says {
		if votes[k]++; 2*votes[k] > len(workers) {
			believed = k
		}
	}
	if believed == 0 {
		one, other := o.says[0], slices.IndexFunc(o.says, func(k int) bool { return k != o.says[0] })
		a, b := o.claims[one-1], o.claims[o.says[other]-1]
		return c.doubt(workers, fmt.Sprintf("differ in %s after round %d, and no more than half of them agree", c.differ(a, b), a.to)), false
	}
	most := o.claims[believed-1]
	err := c.checkProgress(most.to, most.progress) // of what was committed since it came
	var out []Lost
	for i, w := range workers {
		if k := o.says[i]; k != believed {
			out = append(out, Lost{w, fmt.Sprintf("it differs from most others in %s after round %d", c.differ(most, o.claims[k-1]), most.to)})
		} else if err != nil {
			out = append(out, Lost{w, err.Error()})
		}
	}
	if len(out) > 0 {
		return c.fence(out...), false
	}
	return c.account(&o.sum, most.to), true
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
