package simulate

import "testing"

// TestRollBackRestoresAll: a rollback restores the complete state of a worker that ran ahead.
func TestRollBackRestoresAll(t *testing.T) {
	w := &world{machines: make([]machineState, 1)}
	n := &node{world: w, conns: map[int]*conn{}, state: state{now: 10, busy: 5, sent: 3, hops: 1, frames: 2}}
	n.spent = func() float64 { return 1 }
	w.cfg.Pace = func(int, func() float64) float64 { return 2 }
	was := n.state
	n.compute()
	n.saveStep(n.to(1))
	n.to(1).bytes += 1e6
	n.sent, n.hops, n.sending = n.sent+1e6, n.hops+1, true
	n.receive(n.now, n.now+1, 1e6)
	if n.busy == was.busy || n.since == was.since || n.down == was.down {
		t.Fatalf("nothing to roll back: %+v", n.state)
	}
	n.rollBack(10)
	if n.state != was || n.to(1).bytes != 0 {
		t.Errorf("%+v with %d bytes, want %+v", n.state, n.to(1).bytes, was)
	}
}
