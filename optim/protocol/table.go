// Package protocol simulates population protocols (Angluin et al. 2006) as algorithms of the workbench: n anonymous
// agents of few states, of which a uniform random pair meets, again and again. A member is an execution of its own, a
// round is a bounded stretch of parallel time (meetings divided by n), and all state is blocks, so that recording,
// resume, verify and screens follow.
//
// Two simulations give the same distribution of everything that is reported: agent by agent, and by the counts of
// agents in each state (counts.go), which reaches 1e9 agents. It imports models and optim.
package protocol

import (
	"fmt"
	"slices"
)

// Table is a finite-state protocol: for every ordered pair of states what both become. It is read-only once made.
type Table struct {
	Name    string
	States  []string
	Outputs []string // distinct, in the order of the states that give them

	output    []int       // of a state, as an index into Outputs; -1 for none
	next      [][2]uint16 // of the pair (a, b), at a*len(States)+b
	effective []pair      // those that change the counts
	goal      goal
}

type pair struct{ a, b uint16 }

// goal is when an execution has converged. What holds once must hold for ever: newTable refuses any other, so that the
// first time it holds is well defined, and a simulation may look for it afterwards.
type goal struct {
	kind  goalKind
	state uint16 // of atMost
	limit uint64
}

type goalKind uint8

const (
	consensus goalKind = iota // all agents give one output
	silent                    // no meeting changes a count any more
	atMost                    // a state has at most so many agents
)

// rule is what a pair of states becomes.
type rule func(a, b uint16) (uint16, uint16)

// newTable lists the rule for all pairs. outputs names the output of each state, "" for none.
func newTable(name string, states, outputs []string, g goal, r rule) (*Table, error) {
	t := &Table{Name: name, States: states, goal: g}
	for _, o := range outputs {
		if o != "" && !slices.Contains(t.Outputs, o) {
			t.Outputs = append(t.Outputs, o)
		}
		t.output = append(t.output, slices.Index(t.Outputs, o))
	}
	for a := range uint16(len(states)) {
		for b := range uint16(len(states)) {
			c, d := r(a, b)
			t.next = append(t.next, [2]uint16{c, d})
			if !(c == a && d == b || c == b && d == a) {
				t.effective = append(t.effective, pair{a, b})
			}
			if !t.keeps(a, b, c, d) {
				return nil, fmt.Errorf("rule %s,%s->%s,%s undoes what converged asks for: convergence must be for ever; converged = \"silent\" always is",
					states[a], states[b], states[c], states[d])
			}
		}
	}
	return t, nil
}

// keeps says whether a meeting leaves the goal reached, were it reached.
func (t *Table) keeps(a, b, c, d uint16) bool {
	switch o := t.output[a]; t.goal.kind {
	case consensus:
		return o < 0 || t.output[b] != o || t.output[c] == o && t.output[d] == o
	case atMost:
		in := func(x, y uint16) (n int) {
			for _, s := range []uint16{x, y} {
				if s == t.goal.state {
					n++
				}
			}
			return n
		}
		return in(c, d) <= in(a, b)
	}
	return true
}

// meet is what an ordered pair of states becomes.
func (t *Table) meet(a, b uint16) (uint16, uint16) {
	n := t.next[int(a)*len(t.States)+int(b)]
	return n[0], n[1]
}

// weight counts the ordered pairs of agents whose meeting changes a count.
func (t *Table) weight(count []uint64) (w uint64) {
	for _, p := range t.effective {
		x, y := count[p.a], count[p.b]
		if p.a == p.b && y > 0 {
			y--
		}
		w += x * y
	}
	return w
}

// reached says whether the goal holds for these counts.
func (t *Table) reached(count []uint64) bool {
	switch t.goal.kind {
	case consensus:
		o := -1
		for s, c := range count {
			switch {
			case c == 0:
			case t.output[s] < 0 || o >= 0 && t.output[s] != o:
				return false
			default:
				o = t.output[s]
			}
		}
		return true
	case atMost:
		return count[t.goal.state] <= t.goal.limit
	}
	return t.weight(count) == 0
}

// loss is how far the goal is: the share of agents that do not give the output want (where it is unknown, the
// leading one), the share of agents above the limit, or the share of pairs that would change something.
func (t *Table) loss(count []uint64, n uint64, want int) float64 {
	switch t.goal.kind {
	case consensus:
		by := t.byOutput(count)
		if want < 0 {
			return 1 - float64(slices.Max(by))/float64(n)
		}
		return 1 - float64(by[want])/float64(n)
	case atMost:
		return float64(count[t.goal.state]-min(count[t.goal.state], t.goal.limit)) / float64(n)
	}
	return float64(t.weight(count)) / (float64(n) * float64(n-1))
}

// byOutput counts the agents that give each output.
func (t *Table) byOutput(count []uint64) []uint64 {
	by := make([]uint64, len(t.Outputs))
	for s, c := range count {
		if o := t.output[s]; o >= 0 {
			by[o] += c
		}
	}
	return by
}
