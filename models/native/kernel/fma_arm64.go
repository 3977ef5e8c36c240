package kernel

// The portable variant's multiply-add: the compiler emits FMADDS for a product that is added at once. A test checks
// that.

// fma returns x*y + z, rounded once.
func fma(x, y, z float32) float32 { return x*y + z }

// fmaRow adds a*b to s element by element.
func fmaRow(s []float32, a float32, b []float32) {
	b = b[:len(s)]
	for q, z := range s {
		s[q] = a*b[q] + z
	}
}

// fmaEach adds the products of a and b to s element by element.
func fmaEach(s, a, b []float32) {
	a, b = a[:len(s)], b[:len(s)]
	for q, z := range s {
		s[q] = a[q]*b[q] + z
	}
}
