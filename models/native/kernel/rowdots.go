package kernel

import "unsafe"

// RowDots adds the dot product of each of the m rows of A with b, kk elements, to dst[0], dst[ldd], dst[2*ldd] and so
// on. A product with a single column leaves most of a Gemm tile unused; here both operands are loaded as vectors, and a
// product has sixteen sums. If kk is not a multiple of Lanes, it calls Gemm.
func (k *Kernels) RowDots(dst []float32, ldd, m, kk int, a []float32, lda int, b []float32) {
	if m <= 0 || kk <= 0 {
		return
	}
	if kk%Lanes != 0 {
		k.Gemm(NT, m, 1, kk, a, lda, b, kk, dst, ldd, &Epilogue{Add: true, Alpha: 1})
		return
	}
	a, b, dst = matrix(a, m, kk, lda), b[:kk], matrix(dst, m, 1, ldd)
	if k.isa.dots == nil {
		for i := range m {
			var s sixteen
			for q := 0; q < kk; q += Lanes {
				s.add(a[i*lda+q:], b[q:])
			}
			dst[i*ldd] += s.total()
		}
		return
	}
	k.segment = [5]int32{0, 1, 0, 0, int32(kk / Lanes)}
	t, tiles := &k.dot, k.isa.dots[1]
	*t = dotArgs{b: ptr(b, 0), list: unsafe.Pointer(&k.segment), lda: 4 * lda, stepB: 4 * Lanes, ldcA: 4 * ldd, alpha: 1}
	height, extra := even(m, len(tiles)-1)
	for lo, h := 0, 0; lo < m; lo += h {
		h = next(height, &extra)
		t.a, t.c, t.entries = ptr(a, lo*lda), ptr(dst, lo*ldd), 1
		tiles[h](t)
	}
}
