package optim

import "brood/models/engine"

// How a gradient is followed: by SGD, or by Adam (Kingma, Ba: Adam: a method for stochastic optimization, 2014) or
// AdamW (Loshchilov, Hutter: Decoupled weight decay regularization, 2017), with bias correction:
//
//	m <- b1*m + (1-b1)*g;  v <- b2*v + (1-b2)*g^2
//	x <- x - eta*(m/(1-b1^t) / (sqrt(v/(1-b2^t)) + eps) + decay*x)      decay of adamw; of the others g += decay*x
//
// The algorithms whose source says "a step of SGD" take all three. Where momentum is a part of the rule itself, as of
// the elastic ones, they do not.
var (
	knobOptimiser = Knob{Name: "optimiser", Title: "optimiser", Doc: "how a gradient is followed: SGD with Nesterov momentum; Adam, or AdamW, whose weight decay is decoupled: their eta is 0.001 or so", Choices: []string{"sgd", "adam", "adamw"}, Max: 2}
	knobBeta1     = Knob{Name: "beta1", Label: "β₁", Title: "first decay", Doc: "of Adam: what the mean of gradients keeps in a step", Min: 0, Max: 0.99999, Default: 0.9}
	knobBeta2     = Knob{Name: "beta2", Label: "β₂", Title: "second decay", Doc: "of Adam: what the mean of their squares keeps in a step", Min: 0, Max: 0.99999, Default: 0.999}
)

// OptimiserKnobs are what an algorithm declares beside eta and decay whose replicas may follow their gradients in any
// of these ways.
var OptimiserKnobs = []Knob{KnobMu, knobOptimiser, knobBeta1, knobBeta2}

// adamEpsilon is added to the root of the mean of squares.
const adamEpsilon = 1e-8

// adapts says that gradients are followed by Adam or AdamW.
func (v Values) adapts() bool { return v.Has(knobOptimiser.Name) && !v.Is("optimiser", "sgd") }

// decouples says that weight decay is no part of the gradient.
func (v Values) decouples() bool {
	return v.Has(knobOptimiser.Name) && v.Is("optimiser", "adamw")
}

// Moments are the blocks of an optimiser: a buffer of momentum, or two moments and a count of steps.
func Moments(k Values, shared bool, l engine.Layout) []Block {
	if !k.adapts() {
		return []Block{Params(BlockM, shared, EnterZero, l)}
	}
	return []Block{Params(BlockM1, shared, EnterZero, l), Params(BlockV, shared, EnterZero, l), Counter(BlockT, shared)}
}

// follow lists a step along gradient g of row r of x and of the blocks of Moments.
func (e *Env) follow(k Values, x engine.Mat, r engine.Row, g engine.Mat) []engine.Task {
	one := engine.Rows(1)
	if !k.adapts() {
		return []engine.Task{engine.Update{Rows: one, Prog: Nesterov(x.Sub(r, 1), e.Block(BlockM).Sub(r, 1), g, k.F("eta"), k.F("momentum"))}}
	}
	t := e.Record(BlockT).URow(r)
	t[0]++
	step := engine.Adam{X: x.Sub(r, 1), M: e.Block(BlockM1).Sub(r, 1), V: e.Block(BlockV).Sub(r, 1), G: g, Rows: one,
		Eta: k.F("eta"), B1: k.F("beta1"), B2: k.F("beta2"), Eps: adamEpsilon, T: t[0]}
	if k.decouples() {
		step.WD = k.F("decay")
	}
	return []engine.Task{step}
}
