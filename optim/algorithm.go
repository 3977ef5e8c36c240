// Package optim is the seam between an algorithm and the rest of brood: what an algorithm is (a value without memory),
// what its program may touch (Env, Comm, Engine, Data), and the concrete collectives. It imports only models, and holds
// no goroutine, no clock, no file and no socket. One file per algorithm lives beside the seam; catalog lists them.
package optim

import (
	"context"
	"fmt"
	"math"
	"regexp"

	"brood/models/engine"
)

// Algorithm is a training method as a value: metadata, and functions that keep nothing between calls.
type Algorithm struct {
	Name  string // as typed: "parle"
	Title string // as shown: "Parle"
	Paper string // reference of the source
	Doc   string // summary, equations, bytes, deviations from the source

	Needs  Needs
	Knobs  []Knob
	Series []Series
	// NoOptimiser says of an algorithm that follows gradients why it has no knob optimiser, in a clause without a subject.
	NoOptimiser string

	// Blocks lists ALL state of the algorithm for these knobs. A block whose Cols is 0 does not exist.
	Blocks func(k Values, l engine.Layout) []Block
	// Check refuses a shape that the rule cannot run: one sentence that says what to change. It is asked at the start, at
	// every breakpoint of a schedule, on every live change and after a death. Nil admits every population of one or more.
	Check func(s Shape) error
	// Cycle is how many rounds a cycle takes, what schedules per cycle count in; nil: a round is a cycle.
	Cycle func(s Shape) int
	// Bytes is the exact payload of one round, summed over workers, by operation.
	Bytes func(s Shape) map[Op]int64

	Program Program

	// Given makes the algorithm anew from a text of a person, which the run records in place of a model's layers: the rule
	// table of a protocol. Nil for one that is told nothing.
	Given func(text []byte) (*Algorithm, error)
}

// names is what algorithms and knobs may be called.
var names = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// Validate reports the first mistake of a declaration that would make a run fail, and nil where there is none. It does
// not run the program: that is what package conformance does.
func (a *Algorithm) Validate() error {
	switch {
	case !names.MatchString(a.Name):
		return fmt.Errorf("algorithm %q: its name must be lower-case letters, digits and hyphens", a.Name)
	case a.Title == "" || a.Paper == "" || a.Doc == "":
		return fmt.Errorf("algorithm %s: it must have a Title, a Paper and a Doc", a.Name)
	case a.Program == nil || a.Blocks == nil || a.Bytes == nil:
		return fmt.Errorf("algorithm %s: it must have Blocks, Bytes and a Program", a.Name)
	}
	knobs := map[string]bool{"members": true} // the runtime's own
	for _, k := range a.Knobs {
		switch {
		case !names.MatchString(k.Name) || knobs[k.Name]:
			return fmt.Errorf("algorithm %s: knob %q is declared twice, is the runtime's or is no name", a.Name, k.Name)
		case k.Title == "" || k.Doc == "":
			return fmt.Errorf("algorithm %s: knob %s must have a Title and a Doc", a.Name, k.Name)
		case len(k.Choices) > 0 && (k.Min != 0 || int(k.Max) != len(k.Choices)-1):
			return fmt.Errorf("algorithm %s: the bounds of knob %s must be 0 and its last choice", a.Name, k.Name)
		case k.Max < k.Min || math.IsInf(k.Max, 0):
			return fmt.Errorf("algorithm %s: knob %s has the bounds %g and %g", a.Name, k.Name, k.Min, k.Max)
		}
		if err := k.Validate(k.Default); err != nil {
			return fmt.Errorf("algorithm %s: the default is refused: %w", a.Name, err)
		}
		knobs[k.Name] = true
	}
	series := map[string]bool{}
	for _, s := range a.Series {
		if s.Name == "" || series[s.Name] {
			return fmt.Errorf("algorithm %s: series %q has no name or is declared twice", a.Name, s.Name)
		}
		series[s.Name] = true
	}
	return nil
}

