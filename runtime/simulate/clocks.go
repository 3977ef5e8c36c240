package simulate

import (
	"slices"

	"brood/optim/collective"
)

// settled is when each worker had sent its part of an exchange, and along edges when each frame had left.
type settled struct {
	clocks []int64 // nil: as the deputies
	ready  []int64 // likewise, of those that are not simulated, once anybody asks for all of them
	left   map[[2]int][]int64
}

// Classes of workers in an exchange along edges.
const (
	outside = iota // no row goes to it or comes from it
	inside
	classes // how many there are
)

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
	class := make([]uint8, w.cfg.Workers)
	ways := w.ways(first.edges)
	for _, way := range ways {
		class[way[0]], class[way[1]] = inside, inside
	}
	// What deputies of each class computed before the exchange: each other worker of it as much as one of these by
	// chance.
	var works [classes][]int64
	for _, n := range w.nodes[1:] {
		of := class[n.id]
		works[of] = append(works[of], n.standing(exchange).work)
	}
	idle := [classes]bool{} // none of these computed anything
	for of, known := range works {
		if known != nil {
			w.works[of] = known
		}
		idle[of] = !slices.ContainsFunc(w.works[of], func(work int64) bool { return work != 0 })
	}
	began, since := w.began(exchange), make([]int64, len(w.nodes))
	for i, n := range w.nodes {
		since[i] = n.standing(exchange).since
	}
	for id := range w.clocks {
		if n := w.at[id]; n != nil {
			w.clocks[id] = n.standing(exchange).at
			continue
		}
		if !w.own {
			w.clocks[id], _ = w.crowd.between(id, began)
		}
		w.clocks[id] = max(w.clocks[id], since[w.crowd.nearest[id]])
		if of := class[id]; !idle[of] {
			known := w.works[of]
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
	if w.up == nil {
		w.up, w.down = make([]queue, w.cfg.Workers), make([]queue, w.cfg.Workers)
	}
	up, down, lines := w.up, w.down, map[[2]int]queue{}
	several := len(w.roster.Members) > w.cfg.Workers // rows that go from one worker to another
	for i, way := range ways {
		from, to := way[0], way[1]
		var line queue
		if several {
			line = lines[way]
		}
		l, draw := w.cfg.Link(from, to), (uint64(exchange)<<20|uint64(i))<<8|128
		x.clocks[from] += cost
		left := max(up[from].pass(x.clocks[from], wire, w.cfg.Up), line.pass(x.clocks[from], wire, l.rate(float64(bytes))))
		if several {
			lines[way] = line
		}
		if w.at[to] != nil { // who asks for it
			x.left[way] = append(x.left[way], left)
		}
		arrives := left + nanos(w.cfg.Hop) + l.late(wire, func() float64 {
			draw++
			return chance(w.cfg.Seed, to, draw)
		})
		if w.cfg.Down > 0 {
			arrives = max(arrives, down[to].pass(arrives-slowest(wire, w.cfg.Up, l.rate(float64(bytes))), wire, w.cfg.Down))
		}
		w.clocks[to] = max(w.clocks[to], arrives) + cost
	}
	for _, way := range ways {
		up[way[0]], down[way[1]] = 0, 0
	}
}

// ways are the workers that a row travels between along edges, each row once to each worker.
func (w *world) ways(edges []collective.Edge) (ways [][2]int) {
	ways = make([][2]int, 0, len(edges))
	for from, to := range w.roster.Crossings(edges) {
		ways = append(ways, [2]int{from, to})
	}
	return ways
}
