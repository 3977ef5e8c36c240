package averaging

import (
	"math"
	"slices"

	"brood/models/arith"
)

// cosines are the orthonormal cosine transform of type II of n values: row k has those of frequency k.
func cosines(n int) []float64 {
	table := make([]float64, 4*n) // over a whole turn
	for i := range table {
		table[i] = arith.Cos(math.Pi * float64(i) / float64(2*n))
	}
	basis, scale := make([]float64, n*n), math.Sqrt(2/float64(n))
	for k := range n {
		for i := range n {
			basis[k*n+i] = float64(scale * table[(2*i+1)*k%(4*n)])
		}
	}
	for i := range n {
		basis[i] = math.Sqrt(1 / float64(n))
	}
	return basis
}

// transform writes each chunk of v as its cosines, or back. bases are those of the lengths seen so far.
func (c sparseCode) transform(v []float32, back bool, bases map[int][]float64) {
	var out, a []float64
	var rows [][]float64 // of the cosines that are not zero, and a these
	for _, p := range c.chunks {
		basis, known := bases[p.n]
		if !known {
			basis = cosines(p.n)
			bases[p.n] = basis
		}
		x := v[p.lo : p.lo+p.n]
		out = slices.Grow(out[:0], p.n)[:p.n]
		if back {
			a, rows = a[:0], rows[:0]
			for k, cosine := range x {
				if cosine != 0 {
					a, rows = append(a, float64(cosine)), append(rows, basis[k*p.n:(k+1)*p.n])
				}
			}
			for i := 0; i < p.n; i += 4 { // four at a time, of which none waits for another; the last four may be done twice
				at := min(i, max(0, p.n-4))
				backFour(out[at:min(at+4, p.n)], at, a, rows)
			}
		} else {
			for k := 0; k < p.n; k += 4 { // likewise
				var rows [4][]float64
				for j := range rows {
					at := min(k+j, p.n-1) * p.n
					rows[j] = basis[at : at+p.n]
				}
				var s [4]float64
				for i, v := range x {
					w := float64(v)
					s[0] += float64(w * rows[0][i])
					s[1] += float64(w * rows[1][i])
					s[2] += float64(w * rows[2][i])
					s[3] += float64(w * rows[3][i])
				}
				copy(out[k:], s[:])
			}
		}
		for i, s := range out {
			x[i] = float32(s)
		}
	}
}

// backFour sums frequencies, ascending, into up to four values from place i on.
func backFour(out []float64, i int, a []float64, rows [][]float64) {
	if len(out) < 4 {
		for j := range out {
			out[j] = 0
			for k, w := range a {
				out[j] += float64(w * rows[k][i+j])
			}
		}
		return
	}
	var s [4]float64
	for k, w := range a {
		row := rows[k][i : i+4]
		s[0] += float64(w * row[0])
		s[1] += float64(w * row[1])
		s[2] += float64(w * row[2])
		s[3] += float64(w * row[3])
	}
	copy(out, s[:])
}
