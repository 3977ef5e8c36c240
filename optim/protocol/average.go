package protocol

import (
	"fmt"

	"brood/models/usererr"
	"brood/optim"
)

// AverageAndConquer is exact majority that spends states on speed.
var AverageAndConquer = protocol(optim.Algorithm{
	Name:  "average-and-conquer",
	Title: "Average and conquer",
	Paper: "Alistarh, Gelashvili, Vojnović: Fast and exact majority in population protocols (2015), figure 1",
	Doc: `Agents hold a sign and an odd weight up to m; two that meet average their values, rounded to odd numbers below and above. Weights of
1 step down d levels, and cancel against the opposite sign at the last; agents of weight 0 follow the sign that they meet.

    x,y -> R_down((x+y)/2), R_up((x+y)/2)     both of weight 1 or more, one above 1
    x,0 -> shift(x), sign(x)*0                shift lowers a 1 by one level, if there is one below
    1_d,-1_j -> -0,+0
    x,y -> shift(x), shift(y)                 otherwise

s = m + 2d + 1 states; m = d = 1 is the four-state protocol but for the levels. Always right, unless there is a tie. O(log n/(s*eps) + log n * log s) for
eps = gap/n. The published measurement at n = 101, gap 1, d = 1: parallel time 281 with 4 states, 27 with 24, 15 with 104. A member is an execution.
Series: loss is the share of agents that do not give the answer; shares are those of the signs, A positive. Bytes: 16 a member to every other worker each round.`,
	Knobs: []optim.Knob{knobN.With(101), knobGap.With(1),
		{Name: "m", Title: "largest weight", Doc: "odd: the weight that A and B begin with; turning it begins all executions anew", Min: 1, Max: 511, Default: 21, Integer: true},
		{Name: "d", Title: "levels of weight 1", Doc: "turning it begins all executions anew", Min: 1, Max: 64, Default: 1, Integer: true}},
}, 0.25, rules{
	table: func(k optim.Values) *Table { return must(average(k.I("m"), k.I("d"))) },
	begin: func(k optim.Values) ([]uint64, error) {
		if k.I("m")%2 == 0 {
			return nil, usererr.Errorf("m = %d: weights are odd", k.I("m"))
		}
		return beginMajority(k.I("m") + 2*k.I("d") + 1)(k)
	},
	right: leading,
})

// weighed is a state of average-and-conquer: a value, and the level of a weight of 1 (1..d). Zeros carry a sign in
// level.
type weighed struct{ value, level int }

func (x weighed) positive() bool { return x.value > 0 || x.value == 0 && x.level > 0 }

func (x weighed) weight() int { return max(x.value, -x.value) }

// average is the table for largest weight m (an even one is taken as the odd one below) and d levels. A, all of weight
// m, is state 0 and B state 1.
func average(m, d int) (*Table, error) {
	m -= 1 - m%2
	var all []weighed
	for v := m; v > 1; v -= 2 {
		all = append(all, weighed{v, 0}, weighed{-v, 0})
	}
	for l := 1; l <= d; l++ {
		all = append(all, weighed{1, l}, weighed{-1, l})
	}
	all = append(all, weighed{0, 1}, weighed{0, -1})
	index := map[weighed]uint16{}
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

// conquer is the update of figure 1 of the source.
func conquer(x, y weighed, d int) (weighed, weighed) {
	u, v := x.weight(), y.weight()
	switch {
	case u > 0 && v > 1 || v > 0 && u > 1:
		sum := x.value + y.value // of two odd numbers; halves round to odd numbers
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
		return weighed{0, -1}, weighed{0, 1}
	}
	return x.shift(d), y.shift(d)
}

func odd(v int) weighed {
	if v == 1 || v == -1 {
		return weighed{v, 1}
	}
	return weighed{v, 0}
}

// shift lowers a weight of 1 by one level.
func (x weighed) shift(d int) weighed {
	if x.weight() == 1 && x.level < d {
		x.level++
	}
	return x
}

// zero is the weight 0 of the same sign.
func (x weighed) zero() weighed {
	if x.positive() {
		return weighed{0, 1}
	}
	return weighed{0, -1}
}
