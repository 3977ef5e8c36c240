package optim

import (
	"context"
	"math"
	"slices"

	"brood/models/engine"
	"brood/optim/collective"
)

// Knobs that several algorithms declare with the same meaning.
var (
	KnobEta = Knob{
		Group:   GroupStep,
		Name:    "eta",
		Label:   "η",
		Title:   "learning rate",
		Doc:     "step size of the gradient update",
		Min:     0,
		Max:     100,
		Default: 0.1,
		Scale:   Log,
	}
	KnobMu = Knob{
		Group:   GroupStep,
		Name:    "momentum",
		Title:   "momentum",
		Doc:     "Nesterov momentum mu: buf <- mu*buf + g; step along g + mu*buf",
		Min:     0,
		Max:     0.9999,
		Default: 0.9,
	}
	KnobWD = Knob{
		Group:   GroupStream,
		Name:    "decay",
		Title:   "weight decay",
		Unit:    "coefficient",
		Doc:     "L2 coefficient, added to the gradient unless the optimiser is adamw or muon",
		Min:     0,
		Max:     1,
		Default: 0,
		Scale:   Log,
	}
	KnobB = Knob{
		Group:   GroupStream,
		Name:    "batch",
		Title:   "batch",
		Unit:    "samples",
		Doc:     "samples of one gradient of one member",
		Min:     1,
		Max:     1 << 20,
		Default: 128,
		Integer: true,
		Scale:   Log,
	}

	KnobClip = Knob{
		Group: GroupStream,
		Name:  "clip",
		Title: "gradient clip",
		Unit:  "norm",
		Doc: "a member's gradient that is longer (by its global norm: Euclidean over all parameters, " +
			"before weight decay) is scaled down to this; 0 never",
		Min:     0,
		Max:     1e6,
		Default: 0,
		Scale:   Log,
	}
	// KnobStart selects the initialisation of members: EnterDrawn or EnterCentre for block x, see [Values.EnterX].
	KnobStart = Knob{
		Name:    "start",
		Title:   "start",
		Doc:     "members start from one initialisation or each from its own",
		Choices: []string{"same", "own"},
	}
	// KnobSlice bounds the steps per round of a method with long cycles.
	KnobSlice = Knob{
		Group:   GroupRound,
		Name:    "slice",
		Title:   "steps a round",
		Unit:    "steps",
		Doc:     "a cycle of more steps than this takes several rounds, so that knobs and pauses need not wait for it",
		Min:     1,
		Max:     10000,
		Default: 32,
		Integer: true,
		Scale:   Log,
	}
)

// With returns the knob with default d.
func (k Knob) With(d float64) Knob { k.Default = d; return k }

// EnterX returns the initial value of block x according to KnobStart.
func (v Values) EnterX() Enter {
	if v.Is("start", "own") {
		return EnterDrawn
	}
	return EnterCentre
}

// Choosing returns the knob with the named choice as default. It panics if the knob has no such choice.
func (k Knob) Choosing(choice string) Knob {
	i := slices.Index(k.Choices, choice)
	if i < 0 {
		panic("knob " + k.Name + " has no choice " + choice)
	}
	return k.With(float64(i))
}

// SeriesLoss is the training loss of each member's last mini-batch.
var SeriesLoss = Series{
	Name:  "loss",
	Title: "training loss",
	Unit:  "nats",
	Doc:   "mean cross-entropy of the member's mini-batches of the round",
	Kind:  PerMember,
}

// SeriesFitness is the fitness that selection uses.
var SeriesFitness = Series{
	Name:  "fitness",
	Title: "fitness",
	Unit:  "-nats",
	Doc:   "minus the loss; higher is better",
	Kind:  PerMember,
}

// Nesterov is buf <- mu*buf + g; x <- x - eta*(g + mu*buf): the form of PyTorch and optax. The buffer sums gradients,
// not steps, so that a change of eta takes effect immediately.
func Nesterov(x, buf, g engine.Mat, eta, mu float32) []engine.Lin {
	return []engine.Lin{
		Assign(buf, T(mu, buf), T(1, g)),
		Assign(x, T(1, x), T(-eta, g), T(-eta*mu, buf)),
	}
}

