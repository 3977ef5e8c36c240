// Package protocol simulates population protocols (Angluin et al. 2006) as algorithms of the workbench. A protocol has
// n anonymous agents with few states; in each step a uniform random pair meets. A member is one execution, and a round
// is a bounded amount of parallel time (meetings divided by n). All state is in blocks, so that recording, resume,
// verify and screens work as for every algorithm.
//
// Two simulations give the same distribution of everything that is reported: agent by agent (agents.go), and by the
// counts of agents in each state (counts.go), which supports up to 1e9 agents. The package imports models and optim.
package protocol

import (
	"fmt"
	"slices"
)

// Table is a finite-state protocol: it maps every ordered pair of states to the states of both agents after they meet.
// It is read-only after newTable.
type Table struct {
	Name    string
	States  []string
	Outputs []string // distinct outputs, in the order of the states that have them

	output    []int       // of a state, as an index into Outputs; -1 for none
	next      [][2]uint16 // of the pair (a, b), at a*len(States)+b
	effective []pair      // pairs whose meeting changes the counts
	goal      goal
}

type pair struct{ a, b uint16 }

// goal is the condition under which an execution has converged. Once it holds it must hold forever; newTable rejects a
// rule that violates this. The convergence time is therefore well defined, and a simulation may check the goal late.
type goal struct {
	kind  goalKind
	state uint16 // atMost only
	limit uint64 // atMost only: the largest number of agents in state
}

type goalKind uint8

const (
	consensus goalKind = iota // all agents have the same output
	silent                    // no meeting can change a count
	atMost                    // at most limit agents are in the state
)

// rule returns the states of two agents after they meet: a is the initiator's state, b the responder's.
type rule func(a, b uint16) (uint16, uint16)

// newTable tabulates r for all pairs. outputs has the output of each state, "" for none. It returns an error if a
// meeting can leave the goal after it is reached.
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
			if !t.preservesGoal(a, b, c, d) {
				return nil, fmt.Errorf(
					"rule %s,%s->%s,%s undoes what converged asks for: convergence must last; converged = \"silent\" always does",
					states[a],
					states[b],
					states[c],
					states[d],
				)
			}
		}
	}
	return t, nil
}

// preservesGoal reports whether the meeting a,b -> c,d preserves the goal.
func (t *Table) preservesGoal(a, b, c, d uint16) bool {
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

// meet returns the states of two agents after they meet, initiator first.
func (t *Table) meet(a, b uint16) (uint16, uint16) {
	n := t.next[int(a)*len(t.States)+int(b)]
	return n[0], n[1]
}

// weight returns the number of ordered pairs of agents whose meeting changes a count.
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

// reached reports whether the goal holds for these counts.
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

// loss returns the distance to the goal, in [0, 1]. For consensus it is the share of agents without output want, an
// index into Outputs; if want is negative, without the most frequent output. For atMost it is the share of agents above
// the limit, for silent the share of ordered pairs whose meeting changes a count.
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

// byOutput returns the number of agents with each output.
func (t *Table) byOutput(count []uint64) []uint64 {
	by := make([]uint64, len(t.Outputs))
	for s, c := range count {
		if o := t.output[s]; o >= 0 {
			by[o] += c
		}
	}
	return by
}
