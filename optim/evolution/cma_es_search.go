package evolution

import (
	"context"
	"math"

	"brood/models/engine"
	"brood/models/noise"
	"brood/optim"
)

// cmaESSearch is the shape of a normal distribution of n parameters, from the record covariance.
type cmaESSearch struct {
	n          int
	covariance [][]float64 // C: row i has the elements up to its diagonal
	basis      [][]float64 // rows are the eigenvectors of C when decompose was called last
	deviations []float64   // along each of them
}

// cmaESSize returns the number of elements of the record.
func cmaESSize(n int) int { return n*(n+1)/2 + n*n + n }

// loadCMAES reads the record. A record of zeros is the identity.
func loadCMAES(e *optim.Env) *cmaESSearch {
	s := &cmaESSearch{n: e.Layout.Params, deviations: make([]float64, e.Layout.Params)}
	for i := range s.n {
		s.covariance, s.basis = append(s.covariance, make([]float64, i+1)), append(s.basis, make([]float64, s.n))
	}
	if u := e.Record(optim.BlockCovariance).U; u[0] == 0 {
		s.begin()
	} else {
		s.each(func(row []float64) {
			for j := range row {
				row[j] = math.Float64frombits(u[j])
			}
			u = u[len(row):]
		})
	}
	return s
}

// store writes the record.
func (s *cmaESSearch) store(e *optim.Env) {
	u := e.Record(optim.BlockCovariance).U
	s.each(func(row []float64) {
		for j, v := range row {
			u[j] = math.Float64bits(v)
		}
		u = u[len(row):]
	})
}

// each calls f with all rows, in the order of the record.
func (s *cmaESSearch) each(f func(row []float64)) {
	for i := range s.n {
		f(s.covariance[i])
	}
	for i := range s.n {
		f(s.basis[i])
	}
	f(s.deviations)
}

// begin sets the covariance to the identity.
func (s *cmaESSearch) begin() {
	s.each(func(row []float64) { clear(row) })
	for i := range s.n {
		s.covariance[i][i], s.basis[i][i], s.deviations[i] = 1, 1, 1
	}
}

// along returns y = B D z.
func (s *cmaESSearch) along(z []float64) []float64 {
	y := make([]float64, s.n)
	for j, v := range z {
		add(y, s.deviations[j]*v, s.basis[j])
	}
	return y
}

// axes returns the smallest and the largest deviation, and the sum of their squares.
func (s *cmaESSearch) axes() (narrow, wide, square float64) {
	narrow = math.Inf(1)
	for _, d := range s.deviations {
		narrow, wide, square = min(narrow, d), max(wide, d), square+float64(d*d)
	}
	return narrow, wide, square
}

// evaluate measures the hosted candidates x + sigma B D z, where key addresses z.
func (s *cmaESSearch) evaluate(
	ctx context.Context,
	e *optim.Env,
	k optim.Values,
	key noise.Key,
	sigma float64,
) (fit engine.Host, rep optim.Report, err error) {
	axes, still := e.Scratch(s.n, s.n), e.Scratch(1, s.n)
	axis := make([]float64, s.n)
	for j := range s.n {
		clear(axis)
		add(axis, s.deviations[j], s.basis[j])
		if err := e.SetDoubles(ctx, axes.Sub(engine.Row(j), 1), axis); err != nil {
			return fit, rep, err
		}
	}
	if err := e.Engine.Do(ctx, engine.Fill{Dst: engine.All(still)}); err != nil {
		return fit, rep, err
	}
	c := engine.Candidates{Theta: e.Block(optim.BlockX), Scale: still, Axes: axes, Key: key}
	for _, m := range e.Mine {
		key.Member = uint32(e.Roster.Rank(m))
		for _, v := range cmaESNoise(key, s.n) {
			c.Along = append(c.Along, float32(sigma*v))
		}
	}
	return evaluate(ctx, e, k, c)
}

// decompose sets the basis and the deviations to those of the covariance: cyclic Jacobi rotations of the covariance in
// the basis so far, in which it is nearly diagonal. Deviations are at least 1e-8 of the largest.
func (s *cmaESSearch) decompose() {
	a := s.turned()
	for sweep, turns := 0, 1; turns > 0 && sweep < 30; sweep++ {
		turns = 0
		for p := range s.n {
			for q := range p {
				if rotate(a, s.basis, p, q) {
					turns++
				}
			}
		}
	}
	wide := 0.0
	for j := range s.n {
		s.deviations[j] = math.Sqrt(max(0, a[j][j]))
		wide = max(wide, s.deviations[j])
	}
	for j, d := range s.deviations {
		s.deviations[j] = max(d, 1e-8*wide)
	}
}

// turned returns B' C B as a full matrix.
func (s *cmaESSearch) turned() [][]float64 {
	a, product := make([][]float64, s.n), make([]float64, s.n)
	for i := range a {
		a[i] = make([]float64, s.n)
	}
	for p, b := range s.basis {
		clear(product) // C b
		for i, row := range s.covariance {
			add(product[:i], b[i], row[:i])
			product[i] += dot(row, b[:i+1])
		}
		for q := range p + 1 {
			a[p][q] = dot(product, s.basis[q])
			a[q][p] = a[p][q]
		}
	}
	return a
}

// rotate makes element p, q of the symmetric matrix a zero by a rotation of rows p and q of the basis. It reports false
// and does nothing if the element is negligible.
func rotate(a, basis [][]float64, p, q int) bool {
	const negligible = 1e-13
	off := a[p][q]
	if limit := negligible * math.Sqrt(math.Abs(a[p][p]*a[q][q])); math.Abs(off) <= limit {
		return false
	}
	theta := (a[q][q] - a[p][p]) / (2 * off)
	t := math.Copysign(1/(math.Abs(theta)+math.Sqrt(float64(theta*theta)+1)), theta) // tangent of the angle
	c := 1 / math.Sqrt(float64(t*t)+1)
	sin := t * c
	turn := func(x, y []float64) {
		for k, v := range x {
			x[k], y[k] = float64(c*v)-float64(sin*y[k]), float64(sin*v)+float64(c*y[k])
		}
	}
	pp, qq := a[p][p]-float64(t*off), a[q][q]+float64(t*off)
	turn(a[p], a[q])
	for k := range a {
		a[k][p], a[k][q] = a[p][k], a[q][k]
	}
	a[p][p], a[q][q], a[p][q], a[q][p] = pp, qq, 0, 0
	turn(basis[p], basis[q])
	return true
}

// add adds c*x to y.
func add(y []float64, c float64, x []float64) {
	for j, v := range x {
		y[j] += float64(c * v)
	}
}

// dot returns the inner product of x and y.
func dot(x, y []float64) (sum float64) {
	for j, v := range x {
		sum += float64(v * y[j])
	}
	return sum
}
