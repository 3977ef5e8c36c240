package enginetest

import (
	"math"
	"slices"
	"testing"

	"github.com/zeebo/blake3"

	"brood/models/engine"
	"brood/models/engine/ram"
	"brood/models/noise"
)

// Vector checks the tasks that need no model, on one and three threads. The layout needs 2,001 parameters or more;
// threads share a vector of more than 50,000.
func Vector(t *testing.T, l engine.Layout, newEngine func(t *testing.T, threads int) engine.Engine) {
	var engines []engine.Engine
	for _, threads := range []int{1, 3} {
		v := &vector{l, newEngine(t, threads)}
		engines = append(engines, v.e)
		t.Run("update", v.update)
		t.Run("functions", v.functions)
		t.Run("sum", v.sum)
		t.Run("feedback", v.feedback)
		t.Run("elements", v.elements)
		t.Run("clip", v.clip)
		t.Run("looks", v.looks)
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
	t.Run("muon", func(t *testing.T) { (&vector{l: l}).muon(t, engines) })
}

type vector struct {
	l engine.Layout
	e engine.Engine
}

// filled returns a matrix of different numbers.
func (v *vector) filled(rows int, seed uint64) engine.Mat {
	m := ram.New(rows, v.l.Params)
	for r := range rows {
		noise.Key{Seed: seed, Purpose: noise.Data, Member: uint32(r)}.Each(0, m.Cols, m.Cols, func(at int, eps []float32) {
			copy(row(m, engine.Row(r))[at:], eps)
		})
	}
	return m
}

// update compares with one loop per element: statements read results of earlier ones, and 1-row sources are used for
// all rows.
func (v *vector) update(t *testing.T) {
	a, b, c, mean := v.filled(4, 1), v.filled(4, 2), v.filled(4, 3), v.filled(1, 4)
	wa, wb := clone(a), clone(b)
	rows := []engine.Row{3, 0, 1}
	do(t, v.e, engine.Update{Rows: rows, Prog: []engine.Lin{
		{Dst: b, Terms: []engine.Term{{C: 0.9, Src: b}, {C: 0.3, Src: a}}},
		{Dst: a, Terms: []engine.Term{{C: 1, Src: a}, {C: -0.1, Src: b}, {C: 0.01, Src: mean}}},
		{Dst: b, Terms: []engine.Term{{C: 1, Src: a}, {C: 0.7, Src: b}, {C: -0.2, Src: c}, {C: 0.3, Src: mean},
			{C: 1.1, Src: b}}},
		{Dst: a, Terms: []engine.Term{{C: 1.0 / 3, Src: a}}},
		{Dst: c},
	}})
	for _, r := range rows {
		x, y := row(wa, r), row(wb, r)
		z := row(v.filled(4, 3), r)
		for i, m := range flat(mean) {
			y[i] = float32(0.9*y[i]) + float32(0.3*x[i])
			x[i] = float32(x[i]) + float32(-0.1*y[i]) + float32(0.01*m)
			y[i] = float32(x[i]) + float32(0.7*y[i]) + float32(-0.2*z[i]) + float32(0.3*m) + float32(1.1*y[i])
			x[i] = float32(float32(1.0/3) * x[i])
		}
		same(t, "cleared", row(c, r), make([]float32, c.Cols))
	}
	same(t, "first", flat(a), flat(wa))
	same(t, "second", flat(b), flat(wb))
}

// functions compares with one call per element, including zeros, infinities and NaN, with a factor that is the
// destination, a single row, or absent.
func (v *vector) functions(t *testing.T) {
	odd := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 1e-42, -1e-42, float32(math.Inf(1)), float32(math.Inf(-1)),
		float32(math.NaN()), 3e38}
	a, b, one := v.filled(3, 1), v.filled(3, 2), v.filled(1, 3)
	copy(row(a, 1), odd)
	for fn := engine.Identity; fn <= engine.Clamp; fn++ {
		for _, by := range []engine.Mat{{}, b, one} {
			x, y := clone(a), clone(b)
			if by == b {
				by = y
			}
			want := clone(b)
			for _, r := range []engine.Row{2, 1} {
				for i := range row(want, r) {
					w := fn.Of(float32(0.5 * row(x, r)[i]))
					if by.Rows == 1 {
						w *= flat(by)[i]
					} else if by.Rows > 1 {
						w *= row(b, r)[i]
					}
					row(want, r)[i] = w
				}
			}
			do(t, v.e, engine.Update{Rows: []engine.Row{2, 1}, Prog: []engine.Lin{{
				Dst:   y,
				Terms: []engine.Term{{C: 0.5, Src: x}},
				Map:   fn,
				By:    by,
			}}})
			for i, w := range flat(want) {
				if got := flat(y)[i]; got != w && (got == got || w == w) ||
					math.Signbit(float64(got)) != math.Signbit(float64(w)) && got == got {
					t.Fatalf("function %d, factor of %d rows, element %d: %v, want %v", fn, by.Rows, i, got, w)
				}
			}
		}
	}
}

