package optim

import (
	"context"
	"fmt"
	"math"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/native"
	"brood/models/noise"
)

// bowl is an engine for the paper tests: sample s has the loss 1/2 sum_j a_j*(x_j - e_sj)^2, or, flat, the loss -e_s.x
// whose gradient does not depend on x. Everything else is the native engine's.
type bowl struct {
	*native.Vector
	layout engine.Layout
	a      []float64
	e      [][]float64 // target by sample
	flat   bool
	f      func(x []float64) float64 // the loss of every sample in place of these, if not nil
	judges int                       // of the samples, the last so many are the validation split
}

func newBowl(t *testing.T, cols, samples int) *bowl {
	t.Helper()
	b := &bowl{layout: engine.Layout{Params: cols}}
	b.layout.Tensors = []engine.Tensor{{Name: "x", Shape: []int{cols}, Len: cols, Cols: cols}}
	for j := range cols {
		b.a = append(b.a, 0.5+float64(j%4)/4)
	}
	for s := range samples {
		key, row := noise.Key{Purpose: noise.Data, Member: uint32(s)}, make([]float64, cols)
		for j := range row {
			row[j] = float64(key.Gauss(j))
		}
		b.e = append(b.e, row)
	}
	var err error
	if b.Vector, err = native.New(b.layout, 1); err != nil {
		t.Fatal(err)
	}
	return b
}

// gradient is that of the mean loss of a mini-batch, in float64.
func (b *bowl) gradient(x []float64, batch []int32) []float64 {
	g := make([]float64, len(x))
	for _, s := range batch {
		for j := range g {
			if b.flat {
				g[j] -= b.e[s][j] / float64(len(batch))
			} else {
				g[j] += b.a[j] * (x[j] - b.e[s][j]) / float64(len(batch))
			}
		}
	}
	return g
}

// loss is the mean loss of a mini-batch, in float64.
func (b *bowl) loss(x []float64, batch []int32) (l float64) {
	if b.f != nil {
		return b.f(x)
	}
	for _, s := range batch {
		for j := range x {
			if b.flat {
				l -= b.e[s][j] * x[j] / float64(len(batch))
			} else {
				l += b.a[j] / 2 * (x[j] - b.e[s][j]) * (x[j] - b.e[s][j]) / float64(len(batch))
			}
		}
	}
	return l
}

// flat is all elements of m, whose engine is one of the processor.
func flat(m engine.Mat) []float32 { return ram.View(m).F }

// rowOf is row r of m, whose engine is one of the processor.
func rowOf(m engine.Mat, r engine.Row) []float32 { return ram.View(m).Row(r) }

