package native

// turn is one op of the backward pass. Gradients are stored in slots, shared by activations with disjoint lifetimes: a
// chain of layers needs two slots, and a shortcut needs one more while it is active.
type turn struct {
	op     op
	dy, dx int  // slots of the gradients of the result and the operand; -1: not needed
	sum    int  // slot to which dx is added, if the operand has other users; -1: dx is the whole gradient
	side   int  // slot of the gradient of a sum's second operand; -1: not needed
	more   bool // the slot side already contains a part of the gradient
	free   bool // dx is temporary: it is added to sum, then free
}

// schedule computes the backward pass. The gradient of the last activation is in slot turns[0].dy.
func (p *plan) schedule() {
	needs := make([]bool, len(p.buffers)) // per activation: it depends on parameters, so its gradient is needed
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

// slots is the allocation state of schedule.
type slots struct {
	*plan
	of   []int // slot of each activation's gradient; -1: none yet
	free []int
}

// operand determines the slots for the gradient of the operand.
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

// take allocates a slot for the gradient of an activation: the most recently freed one, or a new one.
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

// backward computes all gradients from the gradient of the last activation, which must be in its slot.
func (p *pass) backward() {
	for i := range p.plan.turns {
		t := &p.plan.turns[i]
		p.dy, p.dx = p.slot[t.dy], nil
		if t.dx >= 0 {
			p.dx = p.slot[t.dx]
		}
		if s, ok := t.op.(*sum); ok && t.side >= 0 {
			s.sideGradient(p, p.slot[t.side], t.more)
		}
		t.op.backward(p, t.dx >= 0)
		if t.sum >= 0 {
			n := len(p.all(t.op.wiring().in))
			p.k.Add(p.slot[t.sum][:n], p.slot[t.sum][:n], p.dx[:n])
		}
	}
}
