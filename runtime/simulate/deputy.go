package simulate

import (
	"maps"
	"slices"
	"sync"

	"brood/optim"
	"brood/optim/collective"
)

// Of a fleet of thousands some workers are simulated, its deputies, and the others do what these do: what one of them
// sends to a deputy leaves between the times at which its two neighbours among the deputies sent theirs, later or
// earlier by what its own pace makes of the computing since its last exchange, and its reports are a deputy's with its
// own members. Every worker draws its own pace, so that the slowest of thousands is as slow as it would be, and where
// rows travel along edges every worker has its own clock (see settle).
//
// What is lost: where all hear from all, a worker that is late is so for one exchange; how much those computed who are
// not simulated is drawn from what deputies did; and what they send holds zeros.

// crowd is who stands for whom.
type crowd struct {
	deputies []int
	weights  []float64 // of each deputy: how many workers it is
	beside   []beside  // of each worker
	nearest  []int32   // the index of each worker's deputy
}

// beside is which deputies a worker lies between, by their indices, and how far from the first to the second. They and
// it are of alike work.
type beside struct {
	low, high int32
	part      float64
}

// fewest is how many deputies a class of workers has at least, so that one stands for what the other receives.
const fewest = 2

// crowdOf chooses deputies, about as many as the configuration says: the worker that leads, those that stand alone, and
// of those with as many members and as many parts of the test set some that lie evenly, from the first to the last. It
// is nil where these are all.
func crowdOf(cfg Config) *crowd {
	n, chunks := cfg.Workers, (cfg.Core.Tests+optim.ScoreChunk-1)/optim.ScoreChunk
	hosting := collective.Place(collective.IDs(cfg.Core.Members), workers(n)).Hosting()
	type kind struct {
		alone        int // the worker, or nobody
		rows, chunks int
	}
	byKind, kinds := map[kind][]int{}, []kind{}
	c := &crowd{beside: make([]beside, n), nearest: make([]int32, n)}
	for w := range n {
		k := kind{nobody, len(hosting.Of(w)), (chunks - w + n - 1) / n}
		if w == 0 || slices.Contains(cfg.Alone, w) {
			k.alone = w
		}
		if byKind[k] == nil {
			kinds = append(kinds, k)
		}
		byKind[k] = append(byKind[k], w)
	}
	for _, k := range kinds {
		all := byKind[k]
		deputies := min(len(all), max(fewest, cfg.Deputies*len(all)/n))
		first := len(c.deputies)
		for d := range deputies {
			c.deputies = append(c.deputies, all[d*(len(all)-1)/max(1, deputies-1)])
		}
		c.weights = append(c.weights, make([]float64, deputies)...)
		for at, w := range all {
			place := float64(at*(deputies-1)) / float64(max(1, len(all)-1))
			low := int(place)
			c.nearest[w] = int32(first + int(place+0.5))
			c.beside[w] = beside{int32(first + low), int32(first + min(low+1, deputies-1)), place - float64(low)}
			c.weights[first+low] += 1 - (place - float64(low))
			c.weights[first+min(low+1, deputies-1)] += place - float64(low)
		}
	}
	if len(c.deputies) == n {
		return nil
	}
	return c
}

func workers(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// standing is where a deputy was when it had sent all of an exchange.
type standing struct {
	at         int64
	since      int64   // when the order came that it is at
	work, took int64   // of its computing since the exchange before: at pace 1, and at its own
	sent       bool    // anything in the exchange
	left       []int64 // when what it sent to each deputy had left, and at its own place what it sent to the next
	edges      []collective.Edge
	bytes      int
}

// Sent implements optim.Teller.
func (n *node) Sent(edges []collective.Edge, bytes int) {
	w := n.world
	if w.crowd == nil {
		return
	}
	n.compute()
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.left[n.index] == 0 { // it is the last: as what it sent before
		n.left[n.index] = n.newest
	}
	n.stood = append(n.stood, standing{n.now, n.began, n.work, n.took, n.sending, slices.Clone(n.left), edges, bytes})
	n.passed++
	n.work, n.took = 0, 0
	clear(n.left)
	for w.settled < w.slowest().passed {
		w.settle(w.settled)
		w.settled++
	}
	for _, other := range w.nodes {
		if other.waits == settling && other.passed <= w.settled {
			other.wake()
		}
	}
}

// Crowded implements optim.Crowd.
func (n *node) Crowded() bool { return n.world.crowd != nil }

// agreed is what deputies worked out alike, the newest first. Where all hear from all they are never far from each
// other; along edges one may lie further behind, works it out again and comes to the same: that costs time alone.
type agreed struct {
	mu   sync.Mutex
	last [4]struct{ key, is any }
}

// Once implements optim.Oncer.
func (n *node) Once(key any, make func() any) any {
	a := &n.world.agreed
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, known := range a.last {
		if known.key == key {
			return known.is
		}
	}
	is := make()
	copy(a.last[1:], a.last[:])
	a.last[0].key, a.last[0].is = key, is
	return is
}

// slowest is the deputy that has passed least often.
func (w *world) slowest() *node {
	return slices.MinFunc(w.nodes, func(a, b *node) int { return a.passed - b.passed })
}

// standing is where the node stood in an exchange, which is one of those that are kept.
func (n *node) standing(exchange int) standing { return n.stood[exchange-(n.passed-len(n.stood))] }

// Expect implements optim.Teller.
func (n *node) Expect(seq uint64, op string, bytes int) { n.seq, n.op, n.bytes = seq, op, bytes }

// deputy is the nearest deputy of a worker.
func (w *world) deputy(worker int) *node { return w.nodes[w.crowd.nearest[worker]] }

// computes is how long a worker computes before an exchange what takes so long at pace 1. The caller holds the lock.
func (w *world) computes(worker, exchange int, work int64) int64 {
	if work == 0 {
		return 0
	}
	w.draw.worker, w.draw.draws = worker, uint64(exchange)<<8 // its own, and the same whoever looks
	return int64(float64(work) * w.cfg.Pace(worker, w.draw.next))
}

// draw is whose chance is asked.
type draw struct {
	worker int
	draws  uint64
	next   func() float64
}

// forget drops exchanges that no deputy looks at any more: each is in the exchange of its newest.
func (w *world) forget() {
	if w.crowd == nil {
		return
	}
	oldest := w.slowest().passed - 1
	for _, n := range w.nodes {
		if spare := oldest - (n.passed - len(n.stood)); spare > 0 {
			n.stood = slices.Delete(n.stood, 0, spare)
		}
	}
	if spare := oldest - (w.settled - len(w.exchanges)); spare > 0 {
		w.exchanges = slices.Delete(w.exchanges, 0, spare)
	}
}

// weight is how many workers the one at an index of nodes is.
func (w *world) weight(index int) float64 {
	if w.crowd == nil {
		return 1
	}
	return w.crowd.weights[index]
}

// bytesOf is all that was sent up to a commit since another.
func bytesOf(marks []mark) (sum int64) {
	for _, m := range marks {
		for _, l := range []collective.Ledger{m.commit.Sent, m.commit.Evaluation} {
			for n := range maps.Values(l) {
				sum += n
			}
		}
	}
	return sum
}

var (
	_ collective.Crowd = (*node)(nil)
	_ collective.Oncer = (*node)(nil)
)
