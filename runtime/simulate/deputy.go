package simulate

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"brood/optim"
	"brood/runtime/coordinator"
	"brood/runtime/message"
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
	classes  [][]int   // of deputies' indices: of alike work, in which one may stand for the other
	class    []int     // of each worker
	weights  []float64 // of each deputy: how many workers it is
	place    []float64 // of each worker in its class: at the deputy of that number, or between two
}

// fewest is how many deputies a class of workers has at least, so that one stands for what the other receives.
const fewest = 2

// crowdOf chooses deputies, about as many as the configuration says: the worker that leads, those that stand alone, and
// of those with as many members and as many parts of the test set some that lie evenly, from the first to the last. It
// is nil where these are all.
func crowdOf(cfg Config) *crowd {
	n, chunks := cfg.Workers, (cfg.Core.Tests+optim.ScoreChunk-1)/optim.ScoreChunk
	hosting := optim.Place(optim.IDs(cfg.Core.Members), workers(n)).Hosting()
	type kind struct {
		alone        int // the worker, or nobody
		rows, chunks int
	}
	alike, kinds := map[kind][]int{}, []kind{}
	c := &crowd{class: make([]int, n), place: make([]float64, n)}
	for w := range n {
		k := kind{nobody, len(hosting.Of(w)), (chunks - w + n - 1) / n}
		if w == 0 || slices.Contains(cfg.Alone, w) {
			k.alone = w
		}
		if alike[k] == nil {
			kinds = append(kinds, k)
		}
		alike[k] = append(alike[k], w)
	}
	for i, k := range kinds {
		all := alike[k]
		deputies := min(len(all), max(fewest, cfg.Deputies*len(all)/n))
		first := len(c.deputies)
		class := make([]int, deputies)
		for d := range deputies {
			class[d] = first + d
			c.deputies = append(c.deputies, all[d*(len(all)-1)/max(1, deputies-1)])
		}
		c.classes = append(c.classes, class)
		c.weights = append(c.weights, make([]float64, deputies)...)
		for at, w := range all {
			place := float64(at*(deputies-1)) / float64(max(1, len(all)-1))
			low := int(place)
			c.class[w], c.place[w] = i, place
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
	edges      []optim.Edge
	bytes      int
}

// Sent implements optim.Teller.
func (n *node) Sent(edges []optim.Edge, bytes int) {
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

// slowest is the deputy that has passed least often.
func (w *world) slowest() *node {
	return slices.MinFunc(w.nodes, func(a, b *node) int { return a.passed - b.passed })
}

// standing is where the node stood in an exchange, which is one of those that are kept.
func (n *node) standing(exchange int) standing { return n.stood[exchange-(n.passed-len(n.stood))] }

// Expect implements optim.Teller.
func (n *node) Expect(seq uint64, op string, bytes int) { n.seq, n.op, n.bytes = seq, op, bytes }

// between is what a worker does that lies between two deputies of its class, of what these do where that is known.
func (w *world) between(worker int, of func(n *node) (what int64, known bool)) (what int64, known bool) {
	class, place := w.crowd.classes[w.crowd.class[worker]], w.crowd.place[worker]
	low := int(place)
	a, knownA := of(w.nodes[class[low]])
	b, knownB := of(w.nodes[class[min(low+1, len(class)-1)]])
	switch {
	case knownA && knownB:
		return a + int64((place-float64(low))*float64(b-a)), true
	case knownA:
		return a, true
	}
	return b, knownB
}

// madeUp is the frame that a worker which is not simulated has sent in the exchange that n is in. The caller holds the
// lock.
func (n *node) madeUp(ctx context.Context, from int, epoch uint32) (frame, error) {
	w, at := n.world, n.passed-1
	for w.settled <= at {
		if err := n.ended(ctx); err != nil {
			return frame{}, err
		}
		n.wait(settling)
	}
	l := w.cfg.Link(from, n.id)
	wire := n.wire(n.bytes)
	alone := slowest(wire, w.cfg.Up, l.rate())
	x := w.exchanges[at-(w.settled-len(w.exchanges))]
	var left int64
	if all := x.left[[2]int{from, n.id}]; len(all) > 0 {
		left = all[0]
		x.left[[2]int{from, n.id}] = all[1:]
	} else {
		after, known := w.between(from, func(r *node) (int64, bool) {
			t := r.standing(at)
			return t.left[n.index] - t.at, t.sent
		})
		if !known { // its deputies have nothing to send, unlike itself
			after = alone
		}
		left = w.ready(from, at, x) + after
	}
	arrives := left + nanos(w.cfg.Hop) + l.late(wire, n.uniform)
	if len(n.zeros) < n.bytes {
		n.zeros = make([]byte, n.bytes)
	}
	return frame{epoch, n.seq, n.op, n.zeros[:n.bytes], arrives - alone, arrives}, nil
}

// ready is when a worker that is not simulated has sent its part of an exchange, but for what its card is still at.
func (w *world) ready(worker, exchange int, x settled) int64 {
	if x.clocks != nil {
		return x.clocks[worker]
	}
	began, _ := w.between(worker, func(r *node) (int64, bool) { return r.standing(exchange).at - r.standing(exchange).took, true })
	return began + w.computes(worker, exchange, w.deputy(worker).standing(exchange).work)
}

// settled is when each worker had sent its part of an exchange, and along edges when each frame had left.
type settled struct {
	clocks []int64 // nil: as the deputies
	left   map[[2]int][]int64
}

// settle finds when each worker has sent its part of an exchange that all deputies have passed. Where all send to all
// nobody is ahead or behind for longer than that, and a deputy's time is that of those it stands for. Along edges it is
// not: who meets nobody waits for nobody, and the longest chain of those who do ends the round. So from an exchange
// along edges on each worker has a clock of its own, until all hear from all.
func (w *world) settle(exchange int) {
	first := w.nodes[len(w.nodes)-1].standing(exchange)
	if first.edges == nil && !w.own {
		w.exchanges = append(w.exchanges, settled{})
		return
	}
	if w.clocks == nil {
		w.clocks = make([]int64, w.cfg.Workers)
	}
	takes := map[int]bool{}
	ways := w.ways(first.edges)
	for _, way := range ways {
		takes[way[0]], takes[way[1]] = true, true
	}
	// What deputies computed before the exchange, of those that take part and of those that do not: each other worker as
	// much as one of these by chance.
	works := map[bool][]int64{}
	for _, n := range w.nodes[1:] {
		works[takes[n.id]] = append(works[takes[n.id]], n.standing(exchange).work)
	}
	for part, known := range works {
		w.works[part] = known
	}
	for id := range w.clocks {
		if n := w.at[id]; n != nil {
			w.clocks[id] = n.standing(exchange).at
			continue
		}
		if !w.own {
			w.clocks[id], _ = w.between(id, func(r *node) (int64, bool) { return r.standing(exchange).at - r.standing(exchange).took, true })
		}
		w.clocks[id] = max(w.clocks[id], w.deputy(id).standing(exchange).since)
		if known := w.works[takes[id]]; len(known) > 0 {
			one := known[int(chance(w.cfg.Seed, id, uint64(exchange)<<8|255)*float64(len(known)))]
			w.clocks[id] += w.computes(id, exchange, one)
		}
	}
	x := settled{clocks: slices.Clone(w.clocks), left: map[[2]int][]int64{}}
	w.travel(ways, first.bytes, exchange, x)
	w.exchanges = append(w.exchanges, x)
	w.own = first.edges != nil
}

// travel moves rows of so many bytes along ways, and every worker's clock on to when it has those it waits for.
func (w *world) travel(ways [][2]int, bytes, exchange int, x settled) {
	wire, cost := w.nodes[0].wire(bytes), nanos(float64(bytes)*w.cfg.PerByte)
	up, down, lines := map[int]*queue{}, map[int]*queue{}, map[[2]int]*queue{}
	for i, way := range ways {
		from, to := way[0], way[1]
		if lines[way] == nil {
			lines[way] = new(queue)
		}
		if up[from] == nil {
			up[from] = new(queue)
		}
		if down[to] == nil {
			down[to] = new(queue)
		}
		l, draw := w.cfg.Link(from, to), (uint64(exchange)<<20|uint64(i))<<8|128
		x.clocks[from] += cost
		left := max(up[from].pass(x.clocks[from], wire, w.cfg.Up), lines[way].pass(x.clocks[from], wire, l.rate()))
		x.left[way] = append(x.left[way], left)
		arrives := left + nanos(w.cfg.Hop) + l.late(wire, func() float64 {
			draw++
			return chance(w.cfg.Seed, to, draw)
		})
		if w.cfg.Down > 0 {
			arrives = max(arrives, down[to].pass(arrives-slowest(wire, w.cfg.Up, l.rate()), wire, w.cfg.Down))
		}
		w.clocks[to] = max(w.clocks[to], arrives) + cost
	}
}

// ways are the workers that a row travels between along edges, each row once to each worker.
func (w *world) ways(edges []optim.Edge) (ways [][2]int) {
	type parcel struct {
		m  optim.Member
		to int
	}
	seen := map[parcel]bool{}
	for _, e := range edges {
		from, to := w.roster.Of(e.From), w.roster.Of(e.To)
		if p := (parcel{e.From, to}); from != to && !seen[p] {
			seen[p] = true
			ways = append(ways, [2]int{from, to})
		}
	}
	return ways
}

// deputy is the nearest deputy of a worker's class.
func (w *world) deputy(worker int) *node {
	return w.nodes[w.crowd.classes[w.crowd.class[worker]][int(w.crowd.place[worker]+0.5)]]
}

// computes is how long a worker computes before an exchange what takes so long at pace 1.
func (w *world) computes(worker, exchange int, work int64) int64 {
	if work == 0 {
		return 0
	}
	draws := uint64(exchange) << 8 // its own, and the same whoever looks
	return int64(float64(work) * w.cfg.Pace(worker, func() float64 {
		draws++
		return chance(w.cfg.Seed, worker, draws)
	}))
}

// said is what a deputy reported, and where it stood.
type said struct {
	n          *node
	report     message.Report
	at         int64
	passed     int
	since      int64
	work, took int64
}

// speak reports for those that are not simulated once all deputies have. Nobody has passed since the first of them did
// in an exchange in which all have. The caller holds the lock.
func (w *world) speak(s said) {
	key := keyOf(s.report)
	if w.said[key] == nil {
		w.said[key] = make([]said, len(w.nodes))
	}
	all := w.said[key]
	all[s.n.index] = s
	if slices.ContainsFunc(all, func(s said) bool { return s.n == nil }) {
		return
	}
	delete(w.said, key)
	share := w.shares(all)
	for id := range w.cfg.Workers {
		if w.at[id] != nil {
			continue
		}
		s := all[w.deputy(id).index]
		began, _ := w.between(id, func(r *node) (int64, bool) { return all[r.index].at - all[r.index].took, true })
		if w.own {
			began = max(w.clocks[id], s.since) + int64(w.cfg.Control)
		}
		at := began + w.computes(id, s.passed, s.work)
		var r message.Report
		switch x := s.report.(type) {
		case message.Ready:
			x.Worker = id
			r = x
		case message.Done:
			w.disguise(&x, id)
			x.Sent = share()
			r = x
		default: // of what failed the deputy alone tells
			return
		}
		w.happens(happening{at: max(at, w.now), worker: id, ev: coordinator.Report{Report: r}})
	}
}

// heard is what reports of several workers have in common.
type heard struct {
	done bool
	of   uint64
}

func keyOf(r message.Report) heard {
	switch r := r.(type) {
	case message.Done:
		return heard{true, r.From}
	case message.Ready:
		return heard{false, uint64(r.Epoch)}
	}
	return heard{true, math.MaxUint64}
}

// shares gives each worker that is not simulated what it sent: the formula's bytes without those of the deputies, dealt
// evenly.
func (w *world) shares(all []said) (next func() optim.Ledger) {
	rest, others := optim.Ledger{}, int64(w.cfg.Workers-len(w.nodes))
	for _, s := range all {
		if d, ok := s.report.(message.Done); ok {
			rest.Add(d.Predicted)
			for op, b := range d.Sent {
				rest[op] -= b
			}
		}
	}
	each, first := optim.Ledger{}, optim.Ledger{}
	for op, b := range rest {
		b = max(0, b) // else the core says that a formula is wrong
		each[op], first[op] = b/others, b/others+b%others
	}
	spent := false
	return func() optim.Ledger {
		if spent {
			return each
		}
		spent = true
		return first
	}
}

// disguise makes a deputy's report one of another worker: of its members and of its part of the test set.
func (w *world) disguise(d *message.Done, id int) {
	host, mine := w.hosting.Of(d.Worker), w.hosting.Of(id)
	digests := make(map[string][32]byte, len(d.Digests))
	for name, sum := range d.Digests {
		at := strings.LastIndexByte(name, '/')
		block, of := name[:at], name[at+1:]
		switch {
		case of == "shared":
			digests[name] = sum
		case of == w.member(host[0]):
			for i, m := range mine {
				digests[w.row(block, m)] = d.Digests[w.row(block, host[i])]
			}
		}
	}
	tests := slices.Clone(d.Tests)
	for i := range tests {
		tests[i].Centre = ""
		tests[i].Chunks = slices.Clone(tests[i].Chunks)
		for j := range tests[i].Chunks {
			c := &tests[i].Chunks[j]
			c.Index += id - d.Worker
			c.Samples = int64(min(optim.ScoreChunk, w.cfg.Core.Tests-c.Index*optim.ScoreChunk))
			c.Correct = min(c.Correct, c.Samples)
		}
	}
	d.Worker, d.Digests, d.Tests, d.Points, d.Notes, d.Predicted = id, digests, tests, nil, nil, nil
}

// row is the name of a member's row of a block, and member is the last part of it.
func (w *world) row(block string, m optim.Member) string {
	names := w.names[block]
	if names == nil {
		names = make([]string, w.cfg.Core.Members)
		for i := range names {
			names[i] = block + "/" + strconv.Itoa(i)
		}
		w.names[block] = names
	}
	return names[m]
}

func (w *world) member(m optim.Member) string { return w.row("", m)[1:] }

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
		for _, l := range []optim.Ledger{m.commit.Sent, m.commit.Evaluation} {
			for n := range maps.Values(l) {
				sum += n
			}
		}
	}
	return sum
}

var _ optim.Teller = (*node)(nil)