// sum compares with loops, in the order of the tree and with every code; also in place, on slices and divided.
func (v *vector) sum(t *testing.T) {
	src, whole := v.filled(4, 1), engine.RowOf
	tree := [][2]int{{0, 3}, {2, 4}, {5, 1}}
	for _, code := range []engine.Code{engine.Float32, engine.BF16, engine.Int8} {
		for _, div := range []float32{0, 7} {
			rounded := func(x []float32) []float32 { x = slices.Clone(x); code.Round(x); return x }
			plus := func(a, b []float32) []float32 {
				for i := range a {
					a[i] += b[i]
				}
				return rounded(a)
			}
			var x [4][]float32
			for i := range x {
				x[i] = rounded(row(src, engine.Row(i)))
			}
			want := plus(plus(rounded(x[2]), plus(x[0], x[3])), x[1])
			if div > 0 {
				for i := range want {
					want[i] /= div
				}
				want = rounded(want)
			}
			in, dst := clone(src), ram.New(2, v.l.Params)
			task := engine.Sum{Tree: tree, Div: div, Code: code}
			for i := range engine.Row(4) {
				task.Src = append(task.Src, whole(in, i))
			}
			into := func(d engine.Span) engine.Sum { s := task; s.Dst = d; return s }
			do(t, v.e, into(whole(dst, 1)), into(whole(in, 0)))
			same(t, "sum", row(dst, 1), want)
			same(t, "other rows", row(dst, 0), make([]float32, dst.Cols))
			same(t, "sum in place", row(in, 0), want)
			same(t, "sources", row(in, 3), row(src, 3))
		}
	}
	dst := ram.New(1, v.l.Params)
	part := func(m engine.Mat, r engine.Row) engine.Span {
		return engine.Span{Mat: m, Row: r, Rows: 1, Lo: 128, Hi: 1300}
	}
	do(t, v.e, engine.Sum{Dst: part(dst, 0), Src: []engine.Span{part(src, 1), {
		Mat:  src,
		Row:  2,
		Rows: 1,
		Lo:   64,
		Hi:   1236,
	}}, Tree: [][2]int{{0, 1}}})
	for i, got := range flat(dst) {
		if want := row(src, 1)[i] + row(src, 2)[max(0, i-64)]; i >= 128 && i < 1300 && got != want ||
			(i < 128 || i >= 1300) && got != 0 {
			t.Fatalf("slice: element %d is %v", i, got)
		}
	}
	do(t, v.e, engine.Sum{Dst: whole(dst, 0), Src: []engine.Span{whole(src, 2)}})
	same(t, "one source", flat(dst), row(src, 2))
}

// feedback: rounding errors are stored and added the next time; non-finite values stay visible, and are not fed back.
func (v *vector) feedback(t *testing.T) {
	src, lost, dst := v.filled(2, 1), v.filled(2, 2), ram.New(2, v.l.Params)
	flat(src)[70] = float32(math.Inf(1))
	want, wantLost := clone(src), clone(lost)
	for r := range engine.Row(2) {
		x, l := row(want, r), row(wantLost, r)
		for i := range x {
			x[i] += l[i]
		}
		copy(l, x)
		engine.Int8.Round(x)
		for i := range x {
			if l[i] -= x[i]; l[i] != l[i] {
				l[i] = 0
			}
		}
	}
	do(t, v.e, engine.Feedback{Dst: dst, Src: src, Lost: lost, Code: engine.Int8})
	alike(t, "rounded", flat(dst), flat(want))
	same(t, "lost", flat(lost), flat(wantLost))
	if x := flat(dst)[70]; x == x && !math.IsInf(float64(x), 0) {
		t.Errorf("an infinity became %v", x)
	}
}

