package kernel

import "unsafe"

// exactK is the length up to which float32 holds sums of products of bytes exactly: 512*255*127 is below 2^24.
const exactK = 512

// GemmBytes computes C = alpha*(A B') + bias, A being m x kk unsigned bytes, B n x kk signed ones above -128, bias n
// floats. The sums are exact (kk is below 2^16), then rounded to float32; the product with alpha is rounded before bias
// is added: all twins give the same bits. lda and ldb are multiples of 4, and A is zero from column kk to the next such
// multiple.
func (k *Kernels) GemmBytes(m, n, kk int, a []uint8, lda int, b []int8, ldb int, c []float32, ldc int, alpha float32, bias []float32) {
	if m <= 0 || n <= 0 || kk <= 0 {
		return
	}
	words := (kk + 3) / 4
	if lda%4 != 0 || ldb%4 != 0 || kk >= 1<<16 {
		panic("kernel: a matrix of bytes whose rows are no whole words, or too long")
	}
	a, b, c, bias = a[:(m-1)*lda+4*words], b[:(n-1)*ldb+4*words], matrix(c, m, n, ldc), bias[:n]
	if k.isa.bytes == nil {
		k.gemmFloats(m, n, kk, a, lda, b, ldb, c, ldc, alpha, bias)
		return
	}
	const w = 32
	if need := k.BytesRoom(m, n, kk).B; len(k.bPack) < need {
		k.bPack = aligned(need)
	}
	// words that are moved, never computed with
	quads := unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
	t := &k.tile
	for j := 0; j < n; j += w {
		live := min(w, n-j)
		k.transpose(k.bPack, w, quads[j*ldb/4:], ldb/4, live, words, w)
		t.b, t.k, t.rowA, t.ldc, t.alpha = ptr(k.bPack, 0), words, lda, 4*ldc, alpha
		t.bits, t.bias = bits(live), ptr(bias, j)
		height, extra := even(m, k.isa.height)
		for lo, h := 0, 0; lo < m; lo += h {
			h = next(height, &extra)
			t.a, t.c = unsafe.Pointer(unsafe.SliceData(a[lo*lda:])), ptr(c, lo*ldc+j)
			k.isa.bytes[h](t)
		}
	}
}

// gemmFloats is GemmBytes by products of floats, so short that they are exact whatever fuses.
func (k *Kernels) gemmFloats(m, n, kk int, a []uint8, lda int, b []int8, ldb int, c []float32, ldc int, alpha float32, bias []float32) {
	kc, need := min(kk, exactK), k.BytesRoom(m, n, kk)
	if len(k.exact) < need.Exact {
		k.exact = aligned(need.Exact)
	}
	if len(k.totals) < need.Totals {
		k.totals = make([]int32, need.Totals)
	}
	totals := k.totals[:m*n]
	clear(totals)
	x, y, p := k.exact[:m*kc], k.exact[m*kc:(m+n)*kc], k.exact[(m+n)*kc:]
	for k0 := 0; k0 < kk; k0 += kc {
		d := min(kc, kk-k0)
		for i := range m {
			for q, v := range a[i*lda+k0:][:d] {
				x[i*d+q] = float32(v)
			}
		}
		for j := range n {
			for q, v := range b[j*ldb+k0:][:d] {
				y[j*d+q] = float32(v)
			}
		}
		k.Gemm(NT, m, n, d, x, d, y, d, p, n, nil)
		for i := range totals {
			totals[i] += int32(p[i])
		}
	}
	for i := range m {
		for j, v := range bias {
			c[i*ldc+j] = float32(alpha*float32(totals[i*n+j])) + v
		}
	}
}
