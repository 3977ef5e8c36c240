package protocol

import (
	"fmt"

	"brood/models/usererr"
	"brood/optim"
)

// AverageAndConquer is an exact majority protocol that is faster the more states it has.
var AverageAndConquer = protocol(optim.Algorithm{
	Name:  "average-and-conquer",
	Title: "Average and conquer",
	Paper: "Alistarh, Gelashvili, Vojnović: Fast and exact majority in population protocols (2015), figure 1",
	Doc: `Every agent has a sign and an odd weight up to m. Two agents that meet average their values, rounded to the odd
numbers below and above. A weight of 1 moves down d levels and cancels against the opposite sign at the last one. Agents
of weight 0 adopt the sign of the agent that they meet.

    x,y -> R_down((x+y)/2), R_up((x+y)/2)     both of weight 1 or more, one above 1
    x,0 -> shift(x), sign(x)*0                shift lowers a 1 by one level, if there is one below
    1_d,-1_j -> -0,+0
    x,y -> shift(x), shift(y)                 otherwise

s = m + 2d + 1 states; m = d = 1 is the four-state protocol except for the levels. The answer is always correct, unless
there is a tie. Convergence time: O(log n/(s*eps) + log n * log s) for eps = gap/n. The published measurement at
n = 101, gap 1, d = 1: parallel time 281 with 4 states, 27 with 24, 15 with 104. A member is one execution.
Series: loss is the share of agents without the correct output; the shares are of the two signs, A positive.
Bytes: 16 per member to every other worker in each round.`,
	Knobs: []optim.Knob{
		knobN.With(101),
		knobGap.With(1),
		{
			Name:    "m",
			Title:   "largest weight",
			Doc:     "initial weight of A and B, an odd number; a change restarts all executions",
			Min:     1,
			Max:     mostWeight,
			Default: 21,
			Integer: true,
		},
		{
			Name:    "d",
			Title:   "levels of weight 1",
			Doc:     "levels of weight 1; a change restarts all executions",
			Min:     1,
			Max:     64,
			Default: 1,
			Integer: true,
		},
	},
}, 0.25, rules{
	states: averageStates,
	form:   averageForm,
	key:    func(k optim.Values) any { return averageForm(k) },
	table:  func(k optim.Values) *Table { return must(average(k.I("m"), k.I("d"))) },
	begin: func(k optim.Values) ([]uint64, error) {
		if k.I("m")%2 == 0 {
			return nil, usererr.Errorf("m = %d: weights are odd", k.I("m"))
		}
		return startMajority(averageStates)(k)
	},
	right:   majorityOutput,
	outputs: []string{"A", "B"},
})

func averageForm(k optim.Values) string { return fmt.Sprintf("%d.%d", k.I("m"), k.I("d")) }

// averageStates returns the number of states. An even m, which begin rejects, is rounded down.
func averageStates(k optim.Values) int { return k.I("m") - (1 - k.I("m")%2) + 2*k.I("d") + 1 }

// mostWeight is the largest weight that the knob m allows. The table has a row and a column for each state: with it, 34
// MB.
const mostWeight = 2047

// weightState is a state of average-and-conquer. level is 1..d for a weight of 1, and the sign (1 or -1) for a weight
// of 0.
type weightState struct{ value, level int }

func (x weightState) positive() bool { return x.value > 0 || x.value == 0 && x.level > 0 }

func (x weightState) weight() int { return max(x.value, -x.value) }

// average returns the table for the largest weight m, rounded down to an odd number, and d levels. State 0 is A with
// weight m, state 1 is B with weight m.
func average(m, d int) (*Table, error) {
	m -= 1 - m%2
	var all []weightState
	for v := m; v > 1; v -= 2 {
		all = append(all, weightState{v, 0}, weightState{-v, 0})
	}
	for l := 1; l <= d; l++ {
		all = append(all, weightState{1, l}, weightState{-1, l})
	}
	all = append(all, weightState{0, 1}, weightState{0, -1})
	index := map[weightState]uint16{}
	var names, outputs []string
	for i, x := range all {
		index[x] = uint16(i)
		sign, out := "-", "B"
		if x.positive() {
			sign, out = "+", "A"
		}
		name := fmt.Sprintf("%s%d", sign, x.weight())
		if x.weight() == 1 && d > 1 {
			name += fmt.Sprintf("_%d", x.level)
		}
		names, outputs = append(names, name), append(outputs, out)
	}
	return newTable("average-and-conquer", names, outputs, goal{kind: consensus}, func(a, b uint16) (uint16, uint16) {
		x, y := all[a], all[b]
		u, v := conquer(x, y, d)
		return index[u], index[v]
	})
}

// conquer returns the states of x and y after they meet: the update of figure 1 of the source.
func conquer(x, y weightState, d int) (weightState, weightState) {
	u, v := x.weight(), y.weight()
	switch {
	case u > 0 && v > 1 || v > 0 && u > 1:
		sum := x.value + y.value // even, as both are odd; the halves are rounded to odd numbers
		low := sum / 2
		if low%2 != 0 {
			return odd(low), odd(low)
		}
		return odd(low - 1), odd(low + 1)
	case u > 0 && v == 0:
		return x.shift(d), x.zero()
	case u == 0 && v > 0:
		return y.zero(), y.shift(d)
	case u == 1 && v == 1 && x.positive() != y.positive() && (x.level == d || y.level == d):
		return weightState{0, -1}, weightState{0, 1}
	}
	return x.shift(d), y.shift(d)
}

func odd(v int) weightState {
	if v == 1 || v == -1 {
		return weightState{v, 1}
	}
	return weightState{v, 0}
}

// shift returns x; a weight of 1 moves to the next level, up to d.
func (x weightState) shift(d int) weightState {
	if x.weight() == 1 && x.level < d {
		x.level++
	}
	return x
}

// zero returns the state of weight 0 with the sign of x.
func (x weightState) zero() weightState {
	if x.positive() {
		return weightState{0, 1}
	}
	return weightState{0, -1}
}