// elements: copies, fills and products.
func (v *vector) elements(t *testing.T) {
	a, b, dst := v.filled(3, 1), v.filled(3, 2), ram.New(3, v.l.Params)
	do(t, v.e, engine.Copy{Dst: engine.Span{
		Mat:  dst,
		Row:  1,
		Rows: 2,
		Lo:   3,
		Hi:   2000,
	}, Src: engine.Span{Mat: a, Rows: 2, Lo: 1, Hi: 1998}},
		engine.Fill{Dst: engine.Span{Mat: dst, Row: 0, Rows: 2, Lo: 5, Hi: 7}, Value: -2.5})
	for r := range 3 {
		for i, got := range row(dst, engine.Row(r)) {
			var want float32
			if r > 0 && i >= 3 && i < 2000 {
				want = row(a, engine.Row(r-1))[i-2]
			}
			if r < 2 && (i == 5 || i == 6) {
				want = -2.5
			}
			if got != want {
				t.Fatalf("row %d, element %d is %v, want %v", r, i, got, want)
			}
		}
	}
	few, start := ram.New(3, 700), v.filled(3, 4)
	spread, shared, chosen := v.filled(3, 4), v.filled(3, 4), make([]int32, few.Cols)
	for i := range chosen {
		chosen[i] = int32((i*577 + 3) % v.l.Params) // distinct, since 577 is a prime that does not divide it
	}
	do(t, v.e, engine.CopyColumns{Dst: few, Src: a, From: chosen}, engine.CopyColumns{Dst: spread, Src: few, To: chosen},
		engine.CopyColumns{Dst: shared, Src: few.Sub(1, 1), To: chosen})
	for r := range engine.Row(3) {
		want, same := slices.Clone(row(start, r)), slices.Clone(row(start, r))
		for i, j := range chosen {
			want[j], same[j] = row(a, r)[j], row(a, 1)[j]
			if row(few, r)[i] != row(a, r)[j] {
				t.Fatalf("row %d: column %d is not gathered", r, j)
			}
		}
		if !slices.Equal(row(spread, r), want) || !slices.Equal(row(shared, r), same) {
			t.Fatalf("row %d: columns are not scattered", r)
		}
	}
	do(t, v.e, engine.Product{Dst: dst, A: a, B: b}, engine.Product{Dst: a, A: a, B: b.Sub(1, 1)})
	fresh := v.filled(3, 1)
	for r := range engine.Row(3) {
		for i, x := range row(fresh, r) {
			if row(dst, r)[i] != x*row(b, r)[i] || row(a, r)[i] != x*row(b, 1)[i] {
				t.Fatalf("row %d, element %d: products %v and %v", r, i, row(dst, r)[i], row(a, r)[i])
			}
		}
	}
}

// Nudge checks the update step of whole numbers, for engines that support such models.
func Nudge(t *testing.T, l engine.Layout, newEngine func(t *testing.T, threads int) engine.Engine) {
	for _, threads := range []int{1, 3} {
		(&vector{l, newEngine(t, threads)}).nudge(t)
	}
}

// nudge: elements beyond the limit step by one, within the bounds, and are counted; NaN changes nothing.
func (v *vector) nudge(t *testing.T) {
	x, g := ram.New(1, v.l.Params), v.filled(1, 1)
	of, by, limit := row(x, 0), row(g, 0), float32(0.5)
	for i := range of {
		of[i] = float32(i%255 - 127)
	}
	by[3], by[4], by[5], by[6] = limit, -limit, float32(math.NaN()), float32(math.Inf(-1))
	want, moved, n := slices.Clone(of), make([]float32, 1), 0
	for i, d := range by {
		step := float32(0)
		if d > limit {
			step = 1
		} else if d < -limit {
			step = -1
		}
		n += int(step * step)
		want[i] = max(-127, min(127, want[i]+step))
	}
	do(t, v.e, engine.Nudge{X: x, G: g, Limit: limit, Moved: moved})
	if !slices.Equal(of, want) {
		t.Error("the steps are not those of a loop")
	}
	if share := float32(float64(n) / float64(len(of))); moved[0] != share || share < 0.5 || share > 0.7 {
		t.Errorf("a share of %v moved, want %v", moved[0], share)
	}
}

