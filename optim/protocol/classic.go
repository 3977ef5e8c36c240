package protocol

import (
	"brood/models/usererr"
	"brood/optim"
)

// must makes a table of rules that are written in this package; the tests make all of them.
func must(t *Table, err error) *Table {
	if err != nil {
		panic(err)
	}
	return t
}

// OR is the first protocol of the slides.
var OR = protocol(optim.Algorithm{
	Name:  "or",
	Title: "OR",
	Paper: "Angluin, Aspnes, Diamadi, Fischer, Peralta: Computation in networks of passively mobile finite-state sensors (2006)",
	Doc: `The agents of each execution compute the OR of their bits: a one-way epidemic.

    1,0 -> 1,1

From a single 1 the mean parallel time is ((n-1)/n) * H(n-1), where H(k) = 1 + 1/2 + ... + 1/k. A member is an execution.
Series: loss is the share of agents that do not give the answer. Bytes: 16 a member to every other worker each round.`,
	Knobs: []optim.Knob{knobN, {Name: "ones", Title: "ones", Unit: "agents", Doc: "agents with a 1 when an execution begins", Min: 0, Max: 1e9, Default: 1, Integer: true}},
}, 0.25, rules{
	table: func(optim.Values) *Table {
		return must(newTable("or", []string{"0", "1"}, []string{"0", "1"}, goal{kind: consensus}, func(a, b uint16) (uint16, uint16) { return a | b, a | b }))
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

// Leader is leader election by two states.
var Leader = protocol(optim.Algorithm{
	Name:  "leader",
	Title: "Leader election",
	Paper: "Angluin, Aspnes, Diamadi, Fischer, Peralta: Computation in networks of passively mobile finite-state sensors (2006)",
	Doc: `Every agent begins as a leader; of two that meet one remains.

    L,L -> L,F

An execution has converged when one leader is left. The mean parallel time is (n-1)^2/n. A member is an execution.
Series: loss is the share of leaders too many. Bytes: 16 a member to every other worker each round.`,
	Knobs: []optim.Knob{knobN},
}, 10, rules{
	table: func(optim.Values) *Table {
		return must(newTable("leader", []string{"L", "F"}, make([]string, 2), goal{atMost, 0, 1}, func(a, b uint16) (uint16, uint16) {
			if a == 0 && b == 0 {
				return 0, 1
			}
			return a, b
		}))
	},
	begin: func(k optim.Values) ([]uint64, error) { return []uint64{uint64(k.I("n")), 0}, nil },
})

// beginMajority counts A and B, the first two of so many states.
func beginMajority(states int) func(k optim.Values) ([]uint64, error) {
	return func(k optim.Values) ([]uint64, error) {
		count := make([]uint64, states)
		var err error
		count[0], count[1], err = lead(k)
		return count, err
	}
}

// ExactMajority is the four-state protocol.
var ExactMajority = protocol(optim.Algorithm{
	Name:  "exact-majority",
	Title: "Exact majority, 4 states",
	Paper: "Draief, Vojnović: Convergence speed of binary interval consensus (2012); Mertzios, Nikoletseas, Raptopoulos, Spirakis (2014)",
	Doc: `Strong A and B cancel each other and become weak; what is left of the strong ones turns the weak ones.

    A,B -> a,b    A,b -> A,a    B,a -> B,b

Always right, unless there is a tie, which ends with weak agents of both kinds: such an execution ends without a convergence time.
Theory: about (ln n + ln ln n)/(2*eps) for eps = gap/n, n ln n for a gap of one. A member is an execution.
Series: loss is the share of agents that do not give the answer. Bytes: 16 a member to every other worker each round.`,
	Knobs: []optim.Knob{knobN, knobGap},
}, 0.5, rules{
	table: func(optim.Values) *Table {
		const A, B, a, b = 0, 1, 2, 3
		next := map[pair]pair{{A, B}: {a, b}, {B, A}: {b, a}, {A, b}: {A, a}, {b, A}: {a, A}, {B, a}: {B, b}, {a, B}: {b, B}}
		return must(newTable("exact-majority", []string{"A", "B", "a", "b"}, []string{"A", "B", "A", "B"}, goal{kind: consensus}, given(next)))
	},
	begin: beginMajority(4),
	right: leading,
})

// given are rules for some pairs; the others stay.
func given(next map[pair]pair) rule {
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
	Paper: "Angluin, Aspnes, Eisenstat: A simple population protocol for fast robust approximate majority (2008); Perron, Vasudevan, Vojnović (2009)",
	Doc: `Opposite opinions make undecided agents U, which take the opinion of the next agent that has one.

    two-way    A,B -> U,U                 A,U -> A,A    B,U -> B,B
    one-way    A,B -> A,U    B,A -> B,U    A,U -> A,A    B,U -> B,B    (of two opponents the one that answers becomes undecided)

O(log n), and right with high probability when the gap is well above sqrt(n log n); a tie is decided too. A member is an execution.
Series: loss is the share of agents that do not give the answer (in a tie: the leading one). Bytes: 16 a member to every other worker each round.`,
	Knobs: []optim.Knob{knobN, knobGap, {Name: "rule", Title: "rule", Doc: "what two opponents become", Choices: []string{"two-way", "one-way"}, Max: 1}},
}, 0.25, rules{
	table: func(k optim.Values) *Table {
		const A, B, U = 0, 1, 2
		next := map[pair]pair{{A, B}: {U, U}, {B, A}: {U, U}, {A, U}: {A, A}, {U, A}: {A, A}, {B, U}: {B, B}, {U, B}: {B, B}}
		if k.Is("rule", "one-way") {
			next[pair{A, B}], next[pair{B, A}] = pair{A, U}, pair{B, U}
		}
		return must(newTable("approximate-majority", []string{"A", "B", "U"}, []string{"A", "B", ""}, goal{kind: consensus}, given(next)))
	},
	begin: beginMajority(3),
	right: leading,
})
