package enginetest

import (
	"context"
	"math"
	"testing"

	"brood/models/engine"
	"brood/models/noise"
)

// Vector checks the tasks that need no model, on one and three threads. The layout should exceed 50,000 parameters, so
// that threads share a vector.
func Vector(t *testing.T, l engine.Layout, newDoer func(t *testing.T, threads int) Doer) {
	for _, threads := range []int{1, 3} {
		v := &vector{l, newDoer(t, threads)}
		t.Run("update", v.update)
		t.Run("tree sum", v.treeSum)
		t.Run("noise sum", v.noiseSum)
		t.Run("noise of other kinds", v.noiseKinds)
		t.Run("noise that does not fit", v.noiseErrors)
		t.Run("perturb", v.perturb)
		t.Run("adam", v.adam)
		t.Run("natural step", v.naturalStep)
		t.Run("crossover", v.crossover)
		t.Run("distance", v.distance)
		t.Run("vector errors", v.errors)
	}
}

type vector struct {
	l engine.Layout
	e Doer
}

// filled is a matrix of different numbers.
func (v *vector) filled(rows int, seed uint64) engine.Mat {
	m := engine.New(rows, v.l.Params, engine.F32)
	for r := range rows {
		noise.Key{Seed: seed, Purpose: noise.Data, Member: uint32(r)}.Each(0, m.Cols, m.Cols, func(at int, eps []float32) {
			copy(m.Row(engine.Row(r))[at:], eps)
		})
	}
	return m
}

// update against one loop per element: statements read what earlier ones wrote, 1-row sources serve all rows.
func (v *vector) update(t *testing.T) {
	a, b, c, mean := v.filled(4, 1), v.filled(4, 2), v.filled(4, 3), v.filled(1, 4)
	wa, wb := a.Clone(), b.Clone()
	rows := []engine.Row{3, 0, 1}
	do(t, v.e, engine.Update{Rows: rows, Prog: []engine.Lin{
		{Dst: b, Terms: []engine.Term{{C: 0.9, Src: b}, {C: 0.3, Src: a}}},
		{Dst: a, Terms: []engine.Term{{C: 1, Src: a}, {C: -0.1, Src: b}, {C: 0.01, Src: mean}}},
		{Dst: b, Terms: []engine.Term{{C: 1, Src: a}, {C: 0.7, Src: b}, {C: -0.2, Src: c}, {C: 0.3, Src: mean}, {C: 1.1, Src: b}}},
		{Dst: a, Terms: []engine.Term{{C: 1.0 / 3, Src: a}}},
		{Dst: c},
	}})
	for _, r := range rows {
		x, y := wa.Row(r), wb.Row(r)
		z := v.filled(4, 3).Row(r)
		for i, m := range mean.F {
			y[i] = float32(0.9*y[i]) + float32(0.3*x[i])
			x[i] = float32(x[i]) + float32(-0.1*y[i]) + float32(0.01*m)
			y[i] = float32(x[i]) + float32(0.7*y[i]) + float32(-0.2*z[i]) + float32(0.3*m) + float32(1.1*y[i])
			x[i] = float32(float32(1.0/3) * x[i])
		}
		same(t, "cleared", c.Row(r), make([]float32, c.Cols))
	}
	same(t, "first", a.F, wa.F)
	same(t, "second", b.F, wb.F)
}

func (v *vector) treeSum(t *testing.T) {
	a, b, d := v.filled(1, 1), v.filled(1, 2), engine.New(1, v.l.Params, engine.F32)
	want := a.Clone()
	for i := range want.F {
		want.F[i] += b.F[i]
	}
	do(t, v.e, engine.TreeSum{Dst: d, A: a, B: b}, engine.TreeSum{Dst: a, A: a, B: b})
	same(t, "sum", d.F, want.F)
	same(t, "sum in place", a.F, want.F)
}

// eps is the Gaussian noise of one candidate over all parameters.
func (v *vector) eps(key noise.Key) []float32 { return epsilon(&v.l, engine.Noise{}, key) }

