package bbob

import (
	"math"

	"brood/models/arith"
)

// seedOf returns the seed of an instance. Functions 4 and 18 share those of 3 and 17.
func seedOf(number, instance int) int64 {
	switch number {
	case 4:
		number = 3
	case 18:
		number = 17
	}
	return int64(number) + 10000*int64(instance)
}

// uniforms returns n numbers in (0, 1) of the suite's generator: the minimal standard generator of Park and Miller with
// a shuffle by Bays and Durham.
func uniforms(seed int64, n int) []float64 {
	const modulus = 1<<31 - 1
	var table [32]int64
	next := func() int64 {
		high := seed / 127773
		if seed = 16807*(seed-high*127773) - 2836*high; seed < 0 {
			seed += modulus
		}
		return seed
	}
	seed = max(1, seed)
	for i := 39; i >= 0; i-- {
		if v := next(); i < len(table) {
			table[i] = v
		}
	}
	out, last := make([]float64, n), table[0]
	for i := range out {
		v, at := next(), last/67108865
		last, table[at] = table[at], v
		if out[i] = float64(last) / modulus; out[i] == 0 {
			out[i] = 1e-99
		}
	}
	return out
}

// normals returns n standard normals (Box-Muller).
func normals(seed int64, n int) []float64 {
	u := uniforms(seed, 2*n)
	out := make([]float64, n)
	for i := range out {
		if out[i] = math.Sqrt(-2*arith.Log(u[i])) * arith.Cos(2*math.Pi*u[n+i]); out[i] == 0 {
			out[i] = 1e-99
		}
	}
	return out
}

// drawOptimum returns a point of [-4, 4]^n with four decimals, none of them 0.
func drawOptimum(seed int64, n int) []float64 {
	out := uniforms(seed, n)
	for i, u := range out {
		if out[i] = float64(8*math.Floor(1e4*u)/1e4) - 4; out[i] == 0 {
			out[i] = -1e-5
		}
	}
	return out
}

// drawRotation returns an orthogonal matrix, by rows: normals whose columns are made orthonormal in order
// (Gram-Schmidt).
func drawRotation(seed int64, n int) [][]float64 {
	g, out := normals(seed, n*n), make([][]float64, n)
	for i := range out {
		out[i] = make([]float64, n)
		for j := range out {
			out[i][j] = g[j*n+i]
		}
	}
	product := func(a, b int) (sum float64) {
		for _, row := range out {
			sum += float64(row[a] * row[b])
		}
		return sum
	}
	for i := range n {
		for j := range i {
			along := product(i, j)
			for _, row := range out {
				row[i] -= float64(along * row[j])
			}
		}
		length := math.Sqrt(product(i, i))
		for _, row := range out {
			row[i] /= length
		}
	}
	return out
}
