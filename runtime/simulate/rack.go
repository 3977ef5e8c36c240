package simulate

import "time"

// Racks are groups of machines that share an uplink and a downlink: a rack with its switch, a site with its line, a
// home with its router. A frame from one group to another waits on both for other frames.
//
// A worker runs ahead of the others, so its frame may reach a shared link before an earlier frame of another worker. So
// these frames are events, which are processed in the order of their times, the earliest once all workers wait. No
// worker can send anything earlier then, since what it waits for does not arrive before that frame.
type Racks struct {
	Of       func(machine int) int // the rack of a machine, from 0
	Up, Down float64               // bytes per second of the uplink and the downlink of a rack; 0 means no limit
	Delay    time.Duration         // from one rack to another, in addition to that of the link
}

// rack is the state of a rack's links.
type rack struct {
	up, down queue
	sent     int64 // payload that left the rack, in bytes
}

// rack returns rack i, which is created if necessary.
func (w *world) rack(i int) *rack {
	for i >= len(w.racks) {
		w.racks = append(w.racks, rack{})
	}
	return &w.racks[i]
}

// crosses reports whether a frame from one machine to another leaves its rack.
func (w *world) crosses(from, to int) bool {
	return w.cfg.Racks != nil && w.cfg.Racks.Of(from) != w.cfg.Racks.Of(to)
}

// parcel is a frame in transit between racks.
type parcel struct {
	frame
	from, to *node
	conn     *conn
	left     int64 // time at which its last byte leaves the worker's card and link
	long     int64 // time that its bytes take on these
	late     int64 // further delay
	sent     int64 // time at which the worker sent it
	void     bool  // rolled back, see [node.rollBack]
}

// cross sends a frame to another rack. Frames of a pair keep their order.
func (w *world) cross(p *parcel) {
	at := max(p.conn.leaves, p.left-p.long)
	p.conn.leaves = at
	w.schedule(timedEvent{at: at, worker: p.from.id, parcel: p, then: func() { w.leaves(p, at) }})
}

// leaves passes a frame through the uplink of its rack, to the downlink of the other rack.
func (w *world) leaves(p *parcel, at int64) {
	wire := p.from.wire(len(p.p))
	r := w.rack(w.cfg.Racks.Of(p.from.machine))
	r.sent += int64(len(p.p))
	p.at = max(p.left, r.up.pass(at, wire, w.cfg.Racks.Up)) + p.late + int64(w.cfg.Racks.Delay)
	p.first = p.at - max(p.long, slowest(wire, w.cfg.Racks.Up, 0))
	p.conn.racks.enters = max(p.conn.racks.enters, p.first)
	w.schedule(timedEvent{at: p.conn.racks.enters, worker: p.from.id, parcel: p, then: func() { w.enters(p) }})
}

// enters passes a frame through the downlink of the other rack, to the receiving worker.
func (w *world) enters(p *parcel) {
	r := w.rack(w.cfg.Racks.Of(p.to.machine))
	p.at = max(p.at, p.conn.racks.newest, r.down.pass(p.first, p.from.wire(len(p.p)), w.cfg.Racks.Down))
	p.conn.racks.newest = p.at
	p.to.deliver(p.from.id, p.frame)
}

// deliver puts a frame into the receiver's box. The caller holds the lock.
func (n *node) deliver(from int, f frame) {
	if n.gone {
		return
	}
	n.boxes[from] = append(n.boxes[from], f)
	if n.waits == from {
		n.wake()
	}
}

// voidFrames voids the frames between racks that a worker sent at a time or later.
func (w *world) voidFrames(n *node, at int64) {
	if w.cfg.Racks == nil {
		return
	}
	for _, h := range w.queue.heap { // which contains such frames
		if p := h.parcel; p != nil && p.from == n && p.sent >= at {
			p.void = true
		}
	}
}

// crossed returns the payload in bytes that has left each rack so far.
func (w *world) crossed() (out []int64) {
	for _, r := range w.racks {
		out = append(out, r.sent)
	}
	return out
}

// busiest returns the largest payload that left a rack between two marks, in bytes.
func busiest(a, z mark) (most int64) {
	for i, sent := range z.crossed {
		if i < len(a.crossed) {
			sent -= a.crossed[i]
		}
		most = max(most, sent)
	}
	return most
}
