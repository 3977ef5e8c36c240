package protocol

import (
	"brood/models/usererr"
	"brood/optim"
)

// must panics on the error of a table whose rules are in this package. The tests build all of them.
func must(t *Table, err error) *Table {
	if err != nil {
		panic(err)
	}
	return t
}

// OR computes the OR of the agents' bits: the first protocol of the slides (see Bound).
var OR = protocol(optim.Algorithm{
	Name:  "or",
	Title: "OR",
	Paper: "Angluin, Aspnes, Diamadi, Fischer, Peralta: Computation in networks of passively mobile finite-state " +
		"sensors (2006)",
	Doc: `The agents compute the OR of their bits by a one-way epidemic.

    1,0 -> 1,1

From a single 1 the mean parallel time is ((n-1)/n) * H(n-1), where H(k) = 1 + 1/2 + ... + 1/k.
A member is one execution.
Series: loss is the share of agents without the correct output.
Bytes: 16 per member to every other worker in each round.`,
	Knobs: []optim.Knob{
		knobN,
		{
			Name:    "ones",
			Title:   "ones",
			Unit:    "agents",
			Doc:     "agents that start with a 1",
			Min:     0,
			Max:     1e9,
			Default: 1,
			Integer: true,
		},
	},
}, 0.25, rules{
	states: constant(2),
	table: func(optim.Values) *Table {
		return must(
			newTable(
				"or",
				[]string{"0", "1"},
				[]string{"0", "1"},
				goal{kind: consensus},
				func(a, b uint16) (uint16, uint16) { return a | b, a | b },
			),
		)
	},
	begin: func(k optim.Values) ([]uint64, error) {
		n, ones := k.I("n"), k.I("ones")
		if ones > n {
			return nil, usererr.Errorf("ones = %d of n = %d agents: give at most n", ones, n)
		}
		return []uint64{uint64(n - ones), uint64(ones)}, nil
	},
	right: func(k optim.Values) string {
		if k.I("ones") == 0 {
			return "0"
		}
		return "1"
	},
})

// Leader is leader election with two states.
var Leader = protocol(optim.Algorithm{
	Name:  "leader",
	Title: "Leader election",
	Paper: "Angluin, Aspnes, Diamadi, Fischer, Peralta: Computation in networks of passively mobile finite-state " +
		"sensors (2006)",
	Doc: `Every agent starts as a leader. If two leaders meet, one of them remains a leader.

    L,L -> L,F

An execution has converged when one leader is left. The mean parallel time is (n-1)^2/n. A member is one execution.
Series: loss is the share of agents that are leaders beyond the one.
Bytes: 16 per member to every other worker in each round.`,
	Knobs: []optim.Knob{knobN},
}, 10, rules{
	states: constant(2),
	table: func(optim.Values) *Table {
		return must(
			newTable(
				"leader",
				[]string{"L", "F"},
				make([]string, 2),
				goal{atMost, []uint16{0}, 1},
				partialRule(map[pair]pair{{0, 0}: {0, 1}}),
			),
		)
	},
	begin: func(k optim.Values) ([]uint64, error) { return []uint64{uint64(k.I("n")), 0}, nil },
})

// startMajority returns the initial counts of a protocol whose first two states are A and B. No agent starts in another
// state.
func startMajority(states func(optim.Values) int) func(k optim.Values) ([]uint64, error) {
	return func(k optim.Values) ([]uint64, error) {
		count := make([]uint64, states(k))
		var err error
		count[0], count[1], err = majorityCounts(k)
		return count, err
	}
}

// ExactMajority is the four-state protocol.
var ExactMajority = protocol(optim.Algorithm{
	Name:  "exact-majority",
	Title: "Exact majority, 4 states",
	Paper: "Draief, Vojnović: Convergence speed of binary interval consensus (2012); Mertzios, Nikoletseas, " +
		"Raptopoulos, Spirakis (2014)",
	Doc: `A strong A and a strong B that meet both become weak. Strong agents that are left convert the weak ones.

    A,B -> a,b    A,b -> A,a    B,a -> B,b

The answer is always correct, unless there is a tie. A tie ends with weak agents of both kinds and without a convergence
time. The mean is known exactly, by first-step analysis; about (ln n + ln ln n)/(2*eps) for eps = gap/n. A member is
one execution.
Series: loss is the share of agents without the correct output.
Bytes: 16 per member to every other worker in each round.`,
	Knobs: []optim.Knob{knobN, knobGap},
}, 0.5, rules{
	states: constant(4),
	table: func(optim.Values) *Table {
		const A, B, a, b = 0, 1, 2, 3
		next := map[pair]pair{{A, B}: {a, b}, {B, A}: {b, a}, {A, b}: {A, a}, {b, A}: {a, A}, {B, a}: {B, b}, {a, B}: {b, B}}
		return must(
			newTable(
				"exact-majority",
				[]string{"A", "B", "a", "b"},
				[]string{"A", "B", "A", "B"},
				goal{kind: consensus},
				partialRule(next),
			),
		)
	},
	begin: startMajority(constant(4)),
	right: majorityOutput,
})

// constant returns a function of the knobs that does not depend on them.
func constant(n int) func(optim.Values) int { return func(optim.Values) int { return n } }

// partialRule returns a rule from a table of pairs. Pairs that are missing keep their states.
func partialRule(next map[pair]pair) rule {
	return func(a, b uint16) (uint16, uint16) {
		if n, ok := next[pair{a, b}]; ok {
			return n.a, n.b
		}
		return a, b
	}
}

// ApproximateMajority is the three-state protocol.
var ApproximateMajority = protocol(optim.Algorithm{
	Name:  "approximate-majority",
	Title: "Approximate majority, 3 states",
	Paper: "Angluin, Aspnes, Eisenstat: A simple population protocol for fast robust approximate majority (2008); " +
		"Perron, Vasudevan, Vojnović (2009)",
	Doc: `Two opposite opinions that meet become undecided (U). An undecided agent adopts the opinion of the next
decided agent.

    two-way    A,B -> U,U                 A,U -> A,A    B,U -> B,B
    one-way    A,B -> A,U    B,A -> B,U    A,U -> A,A    B,U -> B,B    (only the responder becomes undecided)

Convergence time: O(log n). The answer is correct with high probability if the gap is well above sqrt(n log n). A tie is
decided too. A member is one execution.
Series: loss is the share of agents without the correct output (in a tie: without the most frequent output).
Bytes: 16 per member to every other worker in each round.`,
	Knobs: []optim.Knob{
		knobN,
		knobGap,
		{
			Name:    "rule",
			Title:   "rule",
			Doc:     "update of two agents with opposite opinions",
			Choices: []string{"two-way", "one-way"},
		},
	},
}, 0.25, rules{
	states: constant(3),
	key:    func(k optim.Values) any { return k.Get("rule") },
	table: func(k optim.Values) *Table {
		const A, B, U = 0, 1, 2
		next := map[pair]pair{{A, B}: {U, U}, {B, A}: {U, U}, {A, U}: {A, A}, {U, A}: {A, A}, {B, U}: {B, B}, {U, B}: {B, B}}
		if k.Is("rule", "one-way") {
			next[pair{A, B}], next[pair{B, A}] = pair{A, U}, pair{B, U}
		}
		return must(
			newTable(
				"approximate-majority",
				[]string{"A", "B", "U"},
				[]string{"A", "B", ""},
				goal{kind: consensus},
				partialRule(next),
			),
		)
	},
	begin: startMajority(constant(3)),
	right: majorityOutput,
})
