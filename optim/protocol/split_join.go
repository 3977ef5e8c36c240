package protocol

import (
	"fmt"
	"math/bits"

	"brood/optim"
)

// SplitJoin is an exact majority protocol whose states and time grow as powers of log n.
var SplitJoin = protocol(optim.Algorithm{
	Name:  "split-join",
	Title: "Split-join majority",
	Paper: "Alistarh, Aspnes, Eisenstat, Gelashvili, Rivest: Time-space trade-offs in population protocols (2017), " +
		"section 5",
	Doc: `The value of an agent is x - y. x and y are 0 or powers of two up to 2^L, where 2^L is n rounded up. A starts as
<2^L,0>, B as <0,2^L>. A meeting has four steps and conserves the sum of the values:

    cancel       reduce x1 with y2, and x2 with y1: equal ones become 0; of two that differ by a factor of 2, the larger
                 is halved and the smaller becomes 0
    join         both values positive and y1 = y2: y1 doubles, y2 becomes 0; both negative: so for x
    split        a value positive, one x is 0, the other at least 2: both become its half; a value negative: so for y
    normalise    reduce x with y in both agents

An agent of value 0 adopts the sign of the other agent's value after the split, + if that is 0 too. It uses L^2+L+4
states; the protocol depends on n through L. The answer is always correct. A tie ends with values of 0 alone, and
converges only if they have one sign. Convergence time: O(log^3 n). A member is one execution.
Series: loss is the share of agents without the correct output; the shares are of the two signs, A positive.
Bytes: 16 per member to every other worker in each round.`,
	Knobs: []optim.Knob{knobN.With(1001), knobGap.With(1)},
}, 0.5, rules{
	states:  splitJoinStates,
	key:     func(k optim.Values) any { return splitJoinLevels(k) },
	table:   func(k optim.Values) *Table { return must(splitJoin(splitJoinLevels(k))) },
	begin:   startMajority(splitJoinStates),
	right:   majorityOutput,
	outputs: []string{"A", "B"},
})

// splitJoinLevels returns L: 2^L is n rounded up to a power of two.
func splitJoinLevels(k optim.Values) int { return bits.Len(uint(k.I("n") - 1)) }

func splitJoinStates(k optim.Values) int {
	l := splitJoinLevels(k)
	return l*l + l + 4
}

// splitState is a state of split-join. positive is the sign of a value of 0, else the sign of the value.
type splitState struct {
	x, y     int
	positive bool
}

// splitJoin returns the table for parts up to 2^levels. State 0 is A, state 1 is B.
func splitJoin(levels int) (*Table, error) {
	top := 1 << levels
	all := []splitState{{top, 0, true}, {0, top, false}, {0, 0, true}, {0, 0, false}}
	for x := 1; x <= top; x *= 2 {
		if x < top {
			all = append(all, splitState{x, 0, true}, splitState{0, x, false})
		}
		for y := 1; 4*y <= x; y *= 2 {
			all = append(all, splitState{x, y, true}, splitState{y, x, false})
		}
	}
	index := map[splitState]uint16{}
	var names, outputs []string
	for i, s := range all {
		index[s] = uint16(i)
		out := "B"
		if s.positive {
			out = "A"
		}
		names, outputs = append(names, fmt.Sprintf("%s<%d,%d>", out, s.x, s.y)), append(outputs, out)
	}
	return newTable("split-join", names, outputs, goal{kind: consensus}, func(a, b uint16) (uint16, uint16) {
		u, v := splitAndJoin(all[a], all[b])
		return index[u], index[v]
	})
}

// splitAndJoin returns the states of u and v after they meet.
func splitAndJoin(u, v splitState) (splitState, splitState) {
	if u.value() == 0 && v.value() == 0 {
		return u, v
	}
	u.x, v.y = reduce(u.x, v.y)
	v.x, u.y = reduce(v.x, u.y)
	if u.value() > 0 && v.value() > 0 && u.y == v.y {
		u.y, v.y = 2*u.y, 0
	} else if u.value() < 0 && v.value() < 0 && u.x == v.x {
		u.x, v.x = 2*u.x, 0
	}
	positive, negative := u.value() > 0 || v.value() > 0, u.value() < 0 || v.value() < 0
	if x := max(u.x, v.x); positive && x > 1 && min(u.x, v.x) == 0 {
		u.x, v.x = x/2, x/2
	}
	if y := max(u.y, v.y); negative && y > 1 && min(u.y, v.y) == 0 {
		u.y, v.y = y/2, y/2
	}
	return u.normalise(v.value()), v.normalise(u.value())
}

func (s splitState) value() int { return s.x - s.y }

// reduce returns x and y, powers of two or 0, after they cancel; x - y stays the same.
func reduce(x, y int) (int, int) {
	switch {
	case x == y:
		return 0, 0
	case x == 2*y:
		return y, 0
	case y == 2*x:
		return 0, x
	}
	return x, y
}

// normalise reduces x with y and sets the sign. other is the value of the agent that s met.
func (s splitState) normalise(other int) splitState {
	value := s.value()
	if value == 0 {
		value = other
	}
	s.x, s.y = reduce(s.x, s.y)
	s.positive = value >= 0
	return s
}
