package optim

import "brood/models/engine"

// How a gradient is followed: by SGD; by Adam (Kingma, Ba: Adam: a method for stochastic optimization, 2014) or AdamW
// (Loshchilov, Hutter: Decoupled weight decay regularization, 2017), with bias correction:
//
//	m <- b1*m + (1-b1)*g;  v <- b2*v + (1-b2)*g^2
//	x <- x - eta*(m/(1-b1^t) / (sqrt(v/(1-b2^t)) + eps) + decay*x)      decay of adamw; of the others g += decay*x
//
// or by Muon (Jordan et al.: Muon: an optimizer for hidden layers in neural networks, 2024), whose step along a matrix
// is the orthogonal factor of its momentum, see engine.Muon, while vectors and tables of embeddings take AdamW's with
// eta*vectors:
//
//	m <- momentum*m + (1-momentum)*g;  x <- x - eta*(sqrt(max(1, rows/cols))*orthogonal(Nes(m, g)) + decay*x)
//
// With lengths fixed each matrix has the length sqrt(rows) before a step, which is that of a step with eta 1. With last
// adamw the last matrix, that of the output layer, is stepped as vectors are. The source leaves the first one to AdamW
// too; here Muon takes every other matrix but embeddings, and by default the last too, since small nets have hardly any
// other.
var (
	knobOptimiser = Knob{Name: "optimiser", Title: "optimiser", Doc: "how a gradient is followed: SGD with Nesterov momentum; Adam, or AdamW, whose weight decay is decoupled: their eta is 0.001 or so; Muon, which makes the momentum of each matrix orthogonal: its eta is 0.02 or so", Choices: []string{"sgd", "adam", "adamw", "muon"}, Max: 3}
	knobBeta1     = Knob{Name: "beta1", Label: "β₁", Title: "first decay", Doc: "of Adam: what the mean of gradients keeps in a step", Min: 0, Max: 0.99999, Default: 0.9}
	knobBeta2     = Knob{Name: "beta2", Label: "β₂", Title: "second decay", Doc: "of Adam: what the mean of their squares keeps in a step", Min: 0, Max: 0.99999, Default: 0.999}
	knobLengths   = Knob{Name: "lengths", Title: "lengths", Doc: "of Muon: matrices are as long as they become; or each is brought to the root of its rows before a step, so that eta is the step's share of it: for matrices with a norm behind them", Choices: []string{"free", "fixed"}, Max: 1}
	knobLast      = Knob{Name: "last", Title: "last matrix", Doc: "of Muon: who steps the last matrix, which is that of the output layer: Muon as any other, or AdamW as vectors, so that it keeps its length where lengths are fixed", Choices: []string{"muon", "adamw"}, Max: 1}
	knobVectors   = Knob{Name: "vectors", Title: "rate of vectors", Unit: "share of eta", Doc: "of Muon: the learning rate of AdamW, which steps biases and other vectors, as a share of that of matrices", Min: 0, Max: 100, Default: 0.015, Scale: Log}
)

// OptimiserKnobs are what an algorithm declares beside eta and decay whose replicas may follow their gradients in any
// of these ways.
var OptimiserKnobs = append([]Knob{KnobMu}, optimiserKnobs...)

// optimiserKnobs are those beside the momentum.
var optimiserKnobs = []Knob{knobOptimiser, knobBeta1, knobBeta2, knobVectors, knobLengths, knobLast}

// adamEpsilon is added to the root of the mean of squares.
const adamEpsilon = 1e-8

// descent is how a step follows its gradient.
type descent struct {
	by                    string  // a choice of knobOptimiser
	eta, mu               float32 // mu: momentum of sgd and muon
	decay                 float32 // decoupled: of adamw and muon
	beta1, beta2, vectors float32
	fixed, hidden         bool // lengths and the last matrix, of muon
}

