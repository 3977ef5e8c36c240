package collective

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/native"
)

// memory is a Link for tests: unbounded queues between workers of this process, in one epoch.
type memory struct {
	mu     sync.Mutex
	more   *sync.Cond
	queues map[[2]int][]memoryFrame
	frames int
	closed bool
}

type memoryFrame struct {
	seq uint64
	op  string
	p   []byte
}

func newMemory() *memory {
	m := &memory{queues: map[[2]int][]memoryFrame{}}
	m.more = sync.NewCond(&m.mu)
	return m
}

// close makes waiting receivers fail, so that an error of one worker does not block the others.
func (m *memory) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.more.Broadcast()
}

type memoryLink struct {
	*memory
	self int
}

func (l memoryLink) Send(to int, _ uint32, seq uint64, op string, p []byte) error {
	l.mu.Lock()
	k := [2]int{l.self, to}
	l.queues[k] = append(l.queues[k], memoryFrame{seq, op, p})
	l.frames++
	l.mu.Unlock()
	l.more.Broadcast()
	return nil
}

func (l memoryLink) Recv(_ context.Context, from int, _ uint32) (uint64, string, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := [2]int{from, l.self}
	for len(l.queues[k]) == 0 {
		if l.closed {
			return 0, "", nil, errors.New("closed")
		}
		l.more.Wait()
	}
	f := l.queues[k][0]
	l.queues[k] = l.queues[k][1:]
	return f.seq, f.op, f.p, nil
}

// vectorEngines are engines for collectives. One worker uses an engine at a time.
var vectorEngines = sync.Pool{New: func() any {
	v, err := native.New(engine.Layout{}, 1)
	if err != nil {
		panic(err)
	}
	return v
}}

// newVector returns an engine without a model.
func newVector(t *testing.T) engine.Engine {
	t.Helper()
	v, err := native.New(engine.Layout{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// together runs f concurrently on every worker of a roster and returns the sum of their ledgers.
func together(t *testing.T, r Roster, workers []int, direct int, f func(c *Comm) error) Ledger {
	t.Helper()
	net := newMemory()
	var wg sync.WaitGroup
	var mu sync.Mutex
	sum := Ledger{}
	for _, w := range workers {
		wg.Go(func() {
			v := vectorEngines.Get().(*native.Vector)
			defer vectorEngines.Put(v)
			c := NewComm(w, 1, r, workers, memoryLink{net, w}, v, direct)
			err := f(c)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("worker %d of %v: %v", w, r, err)
				net.close()
			}
			sum.Add(c.Ledger)
		})
	}
	wg.Wait()
	for k, q := range net.queues {
		if len(q) > 0 {
			t.Errorf("%v on %v: %d frames from %d to %d were never received", r.Members, r.Owner, len(q), k[0], k[1])
		}
	}
	return sum
}

// placements calls f with every assignment of members to up to n workers.
func placements(members []engine.Member, n int, f func(Roster)) {
	owner := make([]int, len(members))
	var place func(i int)
	place = func(i int) {
		if i == len(members) {
			f(Roster{Members: members, Owner: slices.Clone(owner)})
			return
		}
		for w := range n {
			owner[i] = 3 * w // worker ids with gaps
			place(i + 1)
		}
	}
	place(0)
}

// value returns a column of a member's vector. Magnitudes differ widely, so that another association gives other bits.
func value(m engine.Member, col int) float32 {
	x := float32(1+(int(m)*7+col*3)%11) / 3
	for range (int(m)*5 + col) % 7 {
		x *= -19
	}
	return x
}

func vectors(mine []engine.Member, cols int) engine.Mat {
	out := engine.NewHost(len(mine), cols, engine.F32)
	for i, m := range mine {
		for c := range cols {
			out.Row(engine.Row(i))[c] = value(m, c)
		}
	}
	return ram.Of(out)
}

// treeSum computes the fixed tree by its definition: it halves the id space and skips absent ids.
func treeSum(members []engine.Member, lo, size uint64, col int) (sum float32, ok bool) {
	if size == 1 {
		return value(engine.Member(lo), col), slices.Contains(members, engine.Member(lo))
	}
	a, okA := treeSum(members, lo, size/2, col)
	b, okB := treeSum(members, lo+size/2, size/2, col)
	switch {
	case okA && okB:
		return a + b, true
	case okA:
		return a, true
	}
	return b, okB
}

func describeRoster(r Roster) string { return fmt.Sprintf("%v on %v", r.Members, r.Owner) }
