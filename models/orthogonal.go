package models

import (
	"math"

	"brood/models/noise"
)

// maxOrthogonal limits the cost of an orthogonal initialisation: the smaller side of the weight squared times the
// larger one. At the limit it takes some seconds per member.
const maxOrthogonal = 1 << 30

// orthogonal writes a rows x cols matrix to dst whose rows, or columns if these are fewer, are orthonormal. It applies
// the modified Gram-Schmidt process to normal values of the key's stream, twice per vector to remove rounding errors.
// Products are rounded before they are added, so that all machines compute the same bits. The result is the Q factor
// with a positive diagonal of R, as in PyTorch.
func orthogonal(key noise.Key, dst []float32, rows, cols int) {
	vectors, length := min(rows, cols), max(rows, cols)
	line := make([][]float64, vectors)
	for v := range line {
		line[v] = make([]float64, length)
	}
	place := func(at int) (v, i int) { // matrix element at is element i of vector v
		if v, i = at/cols, at%cols; rows > cols {
			return i, v
		}
		return v, i
	}
	key.Each(0, len(dst), cols, func(at int, eps []float32) {
		for j, e := range eps {
			v, i := place(at + j)
			line[v][i] = float64(e)
		}
	})
	for v := range line {
		for range 2 {
			for _, before := range line[:v] {
				addScaled(line[v], before, -dot(line[v], before))
			}
		}
		size := 1 / math.Sqrt(dot(line[v], line[v]))
		for i := range line[v] {
			line[v][i] *= size
		}
	}
	for at := range dst {
		v, i := place(at)
		dst[at] = float32(line[v][i])
	}
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += float64(a[i] * b[i])
	}
	return sum
}

// addScaled adds c*b to a.
func addScaled(a, b []float64, c float64) {
	for i := range a {
		a[i] += float64(c * b[i])
	}
}
