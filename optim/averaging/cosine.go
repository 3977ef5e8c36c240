package averaging

import (
	"math"
	"slices"

	"brood/models/arith"
)

// dctBasis returns the orthonormal cosine transform of type II of n values as an n x n matrix, row by row: row k
// contains the basis vector of frequency k.
func dctBasis(n int) []float64 {
	table := make([]float64, 4*n) // cos over a full period, in steps of pi/2n
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

// dct replaces each chunk of v by its cosine transform, or by the inverse transform. It computes in float64. bases
// caches dctBasis by length; dct adds missing ones.
func (c sparseCode) dct(v []float32, inverse bool, bases map[int][]float64) {
	var out, a []float64
	var rows [][]float64 // the basis vectors of the coefficients in a, which are the nonzero ones
	for _, p := range c.chunks {
		basis, cached := bases[p.n]
		if !cached {
			basis = dctBasis(p.n)
			bases[p.n] = basis
		}
		x := v[p.lo : p.lo+p.n]
		out = slices.Grow(out[:0], p.n)[:p.n]
		if inverse {
			a, rows = a[:0], rows[:0]
			for k, coefficient := range x {
				if coefficient != 0 {
					a, rows = append(a, float64(coefficient)), append(rows, basis[k*p.n:(k+1)*p.n])
				}
			}
			// Four independent sums at a time. The last four may overlap the previous ones.
			for i := 0; i < p.n; i += 4 {
				at := min(i, max(0, p.n-4))
				inverseFour(out[at:min(at+4, p.n)], at, a, rows)
			}
		} else {
			for k := 0; k < p.n; k += 4 { // four independent sums at a time
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

// inverseFour writes elements [i, i+len(out)) of sum_k a[k]*rows[k] to out, which has up to four elements. It adds in
// the order of k, that is of ascending frequency.
func inverseFour(out []float64, i int, a []float64, rows [][]float64) {
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
