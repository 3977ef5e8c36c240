package enginetest

import (
	"math"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
)

// Muon64 is step n, counted from 1, of Muon in float64 on one model, whose matrices are orthogonalised naively: what
// tasks and programs are held against.
func Muon64(l *engine.Layout, x, m, v, g []float64, t engine.Muon, n int) {
	keep := 1 - float64(t.Eta)*float64(t.WD)
	last := 0
	for i, tn := range l.Tensors {
		if len(tn.Shape) > 1 && !tn.Table {
			last = i
		}
	}
	for i, tn := range l.Tensors {
		rows, cols, matrix := tn.Matrix()
		if !matrix || t.Hidden && i == last {
			eta, b1, b2 := float64(t.Eta)*float64(t.Share), float64(t.B1), float64(t.B2)
			for i := tn.Lo; i < tn.Lo+tn.Len; i++ {
				m[i], v[i] = b1*m[i]+(1-b1)*g[i], b2*v[i]+(1-b2)*g[i]*g[i]
				mean, square := m[i]/(1-math.Pow(b1, float64(n))), v[i]/(1-math.Pow(b2, float64(n)))
				x[i] -= eta*float64(t.WD)*x[i] + eta*mean/(math.Sqrt(square)+float64(t.Eps))
			}
			continue
		}
		mu, norm, length := float64(t.Mu), 0.0, 0.0
		u := make([]float64, tn.Len)
		for i := range u {
			j := tn.Lo + i
			m[j] = mu*m[j] + (1-mu)*g[j]
			u[i] = mu*m[j] + (1-mu)*g[j]
			norm += u[i] * u[i]
		}
		for i := range u {
			u[i] /= math.Sqrt(norm) + 1e-7
		}
		for range 5 {
			u = schulz64(u, rows, cols)
		}
		for i := range u {
			length += x[tn.Lo+i] * x[tn.Lo+i]
		}
		for i := range u {
			if t.Fixed {
				x[tn.Lo+i] *= math.Sqrt(float64(rows)) / math.Sqrt(length)
			}
			x[tn.Lo+i] = keep*x[tn.Lo+i] - float64(t.Eta)*math.Sqrt(max(1, float64(rows)/float64(cols)))*u[i]
		}
	}
}

// schulz64 is a*U + (b*U U' + c*U U' U U') U.
func schulz64(u []float64, rows, cols int) []float64 {
	times := func(x []float64, y func(k, j int) float64, m, n, deep int) []float64 {
		out := make([]float64, m*n)
		for i := range m {
			for k := range deep {
				for j := range n {
					out[i*n+j] += x[i*deep+k] * y(k, j)
				}
			}
		}
		return out
	}
	at := func(x []float64, wide int) func(k, j int) float64 {
		return func(k, j int) float64 { return x[k*wide+j] }
	}
	gram := times(u, func(k, j int) float64 { return u[j*cols+k] }, rows, rows, cols)
	poly := times(gram, at(gram, rows), rows, rows, rows)
	for i := range poly {
		poly[i] = -4.7750*gram[i] + 2.0315*poly[i]
	}
	out := times(poly, at(u, cols), rows, cols, rows)
	for i := range out {
		out[i] += 3.4445 * u[i]
	}
	return out
}

// muon against the equations in float64, with matrices whose lengths are free and fixed, and without the last.
func (v *vector) muon(t *testing.T) {
	for name, task := range map[string]engine.Muon{"free": {}, "fixed": {Fixed: true}, "hidden": {Fixed: true, Hidden: true}} {
		t.Run(name, func(t *testing.T) { v.muons(t, task) })
	}
}

func (v *vector) muons(t *testing.T, task engine.Muon) {
	x, m, s, g := v.filled(2, 1), ram.New(2, v.l.Params), ram.New(2, v.l.Params), v.filled(2, 2)
	start := clone(x)
	wide := func(m engine.Mat) (out []float64) {
		for _, f := range row(m, 1) {
			out = append(out, float64(f))
		}
		return out
	}
	x64, m64, s64 := wide(x), wide(m), wide(s)
	task.X, task.M, task.V, task.G, task.Rows = x, m, s, g, []engine.Row{1}
	task.Eta, task.Mu, task.WD, task.Share, task.B1, task.B2, task.Eps = 0.05, 0.9, 0.1, 0.2, 0.9, 0.99, 1e-8
	for n := 1; n <= 2; n++ {
		task.T = uint64(n)
		do(t, v.e, task)
		Muon64(&v.l, x64, m64, s64, wide(g), task, n)
		copy(row(g, 1), row(v.filled(2, 7), 1))
	}
	for i, got := range row(x, 1) {
		if math.Abs(float64(got)-x64[i]) > 2e-5 {
			t.Fatalf("element %d is %v, want %v", i, got, x64[i])
		}
	}
	same(t, "row that took no step", row(x, 0), row(start, 0))
}