func (v *vector) noiseSum(t *testing.T) {
	key := noise.Key{Seed: 3, Purpose: noise.Candidate, Round: 7}
	ids, weights := []engine.Member{4, 1, 7, 2}, []float32{0.5, -1.25, 0, 3}
	for _, c := range []struct{ anti, square bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		want := make([]float32, v.l.Params)
		for i, id := range ids {
			k, sign := key, float32(1)
			k.Member = uint32(id)
			if c.anti {
				k.Member, sign = uint32(id)/2, 1-2*float32(id%2)
			}
			for j, e := range v.eps(k) {
				e *= sign
				if c.square {
					e = float32(e*e) - 1
				}
				want[j] += float32(weights[i] * e)
			}
		}
		task := engine.NoiseSum{Weights: weights, Key: key, Antithetic: c.anti, Square: c.square, IDs: ids}
		whole := engine.New(1, v.l.Params, engine.F32)
		task.Dst = engine.All(whole)
		do(t, v.e, task)
		same(t, "whole", whole.F, want)
		sliced := engine.New(3, v.l.Params, engine.F32)
		cuts := []int{0, 5, 1029, v.l.Params/2 + 1, v.l.Params}
		for i := range len(cuts) - 1 {
			task.Dst = engine.Span{Mat: sliced, Row: 1, Rows: 1, Lo: cuts[i], Hi: cuts[i+1]}
			do(t, v.e, task)
		}
		same(t, "slices", sliced.Row(1), want)
		same(t, "other rows", sliced.Row(2), make([]float32, v.l.Params))
	}
}

func (v *vector) perturb(t *testing.T) {
	x := v.filled(2, 6)
	want := x.Clone()
	keys := []noise.Key{{Seed: 1, Purpose: noise.Mutate, Member: 3}, {Seed: 1, Purpose: noise.Mutate, Member: 4}}
	sigma := []float32{0.1, 2}
	for r, k := range keys {
		for j, e := range v.eps(k) {
			want.Row(engine.Row(r))[j] += float32(sigma[r] * e)
		}
	}
	do(t, v.e, engine.Perturb{X: x, Sigma: sigma, Keys: keys})
	same(t, "perturbed", x.F, want.F)
}

// adam against the equations in float64.
func (v *vector) adam(t *testing.T) {
	x, m, s, g := v.filled(2, 1), engine.New(2, v.l.Params, engine.F32), engine.New(2, v.l.Params, engine.F32), v.filled(2, 2)
	start := x.Clone()
	type moment struct{ x, m, v float64 }
	ref := make([]moment, v.l.Params)
	for i := range ref {
		ref[i].x = float64(x.Row(1)[i])
	}
	const eta, b1, b2, eps, wd = 0.01, 0.9, 0.999, 1e-8, 0.1
	for step := uint64(1); step <= 3; step++ {
		do(t, v.e, engine.Adam{X: x, M: m, V: s, G: g, Rows: []engine.Row{1}, Eta: eta, B1: b1, B2: b2, Eps: eps, WD: wd, T: step})
		for i := range ref {
			r, d := &ref[i], float64(g.Row(1)[i])
			r.m, r.v = b1*r.m+(1-b1)*d, b2*r.v+(1-b2)*d*d
			r.x -= eta*wd*r.x + eta*(r.m/(1-math.Pow(b1, float64(step))))/(math.Sqrt(r.v/(1-math.Pow(b2, float64(step))))+eps)
		}
	}
	for i := range ref {
		if math.Abs(float64(x.Row(1)[i])-ref[i].x) > 1e-5 {
			t.Fatalf("element %d is %v, want %v", i, x.Row(1)[i], ref[i].x)
		}
	}
	same(t, "row that took no step", x.Row(0), start.Row(0))
}

func (v *vector) crossover(t *testing.T) {
	a, b, dst := v.filled(2, 1), v.filled(2, 2), engine.New(2, v.l.Params, engine.F32)
	keys := []noise.Key{{Seed: 5, Purpose: noise.Select, Member: 1}, {Seed: 5, Purpose: noise.Select, Member: 2}}
	do(t, v.e, engine.Crossover{Dst: dst, A: a, B: b, Keys: keys})
	for r := range engine.Row(2) {
		heads := 0
		for i, d := range dst.Row(r) {
			k := keys[r]
			tn := 0
			for v.l.Tensors[tn].Lo+v.l.Tensors[tn].Len <= i {
				tn++
			}
			if i < 3000 || i%97 == 0 { // the address of the coin
				k.Stream = uint32(tn)
				o := i - v.l.Tensors[tn].Lo
				if coin := k.Uint32(o/32) >> (o % 32) & 1; (coin == 1) != (d == b.Row(r)[i]) {
					t.Fatalf("element %d does not follow its coin %d", i, coin)
				}
			}
			switch d {
			case a.Row(r)[i]:
			case b.Row(r)[i]:
				heads++
			default:
				t.Fatalf("element %d is %v, from neither parent", i, d)
			}
		}
		// Five deviations of a fair coin.
		if n := float64(dst.Cols); math.Abs(float64(heads)-n/2) > 2.5*math.Sqrt(n) {
			t.Errorf("%d of %d elements are from B", heads, dst.Cols)
		}
	}
	do(t, v.e, engine.Crossover{Dst: dst, A: a, B: b, Keys: keys, PerTensor: true})
	for r := range engine.Row(2) {
		for i, tn := range v.l.Tensors {
			k := keys[r]
			k.Stream = uint32(i)
			from := a
			if k.Uint32(0)&1 == 1 {
				from = b
			}
			same(t, tn.Name, dst.Row(r)[tn.Lo:tn.Lo+tn.Len], from.Row(r)[tn.Lo:tn.Lo+tn.Len])
		}
	}
}