// clip: longer rows are scaled to the length, others keep their bits, and one that is not finite is unchanged.
func (v *vector) clip(t *testing.T) {
	x := v.filled(3, 1)
	for i := range row(x, 1) {
		row(x, 1)[i] *= 1e-3
	}
	row(x, 2)[9] = float32(math.NaN())
	was := clone(x)
	do(t, v.e, engine.Clip{X: x, Longest: 2})
	var squares float64
	for _, a := range row(x, 0) {
		squares += float64(a) * float64(a)
	}
	if math.Abs(math.Sqrt(squares)-2) > 1e-5 {
		t.Errorf("a long row has length %v, want 2", math.Sqrt(squares))
	}
	by := row(x, 0)[0] / row(was, 0)[0]
	for i, a := range row(x, 0) {
		if math.Abs(float64(a-by*row(was, 0)[i])) > 1e-6*math.Abs(float64(a))+1e-12 {
			t.Fatalf("element %d is %v, was %v: not scaled by %v", i, a, row(was, 0)[i], by)
		}
	}
	same(t, "short row", row(x, 1), row(was, 1))
	alike(t, "row with NaN", row(x, 2), row(was, 2))
}

// looks: finite flags, and digests of the bytes.
func (v *vector) looks(t *testing.T) {
	x := v.filled(4, 1)
	row(x, 1)[v.l.Params-1], row(x, 3)[0] = float32(math.NaN()), float32(math.Inf(-1))
	ok, hash := make([]bool, 4), make([][32]byte, 4)
	do(t, v.e, engine.Finite{X: x, OK: ok}, engine.Digest{X: x, Hash: hash})
	for r := range engine.Row(4) {
		if want := r%2 == 0; ok[r] != want {
			t.Errorf("row %d is finite: %v", r, ok[r])
		}
		if want := blake3.Sum256(engine.AppendFloats(nil, row(x, r))); hash[r] != want {
			t.Errorf("row %d has digest %x, want %x", r, hash[r], want)
		}
	}
}

// eps returns the Gaussian noise of one candidate for all parameters.
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
		whole := ram.New(1, v.l.Params)
		task.Dst = engine.All(whole)
		do(t, v.e, task)
		same(t, "whole", flat(whole), want)
		sliced := ram.New(3, v.l.Params)
		cuts := []int{0, 5, 1029, v.l.Params/2 + 1, v.l.Params}
		for i := range len(cuts) - 1 {
			task.Dst = engine.Span{Mat: sliced, Row: 1, Rows: 1, Lo: cuts[i], Hi: cuts[i+1]}
			do(t, v.e, task)
		}
		same(t, "slices", row(sliced, 1), want)
		same(t, "other rows", row(sliced, 2), make([]float32, v.l.Params))
	}
}

func (v *vector) perturb(t *testing.T) {
	x := v.filled(2, 6)
	want := clone(x)
	keys := []noise.Key{{Seed: 1, Purpose: noise.Mutate, Member: 3}, {Seed: 1, Purpose: noise.Mutate, Member: 4}}
	sigma := []float32{0.1, 2}
	for r, k := range keys {
		for j, e := range v.eps(k) {
			row(want, engine.Row(r))[j] += float32(sigma[r] * e)
		}
	}
	do(t, v.e, engine.Perturb{X: x, Sigma: sigma, Keys: keys})
	same(t, "perturbed", flat(x), flat(want))
}

// adam compares with the equations in float64.
func (v *vector) adam(t *testing.T) {
	x, m, s, g := v.filled(2, 1), ram.New(2, v.l.Params), ram.New(2, v.l.Params), v.filled(2, 2)
	start := clone(x)
	type moment struct{ x, m, v float64 }
	ref := make([]moment, v.l.Params)
	for i := range ref {
		ref[i].x = float64(row(x, 1)[i])
	}
	const eta, b1, b2, eps, wd = 0.01, 0.9, 0.999, 1e-8, 0.1
	for step := uint64(1); step <= 3; step++ {
		do(t, v.e, engine.Adam{
			X:    x,
			M:    m,
			V:    s,
			G:    g,
			Rows: []engine.Row{1},
			Eta:  eta,
			B1:   b1,
			B2:   b2,
			Eps:  eps,
			WD:   wd,
			T:    step,
		})
		for i := range ref {
			r, d := &ref[i], float64(row(g, 1)[i])
			r.m, r.v = b1*r.m+(1-b1)*d, b2*r.v+(1-b2)*d*d
			r.x -= eta*wd*r.x + eta*(r.m/(1-math.Pow(b1, float64(step))))/(math.Sqrt(r.v/(1-math.Pow(b2, float64(step))))+eps)
		}
	}
	for i := range ref {
		if math.Abs(float64(row(x, 1)[i])-ref[i].x) > 1e-5 {
			t.Fatalf("element %d is %v, want %v", i, row(x, 1)[i], ref[i].x)
		}
	}
	same(t, "row that took no step", row(x, 0), row(start, 0))
}

