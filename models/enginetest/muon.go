package enginetest

import (
	"math"
	"testing"

	"brood/models/engine"
	"brood/models/engine/ram"
)

// Muon64 computes step n, counted from 1, of Muon in float64 for one model, with naive orthogonalisation. Tests compare
// tasks and programs with it.
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

// schulz64 computes a*U + (b*U U' + c*U U' U U') U, which equals U (b*U' U + ...): it uses the smaller product.
func schulz64(u []float64, rows, cols int) []float64 {
	if rows > cols {
		return turned64(schulz64(turned64(u, cols), cols, rows), rows)
	}
	times := func(x, y []float64, m, n, deep int) []float64 {
		out := make([]float64, m*n)
		for i := range m {
			line := out[i*n : i*n+n]
			for k := range deep {
				a, row := x[i*deep+k], y[k*n:k*n+n]
				for j := range line {
					line[j] += a * row[j]
				}
			}
		}
		return out
	}
	gram := times(u, turned64(u, cols), rows, rows, cols)
	poly := times(gram, gram, rows, rows, rows)
	for i := range poly {
		poly[i] = -4.7750*gram[i] + 2.0315*poly[i]
	}
	out := times(poly, u, rows, cols, rows)
	for i := range out {
		out[i] += 3.4445 * u[i]
	}
	return out
}

// turned64 returns the transpose of a matrix with this many columns.
func turned64(u []float64, cols int) []float64 {
	out, rows := make([]float64, len(u)), len(u)/cols
	for i, x := range u {
		out[i%cols*rows+i/cols] = x
	}
	return out
}

// muon compares with the equations in float64, for matrices of free and of fixed norm, with and without the last one.
// Engines of any number of threads must have the bits of the first.
func (v *vector) muon(t *testing.T, engines []engine.Engine) {
	for name, task := range map[string]engine.Muon{"free": {}, "fixed": {Fixed: true},
		"hidden": {Fixed: true, Hidden: true}} {
		t.Run(name, func(t *testing.T) {
			x := v.filled(2, 1)
			m64, s64, x64 := make([]float64, v.l.Params), make([]float64, v.l.Params), wide(row(x, 1))
			gradients := []engine.Mat{v.filled(2, 2), v.filled(2, 7)}
			task.Rows = []engine.Row{1}
			task.Eta, task.Mu, task.WD, task.Share, task.B1, task.B2, task.Eps = 0.05, 0.9, 0.1, 0.2, 0.9, 0.99, 1e-8
			for n, g := range gradients {
				Muon64(&v.l, x64, m64, s64, wide(row(g, 1)), task, n+1)
			}
			var first []float32
			for _, e := range engines {
				task.X, task.M, task.V = clone(x), ram.New(2, v.l.Params), ram.New(2, v.l.Params)
				for n, g := range gradients {
					task.G, task.T = g, uint64(n+1)
					do(t, e, task)
				}
				for i, got := range row(task.X, 1) {
					if math.Abs(float64(got)-x64[i]) > 2e-5 {
						t.Fatalf("element %d is %v, want %v", i, got, x64[i])
					}
				}
				same(t, "row that took no step", row(task.X, 0), row(x, 0))
				if first == nil {
					first = row(task.X, 1)
				}
				same(t, "the same step by another engine", row(task.X, 1), first)
			}
		})
	}
}