// Needs says what an algorithm asks of its model and population, whatever its knobs. One that asks for neither
// gradients nor evaluations is run without a model and without data.
type Needs uint8

// Model says whether there must be a model, and data.
func (n Needs) Model() bool { return n&(Gradients|Evaluations) != 0 }

const (
	Gradients   Needs = 1 << iota // the engine's Gradients task
	Evaluations                   // the engine's Evaluate or Candidates task
	Pairs                         // two members or more
	Whole                         // a model of whole numbers (engine.Layout.Whole)
)

// Program is the executable part of an algorithm. Every worker calls it with the same round and knobs, in step
// (SPMD): all collectives must be reached by all workers in the same order.
type Program interface {
	// Round does one round: bounded work that commits as a whole.
	Round(ctx context.Context, env *Env, k Values, round uint64) (Report, error)
	// Centre writes the one model this algorithm would hand over into dst (1 x params), and its batch-norm statistics
	// nowhere: the caller rebuilds them. Collective; changes no block.
	Centre(ctx context.Context, env *Env, k Values, dst engine.Mat) error
}

// Leaver is an optional power of a Program: hand on what departing members carry (SGP's mass) before their rows go.
type Leaver interface {
	Leave(ctx context.Context, env *Env, k Values, gone []engine.Member) error
}

// Enter says what a block's row holds for a member that has no earlier row.
type Enter uint8

const (
	EnterZero   Enter = iota
	EnterOne          // ones
	EnterCentre       // the population's centre; at the start of a run the shared initialisation
	EnterDrawn        // an initialisation of the member's own at the start of a run, the centre later
	EnterStats        // fresh batch-norm statistics (mean 0, variance 1); later rebuilt by training itself
)

// Block declares state that the runtime owns. Names come from the vocabulary in blocks.go.
type Block struct {
	Name   string
	Shared bool // one row equal on every worker, else a row per member on the worker that hosts it
	Cols   int
	Type   engine.DType
	Record bool // in host memory, for what programs read and write themselves; else in the engine's, and F32
	Enter  Enter
}

// Op names a communication of a round in the ledger.
type Op string

// Edge is a directed transfer between members.
type Edge struct {
	From, To engine.Member
	Op       Op
}

// Point is one measurement.
type Point struct {
	Member engine.Member // engine.None for a value of the whole population
	Series string
	Value  float64
	Late   *float32 // not nil: the value is there, once the engine's next Wait returns
}

// Get is the value; one that is late must have arrived.
func (p Point) Get() float64 {
	if p.Late != nil {
		return float64(*p.Late)
	}
	return p.Value
}

// Report is what a round did.
type Report struct {
	// Steps, Samples and Evaluations are the whole population's in this round, equal on all workers.
	Steps, Samples, Evaluations int64
	// Pass is how far the data streams advanced: Done samples of the Of samples that one epoch takes (the sum over
	// streams of their windows). Equal on all workers.
	Pass Pass
	// Points of this worker's members; those of engine.None from the worker that hosts the lowest member only.
	Points []Point
	// Edges of the whole round where the rule draws them (pairings, lineage), equal on all workers.
	Edges []Edge
}

// Pass is a fraction of an epoch.
type Pass struct{ Done, Of int64 }

// Shape is all that validity and byte counts may depend on.
type Shape struct {
	Roster Roster
	Layout engine.Layout
	K      Values
	Direct int    // collectives up to this many bytes go in one hop
	Phase  uint64 // the "phase" block at the start of the round, 0 without one
	Warm   uint64 // the "warm" block likewise
	Drawn  bool   // Edges are those of the round; else Bytes is an expectation
	Edges  []Edge
	Data   DataSize

	comm *Comm // of the roster, where there is one: it knows its subtrees
}

// DataSize is what a rule may know of the data before it runs.
type DataSize struct{ Train, Validation int }
