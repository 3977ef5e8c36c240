package optim

import (
	"context"
	"math"
	"slices"

	"brood/models/data"
	"brood/models/engine"
	"brood/models/noise"
)

// Knobs that several algorithms declare with one meaning.
var (
	KnobEta = Knob{Name: "eta", Title: "learning rate", Doc: "step size of the gradient update", Min: 0, Max: 100, Default: 0.1, Scale: Log}
	KnobMu  = Knob{Name: "momentum", Title: "momentum", Doc: "Nesterov momentum mu: buf <- mu*buf + g; step along g + mu*buf", Min: 0, Max: 0.9999, Default: 0.9}
	KnobWD  = Knob{Name: "decay", Title: "weight decay", Unit: "coefficient", Doc: "L2 coefficient added to the gradient", Min: 0, Max: 1, Default: 0, Scale: Log}
	KnobB   = Knob{Name: "batch", Title: "batch", Unit: "samples", Doc: "samples of one gradient of one member", Min: 1, Max: 1 << 20, Default: 128, Integer: true, Scale: Log}
)

// With is the knob with another default.
func (k Knob) With(d float64) Knob { k.Default = d; return k }

// SeriesLoss is the training loss of each member's last mini-batch.
var SeriesLoss = Series{Name: "loss", Title: "training loss", Unit: "nats", Doc: "mean cross-entropy of the member's mini-batches of the round", Kind: PerMember}

// SeriesFitness is what selection sees.
var SeriesFitness = Series{Name: "fitness", Title: "fitness", Unit: "-nats", Doc: "minus the loss; higher is better", Kind: PerMember}

// Nesterov is buf <- mu*buf + g; x <- x - eta*(g + mu*buf).
func Nesterov(x, buf, g engine.Mat, eta, mu float32) []engine.Lin {
	return []engine.Lin{
		{Dst: buf, Terms: []engine.Term{{C: mu, Src: buf}, {C: 1, Src: g}}},
		{Dst: x, Terms: []engine.Term{{C: 1, Src: x}, {C: -eta, Src: g}, {C: -eta * mu, Src: buf}}},
	}
}

// Assign is dst <- sum of c_i*src_i.
func Assign(dst engine.Mat, terms ...engine.Term) engine.Lin {
	return engine.Lin{Dst: dst, Terms: terms}
}

// T is a term of an Assign.
func T(c float32, src engine.Mat) engine.Term { return engine.Term{C: c, Src: src} }

// Step is one mini-batch gradient of some members.
type Step struct {
	X     engine.Mat   // parameters
	XRows []engine.Row // of X, one per entry of Rows
	Rows  []engine.Row // rows of Mine that step
	G     engine.Mat   // out: a row per entry
	Loss  []float32    // out: one per entry
	Batch int
	Frac  float64 // share of the training set that a member sees: a contiguous window of its own
	Decay float32 // weight decay: G += Decay*X
}

// MemberGradients draws each member's next mini-batch from its own data stream, advances its cursor and computes the
// gradients. The member's stream and its dropout masks are addressed by (member, cursor): placement does not matter.
func MemberGradients(ctx context.Context, e *Env, s Step) error {
	cursor := e.Block(BlockCursor)
	batches, masks := make([][]int32, len(s.Rows)), make([]noise.Key, len(s.Rows))
	for i, r := range s.Rows {
		m := e.Mine[r]
		c := cursor.URow(r)
		batches[i] = e.Stream(m, c[0], s.Batch, s.Frac)
		masks[i] = e.Rand(noise.Dropout, c[0], m)
		c[0] += uint64(s.Batch)
	}
	return e.gradients(ctx, s, batches, masks)
}

func (e *Env) gradients(ctx context.Context, s Step, batches [][]int32, masks []noise.Key) error {
	tasks := []engine.Task{engine.Gradients{X: s.X, Rows: s.XRows, Batches: batches, Stats: e.Block(BlockStats), StatRows: s.Rows,
		Masks: masks, G: s.G.Sub(0, len(s.Rows)), Loss: s.Loss}}
	if s.Decay > 0 {
		for i := range s.Rows {
			g := s.G.Sub(engine.Row(i), 1)
			tasks = append(tasks, engine.Update{Rows: engine.Rows(1), Prog: []engine.Lin{Assign(g, T(1, g), T(s.Decay, s.X.Sub(s.XRows[i], 1)))}})
		}
	}
	return e.Engine.Do(ctx, tasks...)
}

// window is the share of the training set that member m sees: frac*N samples from floor(N*rank/n), wrapping.
func (e *Env) window(m Member, frac float64) data.Window {
	n := len(e.Data.Train())
	if frac >= 1 {
		return data.Window{Lo: 0, Len: n}
	}
	return data.Window{Lo: n * e.Roster.Rank(m) / len(e.Roster.Members), Len: max(1, int(frac*float64(n)))}
}

// Stream draws n samples of member m's data stream from a cursor on; frac is the share of the training set it sees.
func (e *Env) Stream(m Member, cursor uint64, n int, frac float64) []int32 {
	out := make([]int32, n)
	data.Batch(out, e.Data.Train(), e.Rand(noise.Order, 0, m), cursor, e.window(m, frac))
	return out
}

// SharedBatch draws samples [at, at+len(dst)) of the one stream that a shared model trains on.
func (e *Env) SharedBatch(dst []int32, at uint64) {
	data.Batch(dst, e.Data.Train(), e.Rand(noise.Order, 0, 0), at, data.Window{Lo: 0, Len: len(e.Data.Train())})
}

// MemberPoints are one series' values of the members hosted here.
func (e *Env) MemberPoints(series string, v []float32) []Point {
	out := make([]Point, len(e.Mine))
	for i, m := range e.Mine {
		out[i] = Point{m, series, float64(v[i])}
	}
	return out
}

// MeanX is the centre of an algorithm whose members own a row x.
func MeanX(ctx context.Context, e *Env, dst engine.Mat) error {
	return e.Comm.AllReduce(ctx, "centre", e.Roster, e.Block(BlockX), dst, true)
}

// CopyBlock is the centre of an algorithm that keeps it in a shared block.
func CopyBlock(ctx context.Context, e *Env, name string, dst engine.Mat) error {
	return e.Engine.Copy(ctx, engine.All(dst), engine.All(e.Block(name)))
}

// Order lists indices of fit, best (highest) first; equal values by index, missing ones (NaN) last.
func Order(fit []float32) []int {
	o := make([]int, len(fit))
	for i := range o {
		o[i] = i
	}
	slices.SortStableFunc(o, func(a, b int) int {
		fa, fb := fit[a], fit[b]
		na, nb := fa != fa, fb != fb
		switch {
		case na && nb || fa == fb:
			return 0
		case nb || fa > fb:
			return -1
		}
		return 1
	})
	return o
}

// CentredRanks maps fitness to utilities in [-0.5, 0.5] by rank over all results: (P-1-position)/(P-1) - 0.5, 0 for a
// population of one. Missing results count as the worst.
func CentredRanks(fit []float32) []float32 {
	u := make([]float32, len(fit))
	if len(fit) < 2 {
		return u
	}
	for pos, i := range Order(fit) {
		u[i] = 0.5 - float32(pos)/float32(len(fit)-1)
	}
	return u
}

// Finite says whether no element is NaN or infinite.
func Finite(v []float32) bool {
	for _, x := range v {
		if math.Float32bits(x)&0x7f800000 == 0x7f800000 {
			return false
		}
	}
	return true
}