func (v *vector) crossover(t *testing.T) {
	a, b, dst := v.filled(2, 1), v.filled(2, 2), ram.New(2, v.l.Params)
	keys := []noise.Key{{Seed: 5, Purpose: noise.Select, Member: 1}, {Seed: 5, Purpose: noise.Select, Member: 2}}
	do(t, v.e, engine.Crossover{Dst: dst, A: a, B: b, Keys: keys})
	for r := range engine.Row(2) {
		heads := 0
		for i, d := range row(dst, r) {
			k := keys[r]
			tn := 0
			for v.l.Tensors[tn].Lo+v.l.Tensors[tn].Len <= i {
				tn++
			}
			if i < 3000 || i%97 == 0 { // the address of the coin
				k.Stream = uint32(tn)
				o := i - v.l.Tensors[tn].Lo
				if coin := k.Uint32(o/32) >> (o % 32) & 1; (coin == 1) != (d == row(b, r)[i]) {
					t.Fatalf("element %d does not follow its coin %d", i, coin)
				}
			}
			switch d {
			case row(a, r)[i]:
			case row(b, r)[i]:
				heads++
			default:
				t.Fatalf("element %d is %v, from neither parent", i, d)
			}
		}
		// Five standard deviations of a fair coin.
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
			same(t, tn.Name, row(dst, r)[tn.Lo:tn.Lo+tn.Len], row(from, r)[tn.Lo:tn.Lo+tn.Len])
		}
	}
}

func (v *vector) distance(t *testing.T) {
	x, c := v.filled(3, 1), v.filled(1, 2)
	copy(row(x, 2), flat(c))
	out := make([]float64, 3)
	do(t, v.e, engine.Distance{X: x, Centre: c, RMS: out})
	for r := range engine.Row(3) {
		var sum float64
		for i, a := range row(x, r) {
			sum += (float64(a) - float64(flat(c)[i])) * (float64(a) - float64(flat(c)[i]))
		}
		if want := math.Sqrt(sum / float64(x.Cols)); math.Abs(out[r]-want) > 1e-9*want {
			t.Errorf("row %d is %v from the centre, want %v", r, out[r], want)
		}
	}
}

