package kernel

// strip is the columns of C that the portable product sums at a time, in the first-level cache.
const strip = 512

// gemm is the portable twin of a product: sums of rounded products in the order of k. It works on one row of C at a time,
// so that B is read by rows; with B transposed it takes four dot products side by side.
func gemm(form Form, m, n, kk int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, ep *Epilogue) {
	var sum [strip]float32
	rowA, stepA := lda, 1
	if form == TN {
		rowA, stepA = 1, lda
	}
	for j0 := 0; j0 < n; j0 += strip {
		w := min(strip, n-j0)
		for i := range m {
			s := sum[:w]
			if form == NT && kk > 0 {
				dots(s, kk, a[i*lda:], b[j0*ldb:], ldb)
			} else {
				clear(s)
				combine(s, kk, a[min(i*rowA, len(a)):], stepA, b, ldb, j0)
			}
			finish(c[i*ldc+j0:i*ldc+j0+w], s, i, j0, ep)
		}
	}
}

// combine adds a[p*step] * (row p of b, from column j) to s, four rows at a time.
func combine(s []float32, kk int, a []float32, step int, b []float32, ldb, j int) {
	p := 0
	for ; p+4 <= kk; p += 4 {
		a0, a1, a2, a3 := a[p*step], a[(p+1)*step], a[(p+2)*step], a[(p+3)*step]
		b0, b1 := b[p*ldb+j:][:len(s)], b[(p+1)*ldb+j:][:len(s)]
		b2, b3 := b[(p+2)*ldb+j:][:len(s)], b[(p+3)*ldb+j:][:len(s)]
		for q := range s {
			s[q] = s[q] + float32(a0*b0[q]) + float32(a1*b1[q]) + float32(a2*b2[q]) + float32(a3*b3[q])
		}
	}
	for ; p < kk; p++ {
		ap, bp := a[p*step], b[p*ldb+j:][:len(s)]
		for q := range s {
			s[q] += float32(ap * bp[q])
		}
	}
}

// dots writes the dot products of a with the rows of b.
func dots(s []float32, kk int, a, b []float32, ldb int) {
	a = a[:kk]
	q := 0
	for ; q+4 <= len(s); q += 4 {
		b0, b1, b2, b3 := b[q*ldb:][:kk], b[(q+1)*ldb:][:kk], b[(q+2)*ldb:][:kk], b[(q+3)*ldb:][:kk]
		var s0, s1, s2, s3 float32
		for p, x := range a {
			s0 += float32(x * b0[p])
			s1 += float32(x * b1[p])
			s2 += float32(x * b2[p])
			s3 += float32(x * b3[p])
		}
		s[q], s[q+1], s[q+2], s[q+3] = s0, s1, s2, s3
	}
	for ; q < len(s); q++ {
		var sum float32
		bq := b[q*ldb:][:kk]
		for p, x := range a {
			sum += float32(x * bq[p])
		}
		s[q] = sum
	}
}

// finish applies the epilogue to columns [j, j+len(s)) of row i.
func finish(c, s []float32, i, j int, ep *Epilogue) {
	if ep.Bias != nil {
		for q, b := range ep.Bias[j : j+len(s)] {
			s[q] += b
		}
	}
	if ep.Gate != nil {
		for q, g := range ep.Gate[i*ep.LDGate+j:][:len(s)] {
			if !(g > 0) {
				s[q] = 0
			}
		}
	}
	if ep.Add {
		for q := range s {
			s[q] = c[q] + float32(ep.Alpha*s[q])
		}
	}
	if ep.ReLU {
		for q := range s {
			if s[q] < 0 {
				s[q] = 0
			}
		}
	}
	copy(c, s)
}
