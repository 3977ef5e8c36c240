package optimtest

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/native"
	"brood/models/noise"
	"brood/optim"
	"brood/optim/collective"
)

// Bowl is an engine for the paper tests. Sample s has the loss 1/2 sum_j a_j*(x_j - e_sj)^2 or, if Flat is set, the
// loss -e_s.x, whose gradient does not depend on x. The native engine executes all other tasks.
type Bowl struct {
	*native.Vector
	Layout          engine.Layout
	A               []float64
	E               [][]float64 // target of each sample
	Flat            bool
	F               func(x []float64) float64 // if not nil, the loss of every sample
	ValidationCount int                       // number of samples at the end that form the validation split
}

func NewBowl(t *testing.T, cols, samples int) *Bowl {
	t.Helper()
	b := &Bowl{Layout: engine.Layout{Params: cols}}
	b.Layout.Tensors = []engine.Tensor{{Name: "x", Shape: []int{cols}, Len: cols, Cols: cols}}
	for j := range cols {
		b.A = append(b.A, 0.5+float64(j%4)/4)
	}
	for s := range samples {
		key, row := noise.Key{Purpose: noise.Data, Member: uint32(s)}, make([]float64, cols)
		for j := range row {
			row[j] = float64(key.Gauss(j))
		}
		b.E = append(b.E, row)
	}
	var err error
	if b.Vector, err = native.New(b.Layout, 1); err != nil {
		t.Fatal(err)
	}
	return b
}

// Gradient returns the gradient of the mean loss of a mini-batch, in float64.
func (b *Bowl) Gradient(x []float64, batch []int32) []float64 {
	g := make([]float64, len(x))
	for _, s := range batch {
		for j := range g {
			if b.Flat {
				g[j] -= b.E[s][j] / float64(len(batch))
			} else {
				g[j] += b.A[j] * (x[j] - b.E[s][j]) / float64(len(batch))
			}
		}
	}
	return g
}

// Loss returns the mean loss of a mini-batch, in float64.
func (b *Bowl) Loss(x []float64, batch []int32) (l float64) {
	if b.F != nil {
		return b.F(x)
	}
	for _, s := range batch {
		for j := range x {
			if b.Flat {
				l -= b.E[s][j] * x[j] / float64(len(batch))
			} else {
				l += b.A[j] / 2 * (x[j] - b.E[s][j]) * (x[j] - b.E[s][j]) / float64(len(batch))
			}
		}
	}
	return l
}

// Flat returns all elements of m, which must be in host memory.
func Flat(m engine.Mat) []float32 { return ram.View(m).F }

// RowOf returns row r of m, which must be in host memory.
func RowOf(m engine.Mat, r engine.Row) []float32 { return ram.View(m).Row(r) }

