package simulate

import "context"

// What deputies send to those that are not simulated, and what these send to them.

// notes is told of each frame that a deputy sent, and when it had left.
func (n *node) notes(to int, left int64, out *sentTo) {
	n.longest = max(n.longest, out.bytes)
	n.newest = left
	if to > n.id && n.left[n.index] == 0 {
		n.left[n.index] = left
	}
}

// Scatter implements optim.Crowd: what goes to those that are not simulated has a time to leave, and nothing else.
func (n *node) Scatter(epoch uint32, op string, to []int, bytes func(k int) int, frame func(k int) (uint64, []byte, error)) (sent int64, err error) {
	n.compute()
	w, tolls := n.world, n.tolls()
	t := &tolls.last[0]
	for k, id := range to {
		if id == n.id {
			continue
		}
		if w.at[id] != nil {
			seq, p, err := frame(k)
			if err == nil {
				err = n.Send(id, epoch, seq, op, p)
			}
			if err != nil {
				return sent, err
			}
			sent += int64(len(p))
			continue
		}
		b, out := bytes(k), &n.all[id]
		if b != t.bytes || !w.cfg.OneLink {
			t = tolls.of(n.id, id, b)
		}
		left := int64(0)
		if t.certain { // as leaves, but for when it is there, which nobody asks: thousands go in each exchange
			n.now += t.own
			left = max(n.up.carries(n.now, t.up), out.line.carries(n.now, t.line))
			n.sends(int64(b), out)
		} else {
			left, _, _ = n.leaves(t, out)
		}
		n.notes(id, left, out)
		sent += int64(b)
	}
	return sent, nil
}

// Collect implements optim.Crowd: see madeUp.
func (n *node) Collect(ctx context.Context, epoch uint32, op string, from []int, bytes func(k int) int, take func(k int, seq uint64, op string, p []byte) error) error {
	n.compute()
	n.sending = false
	w := n.world
	w.mu.Lock()
	x, err := n.exchange(ctx)
	if err != nil {
		w.mu.Unlock()
		return err
	}
	ready, lags := w.readies(n.passed-1, x), n.lags()
	w.mu.Unlock()
	tolls, hop := n.tolls(), nanos(w.cfg.Hop)
	t := &tolls.last[0]
	for k, id := range from {
		if id == n.id {
			continue
		}
		if w.at[id] != nil {
			seq, op, p, err := n.Recv(ctx, id, epoch)
			if err == nil {
				err = take(k, seq, op, p)
			}
			if err != nil {
				return err
			}
			continue
		}
		if b := bytes(k); b != t.bytes || !w.cfg.OneLink {
			t = tolls.of(id, n.id, b)
		}
		last := n.comes(ready[id]+w.crowd.after(id, lags, t), hop, t)
		if t.certain && t.down == unlimited { // as arrives, where it waits for nothing; likewise
			n.now = max(n.now, last) + t.own
		} else {
			n.arrives(t, last-t.alone, last)
		}
	}
	return nil
}

// tolls are those of what goes from one to all, or from all to one: slices of a vector have two lengths.
type tolls struct {
	n    *node
	last [2]toll
}

func (n *node) tolls() tolls { return tolls{n, [2]toll{noToll(), noToll()}} }

// of is the toll of a frame of so many bytes.
func (x *tolls) of(from, to, bytes int) *toll {
	t := &x.last[bytes/4&1]
	x.n.toll(t, x.n.world.cfg.Link(from, to), bytes)
	return t
}

// lag is how much later than a deputy was through with an exchange its frame to another had left, where it sent any.
type lag struct {
	nanos int64
	sent  bool
}

// lags are those of all deputies' frames to this one, in the exchange that it is in. The caller holds the lock.
func (n *node) lags() []lag {
	out := make([]lag, len(n.world.nodes))
	for i, r := range n.world.nodes {
		s := r.standing(n.passed - 1)
		out[i] = lag{s.left[n.index] - s.at, s.sent}
	}
	return out
}

// exchange is the one that n is in, once it is settled. The caller holds the lock.
func (n *node) exchange(ctx context.Context) (*settled, error) {
	w := n.world
	for w.settled < n.passed {
		if err := n.ended(ctx); err != nil {
			return nil, err
		}
		n.wait(settling)
	}
	return &w.exchanges[n.passed-1-(w.settled-len(w.exchanges))], nil
}

// readies are when workers that are not simulated had sent their parts of an exchange, but for what their cards are
// still at. The caller holds the lock.
func (w *world) readies(exchange int, x *settled) []int64 {
	if x.clocks != nil {
		return x.clocks
	}
	if x.ready == nil {
		began := w.began(exchange)
		x.ready = make([]int64, w.cfg.Workers)
		for id := range x.ready {
			if w.at[id] == nil {
				x.ready[id] = w.ready(id, exchange, began)
			}
		}
	}
	return x.ready
}

// began is when deputies began what they computed before an exchange.
func (w *world) began(exchange int) []lag {
	out := make([]lag, len(w.nodes))
	for i, n := range w.nodes {
		at := n.standing(exchange)
		out[i] = lag{at.at - at.took, true}
	}
	return out
}

// ready is when one of these has, where nobody has a clock of its own and deputies began at those times.
func (w *world) ready(worker, exchange int, began []lag) int64 {
	at, _ := w.crowd.between(worker, began)
	return at + w.computes(worker, exchange, w.deputy(worker).standing(exchange).work)
}

// between is what lies between the lags of a worker's neighbours among the deputies, where that of one is known.
func (c *crowd) between(worker int, lags []lag) (nanos int64, known bool) {
	at := &c.beside[worker]
	a, b := lags[at.low], lags[at.high]
	switch {
	case a.sent && b.sent:
		return a.nanos + int64(at.part*float64(b.nanos-a.nanos)), true
	case a.sent:
		return a.nanos, true
	}
	return b.nanos, b.sent
}

// after is how much later than a worker was through with an exchange its frame had left: between the lags of its
// deputies, or, where these have nothing to send, unlike itself, what its bytes take.
func (c *crowd) after(worker int, lags []lag, t *toll) int64 {
	if nanos, known := c.between(worker, lags); known {
		return nanos
	}
	return t.alone
}

// comes is when the last byte of a frame is there that had left.
func (n *node) comes(left, hop int64, t *toll) int64 {
	if t.certain {
		return left + hop + int64(t.link.Delay)
	}
	return left + hop + t.link.delayed(t.packets, t.lost, n.chances)
}

// madeUp is the frame that a worker which is not simulated has sent in the exchange that n is in. The caller holds the
// lock.
func (n *node) madeUp(ctx context.Context, from int, epoch uint32) (frame, error) {
	w, at, t := n.world, n.passed-1, noToll()
	x, err := n.exchange(ctx)
	if err != nil {
		return frame{}, err
	}
	n.toll(&t, w.cfg.Link(from, n.id), n.bytes)
	left := int64(0)
	switch all := x.left[[2]int{from, n.id}]; {
	case len(all) > 0:
		left = all[0]
		x.left[[2]int{from, n.id}] = all[1:]
	case x.clocks != nil:
		left = x.clocks[from] + w.crowd.after(from, n.lags(), &t)
	default:
		left = w.ready(from, at, w.began(at)) + w.crowd.after(from, n.lags(), &t)
	}
	last := n.comes(left, nanos(w.cfg.Hop), &t)
	if len(n.zeros) < n.bytes {
		n.zeros = make([]byte, n.bytes)
	}
	return frame{epoch, n.seq, n.op, n.zeros[:n.bytes], last - t.alone, last}, nil
}
