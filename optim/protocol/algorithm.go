package protocol

import (
	"math"
	"slices"

	"brood/models/engine"
	"brood/models/usererr"
	"brood/optim"
)

// Knobs of all protocols.
var (
	knobN = optim.Knob{
		Name:    "n",
		Title:   "agents",
		Unit:    "agents",
		Doc:     "agents of an execution; a change restarts all executions",
		Min:     2,
		Max:     1e9,
		Default: 1000,
		Integer: true,
		Scale:   optim.Log,
	}
	knobGap = optim.Knob{
		Name:    "gap",
		Title:   "gap",
		Unit:    "agents",
		Doc:     "initial lead of A over B in agents; odd if n is odd, else even",
		Min:     -1e9,
		Max:     1e9,
		Default: 100,
		Integer: true,
	}
	knobSlice = optim.Knob{
		Name:    "slice",
		Title:   "time per round",
		Unit:    "parallel time",
		Doc:     "parallel time that each execution advances in a round: n meetings are 1",
		Min:     1e-3,
		Max:     1e6,
		Default: 0.25,
		Scale:   optim.Log,
	}
	knobSimulation = optim.Knob{
		Name:  "simulation",
		Title: "simulation",
		Doc: "agent by agent, by the counts of agents in each state, or the faster of the two; equal in distribution; " +
			"a change restarts all executions",
		Choices: []string{"auto", "agents", "counts"},
	}
)

// Series of all protocols.
var (
	seriesLoss = optim.Series{
		Name:  "loss",
		Title: "distance to the goal",
		Unit:  "share",
		Doc:   "distance of an execution to convergence: 0 once it has converged",
		Kind:  optim.PerMember,
	}
	seriesTime = optim.Series{
		Name:  "time",
		Title: "convergence time",
		Unit:  "parallel time",
		Doc:   "parallel time at which an execution converged; one point, in the round in which it converged",
		Kind:  optim.PerMember,
	}
)

// maxAgents limits n in a simulation agent by agent, where each agent takes 8 bytes of a block.
const maxAgents = 1 << 20

// rules defines a finite-state protocol. All fields are pure functions of the knobs.
type rules struct {
	table func(k optim.Values) *Table
	// what the table depends on, comparable; nil: a constant
	key    func(k optim.Values) any
	states func(k optim.Values) int // number of states of the table
	// distinguishes tables with the same number of states, in block names; nil: there is only one
	form  func(k optim.Values) string
	begin func(k optim.Values) ([]uint64, error) // number of agents that start in each state
	right func(k optim.Values) string            // expected output, "" if there is none; nil: the protocol expects none
	// outputs that have a series of their share, for a protocol of many states; nil: each state has one
	outputs []string
}

// shares returns the states of t or the outputs that have a series.
func (r rules) shares(t *Table) []string {
	if r.outputs != nil {
		return r.outputs
	}
	return t.States
}

// protocol completes a, which has name, title, paper, doc and the protocol's specific knobs, to an algorithm that runs
// r. slice is the default of knobSlice.
func protocol(a optim.Algorithm, slice float64, r rules) *optim.Algorithm {
	a.Knobs = append(slices.Clone(a.Knobs), knobSimulation, knobSlice.With(slice))
	a.Series = []optim.Series{seriesLoss, seriesTime}
	if r.right != nil {
		a.Series = append(
			a.Series,
			optim.Series{
				Name:  "right",
				Title: "right answers",
				Unit:  "share",
				Doc:   "1 if the execution converged to the correct output, else 0; one point, in the round in which it ended",
				Kind:  optim.PerMember,
			},
		)
	}
	var t *Table
	if r.outputs == nil {
		t = r.table(a.Defaults())
	}
	for _, name := range r.shares(t) {
		a.Series = append(
			a.Series,
			optim.Series{
				Name:  "share." + name,
				Title: "share of " + name,
				Unit:  "share",
				Doc:   "share of an execution's agents that are " + name,
				Kind:  optim.PerMember,
			},
		)
	}
	p := finite{name: a.Name, rules: r}
	a.Blocks, a.Check, a.Bytes, a.Program = p.blocks, p.check, gatherBytes, p
	return &a
}

// finite is the program of a finite-state protocol.
type finite struct {
	name string
	rules
}

// byAgents reports whether executions are simulated agent by agent: if the knob says so, or if it is auto and that is
// estimated to be faster: a batch of about sqrt(n) meetings takes a time of about states^2.
func (p finite) byAgents(k optim.Values, states int) bool {
	switch k.Choice("simulation") {
	case "agents":
		return true
	case "counts":
		return false
	}
	return k.Get("n") <= min(maxAgents, math.Pow(float64(states), 4)/4)
}

// blocks declares the agents (1 + the state of each) or the counts, which are zero before an execution begins; the
// number of meetings done; and the end of the execution. The name of the first block contains the protocol's name and
// form, because the states of another protocol have other meanings.
func (p finite) blocks(k optim.Values, _ engine.Layout) []optim.Block {
	states := p.states(k)
	b := optim.Block{Name: p.blockName(optim.BlockCounts, k), Cols: states, Type: engine.U64, Record: true}
	if p.byAgents(k, states) {
		b.Name, b.Cols = p.blockName(optim.BlockAgents, k), k.I("n")
	}
	return []optim.Block{b, optim.Counter(optim.BlockClock, false), optim.Counter(optim.BlockEnd, false)}
}

// blockName returns the name of block, the agents or the counts.
func (p finite) blockName(block string, k optim.Values) string {
	block += "." + p.name
	if p.form != nil {
		block += "." + p.form(k)
	}
	return block
}

func (p finite) check(s optim.Shape) error {
	if p.byAgents(s.K, p.states(s.K)) && s.K.I("n") > maxAgents {
		return usererr.Errorf("agent by agent n goes up to %d, and it is %d: lower n, or set simulation = counts",
			maxAgents, s.K.I("n"))
	}
	_, err := p.begin(s.K)
	return err
}

// majorityCounts returns the number of agents that start in A and in B.
func majorityCounts(k optim.Values) (a, b uint64, err error) {
	n, gap := k.I("n"), k.I("gap")
	if gap > n || -gap > n || (n+gap)%2 != 0 {
		return 0, 0, usererr.Errorf("of n = %d agents none can lead by gap = %d: give a gap up to n, odd if n is odd", n, gap)
	}
	return uint64(n+gap) / 2, uint64(n-gap) / 2, nil
}

// majorityOutput returns the expected output of a majority protocol: A if the gap is positive, B if negative, "" in a
// tie.
func majorityOutput(k optim.Values) string {
	switch gap := k.Get("gap"); {
	case gap > 0:
		return "A"
	case gap < 0:
		return "B"
	}
	return ""
}
