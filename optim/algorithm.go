// Package optim is the interface between an algorithm and the rest of brood. It defines Algorithm, a stateless value,
// and Env, all that an algorithm's program may access: blocks of state, an engine, collectives (package collective) and
// data. It also has the parts that algorithms share: gradient steps, optimisers, local steps, evaluation, knobs.
//
// optim imports only models and collective, and uses no goroutine, clock, file or socket. Algorithms are in the
// packages averaging, coupled, gossip, evolution, population and protocol, which use only what optim exports; catalog
// lists them. docs/adding-an-algorithm.md writes one in another module.
package optim

import (
	"context"
	"fmt"
	"math"
	"regexp"

	"brood/models/engine"
	"brood/optim/collective"
)

// Algorithm is a training method as a value: metadata, and functions that keep no state between calls.
type Algorithm struct {
	Name  string // as the user types it: "parle"
	Title string // as screens show it: "Parle"
	Paper string // citation of the source
	Doc   string // summary, equations, bytes, deviations from the source

	Needs  Needs
	Knobs  []Knob
	Series []Series
	// NoOptimiser explains why a gradient-based algorithm has no knob optimiser, as a clause without a subject.
	NoOptimiser string

	// Blocks lists ALL state of the algorithm for these knobs. A block whose Cols is 0 does not exist.
	Blocks func(k Values, l engine.Layout) []Block
	// Check returns an error for a shape that the algorithm cannot run: one sentence that says what to change. It is
	// called at the start, at every breakpoint of a schedule, on every live change and after the loss of a worker. Nil
	// accepts every population of one or more members.
	Check func(s Shape) error
	// Cycle returns the number of rounds in a cycle, the unit of schedules per cycle. Nil: every round is a cycle.
	Cycle func(s Shape) int
	// Bytes returns the exact payload of one round in bytes, summed over workers, by operation.
	Bytes func(s Shape) map[collective.Op]int64

	Program Program

	// FromSpec returns the algorithm built from a text that the user supplies, such as the rule table of a protocol.
	// The run records the text in place of a model's layers. Nil if the algorithm takes no text.
	FromSpec func(text []byte) (*Algorithm, error)
}

// names matches valid names of algorithms and knobs.
var names = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// Validate returns the first error in the declaration that would make a run fail, or nil. It does not run the program;
// package conformance does.
func (a *Algorithm) Validate() error {
	switch {
	case !names.MatchString(a.Name):
		return fmt.Errorf("algorithm %q: its name must begin with a lower-case letter; lower-case letters, digits, - and _ "+
			"may follow", a.Name)
	case a.Title == "" || a.Paper == "" || a.Doc == "":
		return fmt.Errorf("algorithm %s: it must have a Title, a Paper and a Doc", a.Name)
	case a.Program == nil || a.Blocks == nil || a.Bytes == nil:
		return fmt.Errorf("algorithm %s: it must have Blocks, Bytes and a Program", a.Name)
	}
	knobs := map[string]bool{"members": true} // declared by the runtime
	for _, k := range a.Knobs {
		switch {
		case !names.MatchString(k.Name) || knobs[k.Name]:
			return fmt.Errorf("algorithm %s: knob %q is declared twice, is the runtime's or is no name", a.Name, k.Name)
		case k.Title == "" || k.Doc == "":
			return fmt.Errorf("algorithm %s: knob %s must have a Title and a Doc", a.Name, k.Name)
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

// Needs is a bit set of an algorithm's requirements on its model and population, independent of its knobs. An algorithm
// that needs neither gradients nor evaluations runs without a model and without data.
type Needs uint8

// Model reports whether the algorithm requires a model and data.
func (n Needs) Model() bool { return n&(Gradients|Evaluations) != 0 }

const (
	Gradients   Needs = 1 << iota // the engine's Gradients task
	Evaluations                   // the engine's Evaluate or Candidates task
	Pairs                         // two members or more
	Whole                         // an integer model (engine.Layout.Whole)
)

// Program is the executable part of an algorithm. It is SPMD: every worker calls it with the same round and knobs, and
// all workers must reach all collectives in the same order.
type Program interface {
	// Round executes one round: a bounded amount of work that commits atomically.
	Round(ctx context.Context, env *Env, k Values, round uint64) (Report, error)
	// Centre writes the model that represents the population into dst (1 x params). It does not write batch-norm
	// statistics; the caller rebuilds them. Centre is a collective and changes no block.
	Centre(ctx context.Context, env *Env, k Values, dst engine.Mat) error
}

// Leaver is an optional interface of a Program. Leave transfers state of departing members (SGP's mass) to others
// before their rows are removed.
type Leaver interface {
	Leave(ctx context.Context, env *Env, k Values, gone []engine.Member) error
}

// Enter selects the initial value of a block's row for a member that has no earlier row.
type Enter uint8

const (
	EnterZero   Enter = iota // zeros
	EnterOne                 // ones
	EnterCentre              // the population's centre; at the start of a run, the shared initialisation
	EnterDrawn               // at the start of a run, a separate initialisation per member; later the centre
	EnterStats               // initial batch-norm statistics (mean 0, variance 1), which training then updates
)

// Block declares state that the runtime owns. blocks.go lists the names.
type Block struct {
	Name   string
	Shared bool // one row, equal on every worker; else a row per member, on the worker that hosts it
	Cols   int
	Type   engine.DType
	Record bool // in host memory, where programs read and write it directly; else in engine memory, as F32
	Enter  Enter
}

// Point is one measurement.
type Point struct {
	Member engine.Member // engine.None for a value of the whole population
	Series string
	Value  float64
	Late   *float32 // if not nil, points to the value, which is valid after the engine's next Wait
}

// Get returns the value. If Late is set, the engine's Wait must have returned.
func (p Point) Get() float64 {
	if p.Late != nil {
		return float64(*p.Late)
	}
	return p.Value
}

// Report is the result of a round.
type Report struct {
	// Steps, Samples and Evaluations count the work of the whole population in this round. Equal on all workers.
	Steps, Samples, Evaluations int64
	// Pass is the progress of the data streams in this round: Done samples, of the Of samples in one epoch (the sum of the
	// windows of all streams). Equal on all workers.
	Pass Pass
	// Points lists measurements of this worker's members. Only the worker that hosts the lowest member adds those of
	// engine.None.
	Points []Point
	// Edges lists the transfers of the whole round if the algorithm draws them at random (pairings, lineage). Equal on all
	// workers.
	Edges []collective.Edge
}

// Pass is a fraction of an epoch.
type Pass struct{ Done, Of int64 }

// Shape contains all inputs of Check, Cycle and Bytes.
type Shape struct {
	Roster collective.Roster
	Layout engine.Layout
	K      Values
	Direct int    // collectives of at most this many bytes take one hop
	Phase  uint64 // value of the "phase" block at the start of the round; 0 without the block
	Warm   uint64 // value of the "warm" block at the start of the round; 0 without the block
	Drawn  bool   // Edges are the actual edges of the round; if false, Bytes returns an expected value
	Edges  []collective.Edge
	Data   DataSize

	comm *collective.Comm // if not nil, caches the subtrees of Roster
}

// DataSize is the number of training and validation samples, and of classes: below 2 if samples have none.
type DataSize struct{ Train, Validation, Classes int }