func (v *vector) errors(t *testing.T) {
	x, one, thin := v.filled(2, 1), v.filled(1, 1), ram.New(2, 3)
	two := engine.Rows(2)
	key := noise.Key{Seed: 1}
	for name, task := range map[string]engine.Task{
		"columns":        engine.Update{Rows: two, Prog: []engine.Lin{{Dst: x, Terms: []engine.Term{{C: 1, Src: thin}}}}},
		"row":            engine.Update{Rows: []engine.Row{2}, Prog: []engine.Lin{{Dst: x}}},
		"function":       engine.Update{Rows: two, Prog: []engine.Lin{{Dst: x, Map: engine.Clamp + 1}}},
		"factor":         engine.Update{Rows: two, Prog: []engine.Lin{{Dst: x, By: thin}}},
		"shared dst":     engine.Update{Rows: two, Prog: []engine.Lin{{Dst: one, Terms: []engine.Term{{C: 1, Src: x}}}}},
		"sum rows":       engine.Sum{Dst: engine.All(x), Src: []engine.Span{engine.All(x)}},
		"sum columns":    engine.Sum{Dst: engine.All(one), Src: []engine.Span{engine.All(thin.Sub(0, 1))}},
		"sum of nothing": engine.Sum{Dst: engine.All(one)},
		"sum used twice": engine.Sum{Dst: engine.All(one), Src: []engine.Span{engine.All(one), engine.RowOf(x, 0)},
			Tree: [][2]int{{0, 0}}},
		"sum left out": engine.Sum{Dst: engine.All(one), Src: []engine.Span{engine.All(one), engine.RowOf(x, 0)}},
		"sum of later": engine.Sum{Dst: engine.All(one), Src: []engine.Span{engine.All(one), engine.RowOf(x, 0)},
			Tree: [][2]int{{0, 3}, {1, 2}}},
		"sum code":      engine.Sum{Dst: engine.All(one), Src: []engine.Span{engine.RowOf(x, 0)}, Code: 9},
		"feedback rows": engine.Feedback{Dst: x, Src: x, Lost: one},
		"copy shape":    engine.Copy{Dst: engine.All(x), Src: engine.All(one)},
		"copy span": engine.Copy{Dst: engine.Span{
			Mat:  x,
			Row:  2,
			Rows: 1,
			Hi:   1,
		}, Src: engine.Span{Mat: one, Rows: 1, Hi: 1}},
		"column":           engine.CopyColumns{Dst: thin, Src: x, From: []int32{0, 1, int32(x.Cols)}},
		"column below":     engine.CopyColumns{Dst: x, Src: thin, To: []int32{0, -1, 2}},
		"columns of both":  engine.CopyColumns{Dst: thin, Src: thin, To: []int32{0, 1, 2}, From: []int32{2, 1, 0}},
		"too few columns":  engine.CopyColumns{Dst: thin, Src: x, From: []int32{0, 1}},
		"rows of columns":  engine.CopyColumns{Dst: one, Src: thin, To: []int32{0, 1, 2}},
		"fill span":        engine.Fill{Dst: engine.Span{Mat: one, Rows: 1, Lo: 4, Hi: one.Cols + 1}},
		"product rows":     engine.Product{Dst: x, A: x, B: v.filled(3, 1)},
		"nudge rows":       engine.Nudge{X: x, G: x, Moved: make([]float32, 1)},
		"nudge shares":     engine.Nudge{X: one, G: one},
		"finite results":   engine.Finite{X: x, OK: make([]bool, 1)},
		"digest results":   engine.Digest{X: x, Hash: make([][32]byte, 3)},
		"weights":          engine.NoiseSum{Dst: engine.All(one), Weights: []float32{1}, Key: key},
		"noise rows":       engine.NoiseSum{Dst: engine.All(x), Key: key},
		"noise span":       engine.NoiseSum{Dst: engine.Span{Mat: one, Rows: 1, Lo: 4, Hi: one.Cols + 1}, Key: key},
		"noise columns":    engine.NoiseSum{Dst: engine.All(thin.Sub(0, 1)), Key: key},
		"sigmas":           engine.Perturb{X: x, Sigma: []float32{1}, Keys: make([]noise.Key, 2)},
		"adam step 0":      engine.Adam{X: x, M: x, V: x, G: x, Rows: two},
		"muon step 0":      engine.Muon{X: x, M: x, V: x, G: x, Rows: two},
		"muon columns":     engine.Muon{X: thin, M: thin, V: thin, G: thin, Rows: two, T: 1},
		"adam columns":     engine.Adam{X: x, M: thin, V: x, G: x, Rows: two, T: 1},
		"natural rows":     engine.NaturalStep{X: x, S: one, G: one, H: one},
		"natural columns":  engine.NaturalStep{X: one, S: one, G: thin.Sub(0, 1), H: one},
		"natural span":     engine.NaturalStep{X: one, S: one, G: one, H: one, Lo: 5, Hi: one.Cols + 1},
		"natural order":    engine.NaturalStep{X: one, S: one, G: one, H: one, Lo: 5, Hi: 4},
		"crossover rows":   engine.Crossover{Dst: x, A: x, B: one, Keys: make([]noise.Key, 2)},
		"crossover keys":   engine.Crossover{Dst: x, A: x, B: x},
		"distance results": engine.Distance{X: x, Centre: one, RMS: make([]float64, 1)},
		"distance centre":  engine.Distance{X: x, Centre: x, RMS: make([]float64, 2)},
		"torn matrix":      engine.Fill{Dst: engine.All(engine.Mat{Rows: 1, Cols: v.l.Params})},
	} {
		refuses(t, v.e, name, task)
	}
}
