package kernel

// strip is the columns of C that the portable product sums at a time, in the first-level cache.
const strip = 512

// gemm is the portable variant of a product: multiply-adds in the order of k. It computes one row of C at a time, so
// that B is read by rows; with B transposed it computes four dot products at once. A product that is added to C is cut
// as in the other variants.
func gemm(form Form, m, n, kk int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, ep *Epilogue) {
	var sum [strip]float32
	rowA, stepA, cut := lda, 1, max(1, kk)
	if form == TN {
		rowA, stepA = 1, lda
	}
	if ep.Add {
		cut = maxK
	}
	for j0 := 0; j0 < n; j0 += strip {
		w := min(strip, n-j0)
		for i := range m {
			s, row := sum[:w], a[min(i*rowA, len(a)):]
			for k0 := 0; k0 == 0 || k0 < kk; k0 += cut {
				kc := min(cut, kk-k0)
				if form == NT && kc > 0 {
					dots(s, kc, row[k0:], b[j0*ldb+k0:], ldb)
				} else {
					clear(s)
					for p := k0; p < k0+kc; p++ {
						fmaRow(s, row[p*stepA], b[p*ldb+j0:])
					}
				}
				finish(c[i*ldc+j0:i*ldc+j0+w], s, i, j0, ep, k0 == 0, k0+kc >= kk)
			}
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
			s0, s1, s2, s3 = fma(x, b0[p], s0), fma(x, b1[p], s1), fma(x, b2[p], s2), fma(x, b3[p], s3)
		}
		s[q], s[q+1], s[q+2], s[q+3] = s0, s1, s2, s3
	}
	for ; q < len(s); q++ {
		var sum float32
		bq := b[q*ldb:][:kk]
		for p, x := range a {
			sum = fma(x, bq[p], sum)
		}
		s[q] = sum
	}
}

// finish applies the epilogue to columns [j, j+len(s)) of row i; first and last report whether this is the first and
// the last cut of k.
func finish(c, s []float32, i, j int, ep *Epilogue, first, last bool) {
	if ep.Bias != nil && first {
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
			s[q] = fma(ep.Alpha, s[q], c[q])
		}
	}
	if ep.ReLU && last {
		for q := range s {
			if s[q] < 0 {
				s[q] = 0
			}
		}
	}
	copy(c, s)
}
