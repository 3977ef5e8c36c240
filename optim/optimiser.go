package optim

import (
	"slices"

	"brood/models/engine"
)

// Optimisers of a gradient step: SGD with Nesterov momentum; Adam (Kingma, Ba: Adam: a method for stochastic
// optimization, 2014) or AdamW (Loshchilov, Hutter: Decoupled weight decay regularization, 2017), with bias correction:
//
//	m <- b1*m + (1-b1)*g;  v <- b2*v + (1-b2)*g^2
//	x <- x - eta*(m/(1-b1^t) / (sqrt(v/(1-b2^t)) + eps) + decay*x)      decay of adamw; of the others g += decay*x
//
// or Muon (Jordan et al.: Muon: an optimizer for hidden layers in neural networks, 2024), whose step along a matrix
// is the orthogonal factor of its momentum, see engine.Muon. Vectors and embedding tables take the step of AdamW with
// learning rate eta*vectors:
//
//	m <- momentum*m + (1-momentum)*g;  x <- x - eta*(sqrt(max(1, rows/cols))*orthogonal(Nes(m, g)) + decay*x)
//
// With lengths=fixed each matrix is scaled to norm sqrt(rows) before a step, which is the norm of a step with eta 1.
// With last=adamw the last matrix (the output layer) is stepped as vectors are. The source leaves the first matrix to
// AdamW too; here Muon steps every matrix but embeddings, by default also the last, since small nets have few others.
// The source's settings differ from the defaults here: momentum=0.95, and beta2=0.95 and eps 1e-10 of its AdamW.
var (
	knobOptimiser = Knob{
		Group: GroupOptimiser,
		Name:  "optimiser",
		Title: "optimiser",
		Doc: "optimiser of a gradient step: SGD with Nesterov momentum; Adam, or AdamW with decoupled weight decay, " +
			"eta about 0.001; Muon, which orthogonalises the momentum of each matrix, eta about 0.02",
		Choices: []string{"sgd", "adam", "adamw", "muon"},
	}
	knobBeta1 = Knob{
		Group:   GroupOptimiser,
		Only:    When{"optimiser", []string{"adam", "adamw", "muon"}},
		Name:    "beta1",
		Label:   "β₁",
		Title:   "first decay",
		Doc:     "Adam: decay of the mean of gradients, per step",
		Min:     0,
		Max:     0.99999,
		Default: 0.9,
	}
	knobBeta2 = Knob{
		Group:   GroupOptimiser,
		Only:    When{"optimiser", []string{"adam", "adamw", "muon"}},
		Name:    "beta2",
		Label:   "β₂",
		Title:   "second decay",
		Doc:     "Adam: decay of the mean of squared gradients, per step",
		Min:     0,
		Max:     0.99999,
		Default: 0.999,
	}
	KnobLengths = Knob{
		Group: GroupOptimiser,
		Only:  When{"optimiser", []string{"muon"}},
		Name:  "lengths",
		Title: "lengths",
		Doc: "Muon: matrices keep their norm (free), or each is scaled to the square root of its rows before a step " +
			"(fixed), so that eta is relative to it: for matrices that a norm follows",
		Choices: []string{"free", "fixed"},
	}
	KnobLast = Knob{
		Group: GroupOptimiser,
		Only:  When{"optimiser", []string{"muon"}},
		Name:  "last",
		Title: "last matrix",
		Doc: "Muon: optimiser of the last matrix, the output layer: Muon as for the others, or AdamW as for vectors, " +
			"so that its norm stays free with lengths=fixed",
		Choices: []string{"muon", "adamw"},
	}
	knobVectors = Knob{
		Group:   GroupOptimiser,
		Only:    When{"optimiser", []string{"muon"}},
		Name:    "vectors",
		Title:   "rate of vectors",
		Unit:    "share of eta",
		Doc:     "Muon: learning rate of AdamW, which steps biases and other vectors, as a share of eta",
		Min:     0,
		Max:     100,
		Default: 0.015,
		Scale:   Log,
	}
)

// OptimiserKnobs are the knobs, besides eta and decay, of an algorithm whose members can use any of these optimisers.
var OptimiserKnobs = append([]Knob{KnobMu.OnlyWith("optimiser", "sgd", "muon")}, OptimiserKnobsWithoutMomentum...)

// OptimiserKnobsWithoutMomentum are OptimiserKnobs for an algorithm that declares its own knob momentum.
var OptimiserKnobsWithoutMomentum = []Knob{knobOptimiser, knobBeta1, knobBeta2, knobVectors, KnobLengths, KnobLast}

// OrProgram returns the knobs with a further choice of the optimiser, engine.Program: the optimiser that the program of
// a run brings. It is for algorithms whose members take all their steps by [OptimiserSteps], [LocalSteps] or
// [AnchoredSteps].
func OrProgram(knobs []Knob) []Knob {
	out := slices.Clone(knobs)
	for i, k := range out {
		if k.Name == knobOptimiser.Name {
			k.Choices = append(slices.Clone(k.Choices), engine.Program)
			k.Doc += "; the optimiser that a program brings"
			out[i] = k
		}
	}
	return out
}

// AdamEpsilon is added to the square root of the second moment.
const AdamEpsilon = 1e-8

// Optimiser holds the settings of one optimiser step.
type Optimiser struct {
	Name                     string  // a choice of knobOptimiser
	Eta, Mu                  float32 // mu: momentum of sgd and muon
	Decay                    float32 // decoupled: of adamw and muon
	Beta1, Beta2, Vectors    float32
	FixedLengths, HiddenOnly bool // lengths and the last matrix, of muon
}

