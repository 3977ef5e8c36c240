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
	effective [][]uint16  // of a state a, the states b for which the meeting (a, b) changes the counts, ascending
	goal      goal
	class     []int // of a state; a meeting that keeps the agents in each class does not change whether goal holds
}

type pair struct{ a, b uint16 }

// goal is the condition under which an execution has converged. Once it holds it must hold forever; newTable rejects a
// rule that violates this. The convergence time is therefore well defined, and a simulation may check the goal late.
type goal struct {
	kind   goalKind
	states []uint16 // atMost only
	limit  uint64   // atMost only: the largest number of agents in states
}

type goalKind uint8

const (
	consensus goalKind = iota // all agents have the same output
	silent                    // no meeting can change a count
	atMost                    // at most limit agents are in the states
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
	t.class = g.classes(t.output)
	t.effective = make([][]uint16, len(states))
	for a := range uint16(len(states)) {
		for b := range uint16(len(states)) {
			c, d := r(a, b)
			t.next = append(t.next, [2]uint16{c, d})
			if !(c == a && d == b || c == b && d == a) {
				t.effective[a] = append(t.effective[a], b)
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
		return t.class[c]+t.class[d] <= t.class[a]+t.class[b]
	}
	return true
}

// classes returns Table.class for a goal; output is Table.output. For atMost, class 1 has the states of the goal.
func (g goal) classes(output []int) []int {
	class := make([]int, len(output))
	for s := range class {
		switch {
		case g.kind == consensus:
			class[s] = output[s]
		case g.kind == silent:
			class[s] = s
		case slices.Contains(g.states, uint16(s)):
			class[s] = 1
		}
	}
	return class
}

// affectsGoal reports whether the meeting a,b -> c,d may change whether the goal holds.
func (t *Table) affectsGoal(a, b, c, d uint16) bool {
	v, w, x, y := t.class[a], t.class[b], t.class[c], t.class[d]
	return !(v == x && w == y || v == y && w == x)
}

// meet returns the states of two agents after they meet, initiator first.
func (t *Table) meet(a, b uint16) (uint16, uint16) {
	n := t.next[int(a)*len(t.States)+int(b)]
	return n[0], n[1]
}

// weight returns the number of ordered pairs of agents whose meeting changes a count.
func (t *Table) weight(count []uint64) (w uint64) {
	for a, x := range count {
		if x > 0 {
			w += x * t.partners(uint16(a), count)
		}
	}
	return w
}

// partners returns the number of agents whose meeting with a given initiator in state a changes a count. count includes
// the initiator.
func (t *Table) partners(a uint16, count []uint64) (n uint64) {
	for _, b := range t.effective[a] {
		n += count[b]
		if a == b {
			n--
		}
	}
	return n
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
		return t.counted(count) <= t.goal.limit
	}
	return t.weight(count) == 0
}

// counted returns the number of agents in the states of the goal.
func (t *Table) counted(count []uint64) (n uint64) {
	for _, s := range t.goal.states {
		n += count[s]
	}
	return n
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
		in := t.counted(count)
		return float64(in-min(in, t.goal.limit)) / float64(n)
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