func (b *bowl) Do(ctx context.Context, tasks ...engine.Task) error {
	for _, task := range tasks {
		switch k := task.(type) {
		case engine.Gradients:
			for i, r := range k.Rows {
				for j, v := range b.gradient(doubles(rowOf(k.X, r)), k.Batches[i]) {
					rowOf(k.G, engine.Row(i))[j] = float32(v)
				}
				k.Loss[i] = 1
			}
		case engine.Evaluate:
			for i, r := range k.Rows {
				k.Loss[i] = float64(len(k.Batches[i])) * b.loss(doubles(rowOf(k.X, r)), k.Batches[i])
			}
		case engine.Candidates:
			x := make([]float32, b.layout.Params)
			for i := range k.IDs {
				if err := b.Candidate(0, x, &k, i); err != nil {
					return err
				}
				k.Fitness[i] = float32(-b.loss(doubles(x), k.Batches[min(i, len(k.Batches)-1)]))
			}
		default:
			if err := b.Vector.Do(ctx, task); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bowl) ids() []int32 {
	ids := make([]int32, len(b.e))
	for i := range ids {
		ids[i] = int32(i)
	}
	return ids
}

func (b *bowl) Train() []int32      { return b.ids()[:len(b.e)-b.judges] }
func (b *bowl) Validation() []int32 { return b.ids()[len(b.e)-b.judges:] }

// population is one algorithm on a bowl, all members on one worker.
type population struct {
	*Env
	t     *testing.T
	bowl  *bowl
	alg   *Algorithm
	k     Values
	round uint64
}

// start is where all members begin.
func start(j int) float64 { return 2 + math.Sin(float64(j)) }

func (b *bowl) populate(t *testing.T, alg *Algorithm, members int, turned set) *population {
	t.Helper()
	p := &population{t: t, bowl: b, alg: alg, k: turned.of(alg)}
	r := Place(IDs(members), []int{0})
	p.Env = &Env{Seed: 11, Roster: r, Mine: r.Hosted(0), Layout: b.layout, Engine: b, Data: b, Blocks: map[string]engine.Mat{}, Records: map[string]engine.Host{},
		Comm: NewComm(0, 1, r, []int{0}, memoryLink{newMemory(), 0}, b, 0)}
	for _, d := range alg.Blocks(p.k, b.layout) {
		rows := members
		if d.Shared {
			rows = 1
		}
		m := engine.NewHost(rows, d.Cols, d.Type)
		for i := range m.F {
			switch d.Enter {
			case EnterCentre, EnterDrawn:
				m.F[i] = float32(start(i % d.Cols))
			case EnterOne:
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

// rounds does n rounds and returns the last report.
func (p *population) rounds(n int) (rep Report) {
	p.t.Helper()
	for range n {
		p.Recycle()
		var err error
		if rep, err = p.alg.Program.Round(context.Background(), p.Env, p.k, p.round); err != nil {
			p.t.Fatalf("%s, round %d: %v", p.alg.Name, p.round, err)
		}
		p.round++
	}
	return rep
}

func (p *population) centre() []float64 {
	p.t.Helper()
	dst := ram.New(1, p.Layout.Params)
	if err := p.alg.Program.Centre(context.Background(), p.Env, p.k, dst); err != nil {
		p.t.Fatal(err)
	}
	return doubles(flat(dst))
}

func (p *population) row(block string, m int) []float64 {
	if r, ok := p.Records[block]; ok {
		return doubles(r.Row(engine.Row(m)))
	}
	return doubles(rowOf(p.Block(block), engine.Row(m)))
}

// same compares rows of a block with a twin's.
func (p *population) same(block string, twin ...[]float64) {
	p.t.Helper()
	for m, want := range twin {
		if far := distance(p.row(block, m), want); !(far <= 1e-5) {
			p.t.Errorf("%s: %s of member %d is %g from the twin's", p.alg.Name, block, m, far)
		}
	}
}

// apart is the largest difference of two vectors, relative where they are above one.
func distance(a, b []float64) (far float64) {
	for i := range b {
		if d := math.Abs(a[i]-b[i]) / max(1, math.Abs(b[i])); !(d <= far) {
			far = d
		}
	}
	return far
}

func doubles(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}

// twins are n copies of the start, zeros n rows of nothing: what a twin keeps in float64.
func twins(cols, n int) (x, zeros [][]float64) {
	for range n {
		row := make([]float64, cols)
		for j := range row {
			row[j] = float64(float32(start(j)))
		}
		x, zeros = append(x, row), append(zeros, make([]float64, cols))
	}
	return x, zeros
}

// streams draws each member's next mini-batch as the seam defines it.
func (p *population) streams() func(m int) []int32 {
	at := make([]uint64, len(p.Mine))
	return func(m int) []int32 {
		b := p.k.I("batch")
		at[m] += uint64(b)
		return p.Stream(Member(m), at[m]-uint64(b), b, p.k.share())
	}
}

// nes is Nesterov's step: buf <- mu*buf + g; x <- x - eta*(g + mu*buf).
func nes(x, buf, g []float64, eta, mu float64) {
	for j := range x {
		buf[j] = mu*buf[j] + g[j]
		x[j] -= eta * (g[j] + mu*buf[j])
	}
}

func average64(rows [][]float64) []float64 {
	out := make([]float64, len(rows[0]))
	for _, r := range rows {
		for j := range out {
			out[j] += r[j] / float64(len(rows))
		}
	}
	return out
}

// normal is the noise of a key, as an engine adds it.
func (p *population) normal(key noise.Key) []float64 {
	p.t.Helper()
	z := ram.New(1, p.Layout.Params)
	if err := p.Engine.Do(context.Background(), engine.Perturb{X: z, Sigma: []float32{1}, Keys: []noise.Key{key}}); err != nil {
		p.t.Fatal(err)
	}
	return doubles(flat(z))
}

// set is what a test turns knobs to: numbers, and choices by name.
type set map[string]any

// of are the values of an algorithm with these knobs turned.
func (s set) of(alg *Algorithm) Values {
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

func describe(s set) string { return fmt.Sprint(map[string]any(s)) }