func (b *Bowl) Do(ctx context.Context, tasks ...engine.Task) error {
	for _, task := range tasks {
		switch k := task.(type) {
		case engine.Gradients:
			for i, r := range k.Rows {
				for j, v := range b.Gradient(Doubles(RowOf(k.X, r)), k.Batches[i]) {
					RowOf(k.G, engine.Row(i))[j] = float32(v)
				}
				k.Loss[i] = 1
			}
		case engine.Evaluate:
			for i, r := range k.Rows {
				k.Loss[i] = float64(len(k.Batches[i])) * b.Loss(Doubles(RowOf(k.X, r)), k.Batches[i])
			}
		case engine.Candidates:
			x := make([]float32, b.Layout.Params)
			for i := range k.IDs {
				if err := b.Candidate(0, x, &k, i); err != nil {
					return err
				}
				k.Fitness[i] = float32(-b.Loss(Doubles(x), k.Batches[min(i, len(k.Batches)-1)]))
			}
		default:
			if err := b.Vector.Do(ctx, task); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *Bowl) ids() []int32 {
	ids := make([]int32, len(b.E))
	for i := range ids {
		ids[i] = int32(i)
	}
	return ids
}

func (b *Bowl) Train() []int32       { return b.ids()[:len(b.E)-b.ValidationCount] }
func (b *Bowl) Label(id int32) int32 { return id % BowlClasses }
func (b *Bowl) Validation() []int32  { return b.ids()[len(b.E)-b.ValidationCount:] }

// Population is one algorithm on a bowl, with all members on one worker.
type Population struct {
	*optim.Env
	T         *testing.T
	Bowl      *Bowl
	Algorithm *optim.Algorithm
	Knobs     optim.Values
	Next      uint64
}

// Start returns the initial value of parameter j, the same for all members.
func Start(j int) float64 { return 2 + math.Sin(float64(j)) }

func (b *Bowl) Populate(t *testing.T, alg *optim.Algorithm, members int, turned Set) *Population {
	t.Helper()
	p := &Population{T: t, Bowl: b, Algorithm: alg, Knobs: turned.Of(alg)}
	r := collective.Place(collective.IDs(members), []int{0})
	p.Env = &optim.Env{
		Seed:    11,
		Roster:  r,
		Mine:    r.Hosted(0),
		Layout:  b.Layout,
		Engine:  b,
		Data:    b,
		Blocks:  map[string]engine.Mat{},
		Records: map[string]engine.Host{},
		Comm:    collective.NewComm(0, 1, r, []int{0}, nil, b, 0),
	}
	for _, d := range alg.Blocks(p.Knobs, b.Layout) {
		rows := members
		if d.Shared {
			rows = 1
		}
		m := engine.NewHost(rows, d.Cols, d.Type)
		for i := range m.F {
			switch d.Enter {
			case optim.EnterCentre, optim.EnterDrawn:
				m.F[i] = float32(Start(i % d.Cols))
			case optim.EnterOne:
				m.F[i] = 1
			}
		}
		if d.Record {
			p.Records[d.Name] = m
		} else {
			p.Blocks[d.Name] = ram.Of(m)
		}
	}
	return p
}

// Rounds executes n rounds and returns the last report.
func (p *Population) Rounds(n int) (rep optim.Report) {
	p.T.Helper()
	for range n {
		p.Recycle()
		p.Deal(p.Knobs)
		var err error
		if rep, err = p.Algorithm.Program.Round(context.Background(), p.Env, p.Knobs, p.Next); err != nil {
			p.T.Fatalf("%s, round %d: %v", p.Algorithm.Name, p.Next, err)
		}
		p.Next++
	}
	return rep
}

func (p *Population) CentreOf() []float64 {
	p.T.Helper()
	dst := ram.New(1, p.Layout.Params)
	if err := p.Algorithm.Program.Centre(context.Background(), p.Env, p.Knobs, dst); err != nil {
		p.T.Fatal(err)
	}
	return Doubles(Flat(dst))
}

func (p *Population) RowOf(block string, m int) []float64 {
	if r, ok := p.Records[block]; ok {
		return Doubles(r.Row(engine.Row(m)))
	}
	return Doubles(RowOf(p.Block(block), engine.Row(m)))
}

// Same reports an error unless the first rows of a block equal those of a reference, to 1e-5.
func (p *Population) Same(block string, reference ...[]float64) {
	p.T.Helper()
	for m, want := range reference {
		if far := Distance(p.RowOf(block, m), want); !(far <= 1e-5) {
			p.T.Errorf("%s: %s of member %d is %g from the reference", p.Algorithm.Name, block, m, far)
		}
	}
}

// Distance returns the largest difference of two vectors, relative for elements above one.
func Distance(a, b []float64) (far float64) {
	for i := range b {
		if d := math.Abs(a[i]-b[i]) / max(1, math.Abs(b[i])); !(d <= far) {
			far = d
		}
	}
	return far
}

func Doubles(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}

// StartRows returns n initial rows and n rows of zeros, the float64 state of a reference.
func StartRows(cols, n int) (x, zeros [][]float64) {
	for range n {
		row := make([]float64, cols)
		for j := range row {
			row[j] = float64(float32(Start(j)))
		}
		x, zeros = append(x, row), append(zeros, make([]float64, cols))
	}
	return x, zeros
}

// Streams returns a function that draws the next mini-batch of a member, as [optim.Env.Stream] defines it.
func (p *Population) Streams() func(m int) []int32 {
	at := make([]uint64, len(p.Mine))
	return func(m int) []int32 {
		b := p.Knobs.I("batch")
		at[m] += uint64(b)
		p.Deal(p.Knobs)
		return p.Stream(engine.Member(m), at[m]-uint64(b), b)
	}
}

// Nesterov takes one step: buf <- mu*buf + g; x <- x - eta*(g + mu*buf).
func Nesterov(x, buf, g []float64, eta, mu float64) {
	for j := range x {
		buf[j] = mu*buf[j] + g[j]
		x[j] -= eta * (g[j] + mu*buf[j])
	}
}

func Average(rows [][]float64) []float64 {
	out := make([]float64, len(rows[0]))
	for _, r := range rows {
		for j := range out {
			out[j] += r[j] / float64(len(rows))
		}
	}
	return out
}

// Normal returns the noise of a key, as an engine adds it.
func (p *Population) Normal(key noise.Key) []float64 {
	p.T.Helper()
	z := ram.New(1, p.Layout.Params)
	if err := p.Engine.Do(context.Background(),
		engine.Perturb{X: z, Sigma: []float32{1}, Keys: []noise.Key{key}}); err != nil {
		p.T.Fatal(err)
	}
	return Doubles(Flat(z))
}

// Set has values of knobs: numbers, or names of choices.
type Set map[string]any

// Of returns the values of an algorithm with these knobs, and defaults for the others.
func (s Set) Of(alg *optim.Algorithm) optim.Values {
	x := map[string]float64{}
	for name, v := range s {
		k, ok := alg.Knob(name)
		if !ok {
			panic(alg.Name + " has no knob " + name)
		}
		var err error
		switch v := v.(type) {
		case string:
			x[name], err = k.Parse(v)
		case int:
			x[name] = float64(v)
		case float64:
			x[name] = v
		default:
			err = fmt.Errorf("%s = %v is of another type", name, v)
		}
		if err != nil {
			panic(err)
		}
	}
	return alg.Values(x)
}

func Describe(s Set) string { return fmt.Sprint(map[string]any(s)) }

// Cols and Samples are the size of a bowl in tests, BowlClasses the number of its classes: sample s has class s mod 5.
const Cols, Samples, BowlClasses = 13, 40, 5

func StartRow() []float64 {
	x, _ := StartRows(Cols, 1)
	return x[0]
}

// AdamW takes step t, counted from 1, of AdamW with decoupled decay.
func AdamW(x, m, v, g []float64, b1, b2, eta, decay float64, t int) {
	for j := range g {
		m[j] = b1*m[j] + (1-b1)*g[j]
		v[j] = b2*v[j] + (1-b2)*g[j]*g[j]
		mh, vh := m[j]/(1-math.Pow(b1, float64(t))), v[j]/(1-math.Pow(b2, float64(t)))
		x[j] -= eta*decay*x[j] + eta*mh/(math.Sqrt(vh)+1e-8)
	}
}

func Merge(v, more Set) Set {
	out := Set{}
	for _, from := range []Set{v, more} {
		maps.Copy(out, from)
	}
	return out
}

// SharedBatches returns a function that draws the next mini-batch of the shared stream.
func (p *Population) SharedBatches() func() []int32 {
	at := uint64(0)
	return func() []int32 {
		batch := make([]int32, p.Knobs.I("batch"))
		p.SharedBatch(batch, at)
		at += uint64(len(batch))
		return batch
	}
}

// Descending returns the indices of results, best first.
func Descending(fit []float64) []int {
	o := make([]int, len(fit))
	for i := range o {
		o[i] = i
	}
	slices.SortStableFunc(o, func(a, b int) int {
		if fit[a] > fit[b] {
			return -1
		}
		return 1
	})
	return o
}

func RMSDistance(a, b []float64) (rms float64) {
	for i := range a {
		rms += (a[i] - b[i]) * (a[i] - b[i]) / float64(len(a))
	}
	return math.Sqrt(rms)
}