// Optimiser returns the settings in the knobs; eta and momentum are the names of the knobs of learning rate and
// momentum.
func (v Values) Optimiser(eta, momentum string) Optimiser {
	d := Optimiser{
		Name:         v.Choice(knobOptimiser.Name),
		Eta:          v.F(eta),
		Mu:           v.F(momentum),
		Beta1:        v.F(knobBeta1.Name),
		Beta2:        v.F(knobBeta2.Name),
		Vectors:      v.F(knobVectors.Name),
		FixedLengths: v.Is(KnobLengths.Name, "fixed"),
		HiddenOnly:   v.Is(KnobLast.Name, "adamw"),
	}
	if v.DecouplesDecay() {
		d.Decay = v.F(KnobWD.Name)
	}
	return d
}

// Adapts reports whether the optimiser is not SGD.
func (v Values) Adapts() bool { return v.Has(knobOptimiser.Name) && !v.Is("optimiser", "sgd") }

// ByProgram reports whether the steps are taken by the optimiser that the program of the run brings.
func (v Values) ByProgram() bool {
	return v.Has(knobOptimiser.Name) && v.Choice(knobOptimiser.Name) == engine.Program
}

// Orthogonalises reports whether the optimiser is Muon. All threads iterate on one matrix at a time, which bounds
// memory.
func (v Values) Orthogonalises() bool { return v.Has(knobOptimiser.Name) && v.Is("optimiser", "muon") }

// DecouplesDecay reports whether weight decay is decoupled from the gradient (AdamW, Muon).
func (v Values) DecouplesDecay() bool {
	return v.Has(knobOptimiser.Name) && (v.Is("optimiser", "adamw") || v.Is("optimiser", "muon"))
}

// Moments returns the blocks of the optimiser's state: a momentum buffer, or two moments and a step count, or the bytes
// of a program's optimiser. Muon's blocks have other names than Adam's, since the state of one is invalid for the
// other.
func Moments(k Values, shared bool, l engine.Layout) []Block {
	switch {
	case k.ByProgram():
		return []Block{{Name: BlockState, Shared: shared, Cols: l.State, Type: engine.U64, Record: true}}
	case !k.Adapts():
		return []Block{Params(BlockM, shared, EnterZero, l)}
	}
	first, second, steps := moments(k.Choice(knobOptimiser.Name), k.Is(KnobLast.Name, "adamw"))
	return []Block{Params(first, shared, EnterZero, l), Params(second, shared, EnterZero, l), Counter(steps, shared)}
}

// StepBlocks returns the blocks of an algorithm whose members take gradient steps: x, the moments of the optimiser,
// which are shared if x is, and more.
func StepBlocks(k Values, l engine.Layout, x Block, more ...Block) []Block {
	return slices.Concat([]Block{x}, Moments(k, x.Shared, l), more)
}

// moments returns the block names of an optimiser other than SGD. Muon with last=adamw has separate names, so that the
// last matrix starts with step count 0 when AdamW takes it over: a step divided by the root of a second moment that was
// never updated would be huge.
func moments(by string, hidden bool) (first, second, steps string) {
	switch {
	case by == "muon" && hidden:
		return BlockHidden, BlockHiddenV, BlockHiddenT
	case by == "muon":
		return BlockMuon, BlockMuonV, BlockMuonT
	}
	return BlockM1, BlockV, BlockT
}

// OptimiserTasks returns the tasks of one step of x (1 row) along the gradient g (1 row), with row r of the blocks of
// Moments. The statements before run first, in the same pass where possible; they may modify g.
func (e *Env) OptimiserTasks(d Optimiser, x engine.Mat, r engine.Row, g engine.Mat,
	before ...engine.Lin) (tasks []engine.Task) {
	one := engine.Rows(1)
	if d.Name == "sgd" {
		prog := append(before, Nesterov(x, e.Block(BlockM).Sub(r, 1), g, d.Eta, d.Mu)...)
		return []engine.Task{Update(1, prog...)}
	}
	if len(before) > 0 {
		tasks = append(tasks, Update(1, before...))
	}
	first, second, steps := moments(d.Name, d.HiddenOnly)
	m, v, t := e.Block(first).Sub(r, 1), e.Block(second).Sub(r, 1), e.Record(steps).URow(r)
	t[0]++
	if d.Name == "muon" {
		return append(tasks, engine.Muon{
			X:      x,
			M:      m,
			V:      v,
			G:      g,
			Rows:   one,
			Eta:    d.Eta,
			Mu:     d.Mu,
			WD:     d.Decay,
			Fixed:  d.FixedLengths,
			Hidden: d.HiddenOnly,
			T:      t[0],
			Share:  d.Vectors,
			B1:     d.Beta1,
			B2:     d.Beta2,
			Eps:    AdamEpsilon,
		})
	}
	return append(tasks, engine.Adam{
		X:    x,
		M:    m,
		V:    v,
		G:    g,
		Rows: one,
		Eta:  d.Eta,
		B1:   d.Beta1,
		B2:   d.Beta2,
		Eps:  AdamEpsilon,
		WD:   d.Decay,
		T:    t[0],
	})
}

// ResetOptimiser resets row r of the blocks of Moments to the state before the first step: records at once, blocks by
// the tasks it returns.
func (e *Env) ResetOptimiser(k Values, r engine.Row) (tasks []engine.Task) {
	for _, b := range Moments(k, false, e.Layout) {
		if b.Record {
			clear(e.Record(b.Name).URow(r))
			continue
		}
		tasks = append(tasks, engine.Fill{Dst: engine.RowOf(e.Block(b.Name), r)})
	}
	return tasks
}