// descent is what the knobs say, of which the rate and the momentum have these names.
func (v Values) descent(eta, momentum string) descent {
	d := descent{by: v.Choice(knobOptimiser.Name), eta: v.F(eta), mu: v.F(momentum), beta1: v.F(knobBeta1.Name), beta2: v.F(knobBeta2.Name), vectors: v.F(knobVectors.Name), fixed: v.Is(knobLengths.Name, "fixed"), hidden: v.Is(knobLast.Name, "adamw")}
	if v.decouples() {
		d.decay = v.F(KnobWD.Name)
	}
	return d
}

// adapts says that gradients are followed by another optimiser than SGD.
func (v Values) adapts() bool { return v.Has(knobOptimiser.Name) && !v.Is("optimiser", "sgd") }

// orthogonalises says that the optimiser is Muon, whose matrices all threads iterate on, in memory for one at a time.
func (v Values) orthogonalises() bool { return v.Has(knobOptimiser.Name) && v.Is("optimiser", "muon") }

// decouples says that weight decay is no part of the gradient.
func (v Values) decouples() bool {
	return v.Has(knobOptimiser.Name) && (v.Is("optimiser", "adamw") || v.Is("optimiser", "muon"))
}

// Moments are the blocks of an optimiser: a buffer of momentum, or two moments and a count of steps. Those of Muon are
// its own: what Adam knows of matrices is none of its, and the other way round.
func Moments(k Values, shared bool, l engine.Layout) []Block {
	if !k.adapts() {
		return []Block{Params(BlockM, shared, EnterZero, l)}
	}
	first, second, steps := moments(k.Choice(knobOptimiser.Name), k.Is(knobLast.Name, "adamw"))
	return []Block{Params(first, shared, EnterZero, l), Params(second, shared, EnterZero, l), Counter(steps, shared)}
}

// moments are the names of the blocks of an optimiser that is not SGD. Those of Muon that takes hidden layers alone are
// others, so that a last matrix that AdamW takes over begins with a count of its own: divided by the root of a moment
// that saw nothing, its first steps would be huge.
func moments(by string, hidden bool) (first, second, steps string) {
	switch {
	case by == "muon" && hidden:
		return BlockHidden, BlockHiddenV, BlockHiddenT
	case by == "muon":
		return BlockMuon, BlockMuonV, BlockMuonT
	}
	return BlockM1, BlockV, BlockT
}

// follow lists a step of x (1 row) along gradient g, with row r of the blocks of Moments. Statements that come before
// belong to it: they may make g what is to be followed.
func (e *Env) follow(d descent, x engine.Mat, r engine.Row, g engine.Mat, before ...engine.Lin) (tasks []engine.Task) {
	one := engine.Rows(1)
	if d.by == "sgd" {
		prog := append(before, Nesterov(x, e.Block(BlockM).Sub(r, 1), g, d.eta, d.mu)...)
		return []engine.Task{engine.Update{Rows: one, Prog: prog}}
	}
	if len(before) > 0 {
		tasks = append(tasks, engine.Update{Rows: one, Prog: before})
	}
	first, second, steps := moments(d.by, d.hidden)
	m, v, t := e.Block(first).Sub(r, 1), e.Block(second).Sub(r, 1), e.Record(steps).URow(r)
	t[0]++
	if d.by == "muon" {
		return append(tasks, engine.Muon{X: x, M: m, V: v, G: g, Rows: one, Eta: d.eta, Mu: d.mu, WD: d.decay, Fixed: d.fixed, Hidden: d.hidden, T: t[0],
			Share: d.vectors, B1: d.beta1, B2: d.beta2, Eps: adamEpsilon})
	}
	return append(tasks, engine.Adam{X: x, M: m, V: v, G: g, Rows: one, Eta: d.eta, B1: d.beta1, B2: d.beta2, Eps: adamEpsilon, WD: d.decay, T: t[0]})
}

// rest lists what makes row r of the blocks of Moments that of a member that has taken no step.
func (e *Env) rest(k Values, r engine.Row) (tasks []engine.Task) {
	for _, b := range Moments(k, false, e.Layout) {
		if b.Record {
			e.Record(b.Name).URow(r)[0] = 0
			continue
		}
		tasks = append(tasks, engine.Fill{Dst: engine.RowOf(e.Block(b.Name), r)})
	}
	return tasks
}