func (v *vector) distance(t *testing.T) {
	x, c := v.filled(3, 1), v.filled(1, 2)
	copy(x.Row(2), c.F)
	out := make([]float64, 3)
	do(t, v.e, engine.Distance{X: x, Centre: c, RMS: out})
	for r := range engine.Row(3) {
		var sum float64
		for i, a := range x.Row(r) {
			sum += (float64(a) - float64(c.F[i])) * (float64(a) - float64(c.F[i]))
		}
		if want := math.Sqrt(sum / float64(x.Cols)); math.Abs(out[r]-want) > 1e-9*want {
			t.Errorf("row %d is %v from the centre, want %v", r, out[r], want)
		}
	}
}

func (v *vector) errors(t *testing.T) {
	x, one, thin := v.filled(2, 1), v.filled(1, 1), engine.New(2, 3, engine.F32)
	counters := engine.New(2, v.l.Params, engine.U64)
	two := engine.Rows(2)
	key := noise.Key{Seed: 1}
	for name, task := range map[string]engine.Task{
		"columns":          engine.Update{Rows: two, Prog: []engine.Lin{{Dst: x, Terms: []engine.Term{{C: 1, Src: thin}}}}},
		"type":             engine.Update{Rows: two, Prog: []engine.Lin{{Dst: counters}}},
		"row":              engine.Update{Rows: []engine.Row{2}, Prog: []engine.Lin{{Dst: x}}},
		"shared dst":       engine.Update{Rows: two, Prog: []engine.Lin{{Dst: one, Terms: []engine.Term{{C: 1, Src: x}}}}},
		"tree rows":        engine.TreeSum{Dst: x, A: x, B: x},
		"tree columns":     engine.TreeSum{Dst: one, A: one, B: thin.Sub(0, 1)},
		"weights":          engine.NoiseSum{Dst: engine.All(one), Weights: []float32{1}, Key: key},
		"noise rows":       engine.NoiseSum{Dst: engine.All(x), Key: key},
		"noise span":       engine.NoiseSum{Dst: engine.Span{Mat: one, Rows: 1, Lo: 4, Hi: one.Cols + 1}, Key: key},
		"noise columns":    engine.NoiseSum{Dst: engine.All(thin.Sub(0, 1)), Key: key},
		"sigmas":           engine.Perturb{X: x, Sigma: []float32{1}, Keys: make([]noise.Key, 2)},
		"adam step 0":      engine.Adam{X: x, M: x, V: x, G: x, Rows: two},
		"adam columns":     engine.Adam{X: x, M: thin, V: x, G: x, Rows: two, T: 1},
		"natural rows":     engine.NaturalStep{X: x, S: one, G: one, H: one},
		"natural columns":  engine.NaturalStep{X: one, S: one, G: thin.Sub(0, 1), H: one},
		"natural span":     engine.NaturalStep{X: one, S: one, G: one, H: one, Lo: 5, Hi: one.Cols + 1},
		"natural order":    engine.NaturalStep{X: one, S: one, G: one, H: one, Lo: 5, Hi: 4},
		"crossover rows":   engine.Crossover{Dst: x, A: x, B: one, Keys: make([]noise.Key, 2)},
		"crossover keys":   engine.Crossover{Dst: x, A: x, B: x},
		"distance results": engine.Distance{X: x, Centre: one, RMS: make([]float64, 1)},
		"distance centre":  engine.Distance{X: x, Centre: x, RMS: make([]float64, 2)},
		"torn matrix":      engine.TreeSum{Dst: engine.Mat{Rows: 1, Cols: v.l.Params}, A: one, B: one},
	} {
		if err := v.e.Do(context.Background(), task); err == nil || err.Error() == "" {
			t.Errorf("%s: no error", name)
		}
	}
}
