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
	knobN     = optim.Knob{Name: "n", Title: "agents", Unit: "agents", Doc: "agents of an execution; turning it begins all executions anew", Min: 2, Max: 1e9, Default: 1000, Integer: true, Scale: optim.Log}
	knobGap   = optim.Knob{Name: "gap", Title: "gap", Unit: "agents", Doc: "by how many agents A leads B when an execution begins: odd where n is odd", Min: -1e9, Max: 1e9, Default: 100, Integer: true}
	knobSlice = optim.Knob{Name: "slice", Title: "time a round", Unit: "parallel time", Doc: "a round is so many times n meetings of each execution", Min: 1e-3, Max: 1e6, Default: 0.25, Scale: optim.Log}
	knobForm  = optim.Knob{Name: "simulation", Title: "simulation", Doc: "agent by agent, by the counts of agents in each state, or whichever is faster: equal in distribution; turning it begins all executions anew",
		Choices: []string{"auto", "agents", "counts"}, Max: 2}
)

// Series of all protocols.
var (
	seriesLoss = optim.Series{Name: "loss", Title: "distance to the goal", Unit: "share", Doc: "how far an execution is from convergence: 0 when it has converged", Kind: optim.PerMember}
	seriesTime = optim.Series{Name: "time", Title: "convergence time", Unit: "parallel time", Doc: "parallel time at which an execution converged; a point once, in the round in which it did", Kind: optim.PerMember, Combine: optim.Last}
)

// maxAgents of an execution agent by agent: each is eight bytes of a block.
const maxAgents = 1 << 20

// rules make one finite-state protocol different from another. All are pure functions of the knobs.
type rules struct {
	table func(k optim.Values) *Table
	begin func(k optim.Values) ([]uint64, error) // counts at the start
	right func(k optim.Values) string            // the output that is asked for, "" for none; nil: never any
}

// protocol makes an algorithm of rules; a has name, title, paper, doc and the knobs that are its own.
func protocol(a optim.Algorithm, slice float64, r rules) *optim.Algorithm {
	a.Knobs = append(slices.Clone(a.Knobs), knobForm, knobSlice.With(slice))
	a.Series = []optim.Series{seriesLoss, seriesTime}
	if r.right != nil {
		a.Series = append(a.Series, optim.Series{Name: "right", Title: "right answers", Unit: "share", Doc: "1 for an execution that converged to the right answer, 0 for another; a point once", Kind: optim.PerMember, Combine: optim.Last})
	}
	for _, name := range r.table(a.Defaults()).shares() {
		a.Series = append(a.Series, optim.Series{Name: "share." + name, Title: "share of " + name, Unit: "share", Doc: "share of an execution's agents that are " + name, Kind: optim.PerMember})
	}
	p := finite{name: a.Name, rules: r}
	a.Blocks, a.Check, a.Bytes, a.Program = p.blocks, p.check, gatherBytes, p
	return &a
}

// fewStates have a series each; of more states the outputs have.
const fewStates = 8

// shares are the names whose shares are drawn.
func (t *Table) shares() []string {
	if len(t.States) <= fewStates {
		return t.States
	}
	return t.Outputs
}

func (t *Table) counted(count []uint64) []uint64 {
	if len(t.States) <= fewStates {
		return count
	}
	return t.byOutput(count)
}

// finite is the program of a finite-state protocol.
type finite struct {
	name string
	rules
}

// byAgents says whether executions are simulated agent by agent: always, or where that is faster, since a batch of
// about sqrt(n) meetings takes about states^2 draws.
func (p finite) byAgents(k optim.Values, states int) bool {
	switch k.Choice("simulation") {
	case "agents":
		return true
	case "counts":
		return false
	}
	return k.Get("n") <= min(maxAgents, math.Pow(float64(states), 4)/4)
}

// blocks: the agents (1 + the state of each) or the counts, zero before an execution begins; the meetings done; and its
// end. The first is named after the protocol too, since another's states mean something else.
func (p finite) blocks(k optim.Values, _ engine.Layout) []optim.Block {
	states := len(p.table(k).States)
	b := optim.Block{Name: optim.BlockCounts + "." + p.name, Cols: states, Type: engine.U64, Record: true}
	if p.byAgents(k, states) {
		b.Name, b.Cols = optim.BlockAgents+"."+p.name, k.I("n")
	}
	return []optim.Block{b, optim.Counter(optim.BlockClock, false), optim.Counter(optim.BlockEnd, false)}
}

func (p finite) check(s optim.Shape) error {
	if p.byAgents(s.K, len(p.table(s.K).States)) && s.K.I("n") > maxAgents {
		return usererr.Errorf("agent by agent n goes up to %d, and it is %d: lower it, or give simulation = counts", maxAgents, s.K.I("n"))
	}
	_, err := p.begin(s.K)
	return err
}

// lead counts A and B where A leads by gap.
func lead(k optim.Values) (a, b uint64, err error) {
	n, gap := k.I("n"), k.I("gap")
	if gap > n || -gap > n || (n+gap)%2 != 0 {
		return 0, 0, usererr.Errorf("of n = %d agents none can lead by gap = %d: give a gap up to n, odd if n is odd", n, gap)
	}
	return uint64(n+gap) / 2, uint64(n-gap) / 2, nil
}

// leading is the output asked for where A leads B by gap.
func leading(k optim.Values) string {
	switch gap := k.Get("gap"); {
	case gap > 0:
		return "A"
	case gap < 0:
		return "B"
	}
	return ""
}
