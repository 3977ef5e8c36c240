package models

import (
	"math"

	"brood/models/noise"
)

// maxOrthogonal is the most products of a weight that starts orthogonal: its smaller side squared times its larger one,
// some seconds a member.
const maxOrthogonal = 1 << 30

// orthogonal writes a matrix of rows x cols whose rows, or whose columns where these are fewer, are orthogonal and of
// length 1: normals of the key's stream, made so one after the other by the modified process of Gram and Schmidt, twice
// over, since once leaves what rounding hides. Products are rounded before they are added, so that the bits are those
// of any machine. The diagonal of the other factor is above zero, as where PyTorch multiplies by its signs.
func orthogonal(key noise.Key, dst []float32, rows, cols int) {
	vectors, length := min(rows, cols), max(rows, cols)
	line := make([][]float64, vectors)
	for v := range line {
		line[v] = make([]float64, length)
	}
	place := func(at int) (v, i int) { // element at of the matrix is element i of vector v
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
