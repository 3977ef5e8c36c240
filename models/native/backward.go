package native

// turn is one op of the way back. Gradients lie in slots, which activations share whose times do not meet: a chain of
// layers has two of them, and a shortcut takes one more for as long as it lasts.
type turn struct {
	op     op
	dy, dx int  // the slots of its result's gradient and of its operand's, -1: nothing before it needs one
	sum    int  // the slot that dx is added to, because others take the operand too; -1: dx is all of it
	side   int  // the slot of a sum's second operand, -1: none needed
	more   bool // which has a part already
	free   bool // dx is only a place on the way to sum
}

// schedule works out the way back. The last activation's gradient lies in slot turns[0].dy.
func (p *plan) schedule() {
	needs := make([]bool, len(p.buffers)) // a gradient, for parameters before it
	for _, o := range p.ops {
		w := o.wiring()
		needs[w.out] = needs[w.out] || w.parameters || needs[w.in] || w.with >= 0 && needs[w.with]
	}
	s := slots{plan: p, of: make([]int, len(p.buffers))}
	for i := range s.of {
		s.of[i] = -1
	}
	last := p.results[len(p.results)-1]
	s.of[last] = s.take(last)
	for i := len(p.ops) - 1; i >= 0; i-- {
		w := p.ops[i].wiring()
		if !needs[w.out] {
			continue
		}
		t := turn{op: p.ops[i], dy: s.of[w.out], dx: -1, sum: -1, side: -1}
		if w.with >= 0 && needs[w.with] {
			if t.more = s.of[w.with] >= 0; !t.more {
				s.of[w.with] = s.take(w.with)
			}
			t.side = s.of[w.with]
		}
		if needs[w.in] {
			s.operand(&t, w)
		}
		if t.dx != t.dy || t.sum >= 0 {
			s.free = append(s.free, t.dy)
		}
		if t.free {
			s.free = append(s.free, t.dx)
		}
		p.turns = append(p.turns, t)
	}
}

// slots are those in use while the way back is worked out.
type slots struct {
	*plan
	of   []int // the slot of each activation's gradient, -1: none yet
	free []int
}

// operand finds where the gradient of the operand goes.
func (s *slots) operand(t *turn, w wire) {
	switch first := s.of[w.in] < 0; {
	case w.in == w.out, first && w.over:
		s.of[w.in], t.dx = t.dy, t.dy
	case first:
		s.of[w.in] = s.take(w.in)
		t.dx = s.of[w.in]
	case w.over:
		t.sum, t.dx = s.of[w.in], t.dy
	default:
		t.sum, t.dx, t.free = s.of[w.in], s.take(w.in), true
	}
}

// take is a slot for the gradient of an activation: the newest that is free.
func (s *slots) take(activation int) int {
	slot := len(s.slots)
	if n := len(s.free); n > 0 {
		slot, s.free = s.free[n-1], s.free[:n-1]
	} else {
		s.slots = append(s.slots, 0)
	}
	s.slots[slot] = max(s.slots[slot], s.buffers[activation].floats())
	return slot
}

// backward computes all gradients from that of the last activation, which lies in its slot.
func (p *pass) backward() {
	for i := range p.plan.turns {
		t := &p.plan.turns[i]
		p.dy, p.dx = p.slot[t.dy], nil
		if t.dx >= 0 {
			p.dx = p.slot[t.dx]
		}
		if s, ok := t.op.(*sum); ok && t.side >= 0 {
			s.beside(p, p.slot[t.side], t.more)
		}
		t.op.backward(p, t.dx >= 0)
		if t.sum >= 0 {
			n := len(p.all(t.op.wiring().in))
			p.k.Add(p.slot[t.sum][:n], p.slot[t.sum][:n], p.dx[:n])
		}
	}
}