// Update returns a task that executes statements in order, each on the first rows of its matrices.
func Update(rows int, prog ...engine.Lin) engine.Update {
	return engine.Update{Rows: engine.Rows(rows), Prog: prog}
}

// Assign is dst <- sum of c_i*src_i.
func Assign(dst engine.Mat, terms ...engine.Term) engine.Lin {
	return engine.Lin{Dst: dst, Terms: terms}
}

// T is a term of an Assign.
func T(c float32, src engine.Mat) engine.Term { return engine.Term{C: c, Src: src} }

// PopulationPoint returns a value of the whole population as a Point on the worker that hosts the lowest member, and
// nil on the others.
func (e *Env) PopulationPoint(series string, v float64) []Point {
	if !e.Lead() {
		return nil
	}
	return []Point{{Member: engine.None, Series: series, Value: v}}
}

// MemberPoints returns the values v of a series, one per member hosted here in order.
func (e *Env) MemberPoints(series string, v []float32) []Point {
	out := make([]Point, len(e.Mine))
	for i, m := range e.Mine {
		out[i] = Point{Member: m, Series: series, Value: float64(v[i])}
	}
	return out
}

// LatePoints is MemberPoints for values that queued tasks will write, for instance losses of gradients. The values are
// read after the engine's next Wait; the caller must not reuse v.
func (e *Env) LatePoints(series string, v []float32) []Point {
	return e.LatePointsOf(series, Pointers(v))
}

// LatePointsOf is LatePoints for values that are not adjacent in memory. It skips members whose pointer is nil.
func (e *Env) LatePointsOf(series string, v []*float32) (out []Point) {
	for i, m := range e.Mine {
		if v[i] != nil {
			out = append(out, Point{Member: m, Series: series, Late: v[i]})
		}
	}
	return out
}

// Pointers returns a pointer to each element of v.
func Pointers(v []float32) []*float32 {
	out := make([]*float32, len(v))
	for i := range v {
		out[i] = &v[i]
	}
	return out
}

// GatherCounters returns a per-member counter of all members, by rank, on every worker. It costs AllGatherBytes(8).
func (e *Env) GatherCounters(ctx context.Context, op collective.Op, block string) ([]uint64, error) {
	all := engine.NewHost(len(e.Roster.Members), 1, engine.U64)
	return all.U, e.Comm.AllGather(ctx, op, e.Record(block), all)
}

// MeanX writes the mean of block x over all members into dst: the centre of an algorithm with a row x per member.
func MeanX(ctx context.Context, e *Env, dst engine.Mat) error {
	return e.Comm.AllReduce(ctx, "centre", e.Roster, e.Block(BlockX), dst, true)
}

// CopyBlock copies a shared block into dst: the centre of an algorithm that stores it in that block.
func CopyBlock(ctx context.Context, e *Env, name string, dst engine.Mat) error {
	return e.Engine.Do(ctx, engine.Copy{Dst: engine.All(dst), Src: engine.All(e.Block(name))})
}

// Order returns the indices of fit, best (highest) first. Equal values are ordered by index; NaN (missing) comes last.
func Order(fit []float32) []int {
	keys := make([]uint64, len(fit)) // all keys differ, so that any sort is stable
	for i, f := range fit {
		keys[i] = uint64(downward(f))<<32 | uint64(i)
	}
	slices.Sort(keys)
	o := make([]int, len(fit))
	for i, k := range keys {
		o[i] = int(uint32(k))
	}
	return o
}

// downward maps f to a key that decreases as f increases. Equal numbers have equal keys; NaN has the greatest key.
func downward(f float32) uint32 {
	bits := math.Float32bits(f + 0) // + 0 turns -0 into 0
	switch {
	case f != f:
		return math.MaxUint32
	case f < 0:
		return bits
	}
	return 1<<31 - 1 - bits
}
