package simulate

import "time"

// Racks are groups of machines that share a way out and a way in: a rack behind its switch, a site behind its line, a
// home behind its router. What goes from one to another passes both behind what others send.
//
// A worker runs ahead of the others, so that what it sends may reach such a way before what somebody sends earlier. So
// these frames are events: they are settled in the order of their times, the earliest once all workers wait. None of
// them can send anything earlier then, since whatever they wait for comes no earlier than that frame.
type Racks struct {
	Of       func(machine int) int // the rack of a machine, from 0 on
	Up, Down float64               // bytes a second of a rack's ways out and in; 0 is no limit
	Delay    time.Duration         // from one rack to another, beside that of the link
}

// rack is the two ways of a rack.
type rack struct {
	up, down queue
	sent     int64 // payload that left it
}

// rack is the one of a number.
func (w *world) rack(i int) *rack {
	for i >= len(w.racks) {
		w.racks = append(w.racks, rack{})
	}
	return &w.racks[i]
}

// crosses says whether what goes from one machine to another leaves its rack.
func (w *world) crosses(from, to int) bool {
	return w.cfg.Racks != nil && w.cfg.Racks.Of(from) != w.cfg.Racks.Of(to)
}

// parcel is a frame on its way between racks.
type parcel struct {
	frame
	from, to *node
	way      *way
	left     int64 // when its last byte leaves the worker's own card and link
	long     int64 // that its bytes take on these
	late     int64 // beside its bytes
	sent     int64 // when the worker sent it
	void     bool  // it never was: see [node.undo]
}

// cross sends a frame out of its rack. Frames of a pair keep their order.
func (w *world) cross(p *parcel) {
	at := max(p.way.leaves, p.left-p.long)
	p.way.leaves = at
	w.happens(happening{at: at, worker: p.from.id, parcel: p, then: func() { w.leaves(p, at) }})
}

// leaves takes a frame through its rack's way out, on to the other one's.
func (w *world) leaves(p *parcel, at int64) {
	wire := p.from.wire(len(p.p))
	r := w.rack(w.cfg.Racks.Of(p.from.machine))
	r.sent += int64(len(p.p))
	p.at = max(p.left, r.up.pass(at, wire, w.cfg.Racks.Up)) + p.late + int64(w.cfg.Racks.Delay)
	p.first = p.at - max(p.long, slowest(wire, w.cfg.Racks.Up, 0))
	p.way.racks.enters = max(p.way.racks.enters, p.first)
	w.happens(happening{at: p.way.racks.enters, worker: p.from.id, parcel: p, then: func() { w.enters(p) }})
}

// enters takes a frame through the other rack's way in, to the worker that it is for.
func (w *world) enters(p *parcel) {
	r := w.rack(w.cfg.Racks.Of(p.to.machine))
	p.at = max(p.at, p.way.racks.newest, r.down.pass(p.first, p.from.wire(len(p.p)), w.cfg.Racks.Down))
	p.way.racks.newest = p.at
	p.to.deliver(p.from.id, p.frame)
}

// deliver puts a frame where the worker looks for it. The caller holds the lock.
func (n *node) deliver(from int, f frame) {
	if n.gone {
		return
	}
	n.boxes[from] = append(n.boxes[from], f)
	if n.waits == from {
		n.wake()
	}
}

// unsend voids the frames between racks that a worker sends from a time on.
func (w *world) unsend(n *node, at int64) {
	if w.cfg.Racks == nil {
		return
	}
	for _, h := range w.queue.heap { // where such frames are
		if p := h.parcel; p != nil && p.from == n && p.sent >= at {
			p.void = true
		}
	}
}

// crossed is what left each rack so far.
func (w *world) crossed() (out []int64) {
	for _, r := range w.racks {
		out = append(out, r.sent)
	}
	return out
}

// busiest is the most that left a rack between two marks.
func busiest(a, z mark) (most int64) {
	for i, sent := range z.crossed {
		if i < len(a.crossed) {
			sent -= a.crossed[i]
		}
		most = max(most, sent)
	}
	return most
}
