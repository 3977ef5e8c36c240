package kernel

import "unsafe"

// exactK is the length up to which float32 holds sums of products of bytes exactly: 512*255*128 is below 2^24.
const exactK = 512

// GemmBytes computes C = alpha*(A B') + bias for A of m x kk unsigned bytes, B of n x kk signed ones, and n floats of
// bias. The sums are exact (kk must be below 2^16), then rounded to float32; the product with alpha is rounded before
// bias is added: all variants give the same bits. lda and ldb must be multiples of 4, and A zero from column kk to the
// next multiple.
func (k *Kernels) GemmBytes(m, n, kk int, a []uint8, lda int, b []int8, ldb int, c []float32, ldc int, alpha float32,
	bias []float32) {
	if m <= 0 || n <= 0 || kk <= 0 {
		return
	}
	a, b = byteRows(a, m, kk, lda), byteRows(b, n, kk, ldb)
	c, bias = matrix(c, m, n, ldc), bias[:n]
	if k.isa.bytes != nil {
		k.tile.flags, k.tile.alpha = 0, alpha
		k.byteTiles(m, n, kk, a, lda, b, ldb, c, ldc, bias)
		return
	}
	if need := m * n; len(k.totals) < need {
		k.totals = make([]int32, need)
	}
	totals := k.totals[:m*n]
	k.sumFloats(m, n, kk, a, lda, b, ldb, totals, n)
	for i := range m {
		for j, v := range bias {
			c[i*ldc+j] = float32(alpha*float32(totals[i*n+j])) + v
		}
	}
}

// SumBytes computes C = A B' exactly in int32, for operands as in GemmBytes.
func (k *Kernels) SumBytes(m, n, kk int, a []uint8, lda int, b []int8, ldb int, c []int32, ldc int) {
	if m <= 0 || n <= 0 || kk <= 0 {
		return
	}
	a, b = byteRows(a, m, kk, lda), byteRows(b, n, kk, ldb)
	c = matrix(c, m, n, ldc)
	if k.isa.bytes == nil {
		k.sumFloats(m, n, kk, a, lda, b, ldb, c, ldc)
		return
	}
	k.tile.flags = flagWhole
	k.byteTiles(m, n, kk, a, lda, b, ldb, unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(c))), len(c)), ldc, nil)
}

// byteRows checks an operand and returns its bytes.
func byteRows[T int8 | uint8](s []T, rows, kk, ld int) []T {
	if ld%4 != 0 || kk >= 1<<16 {
		panic("kernel: a matrix of bytes whose rows are no whole words, or too long")
	}
	return s[:(rows-1)*ld+(kk+3)/4*4]
}

// wordsOf returns bytes as words that are moved but not used as numbers.
func wordsOf[T int8 | uint8](s []T) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(s))), len(s)/4)
}

// byteTiles runs a product of bytes by tiles; its flags and factor must be set.
func (k *Kernels) byteTiles(m, n, kk int, a []uint8, lda int, b []int8, ldb int, c []float32, ldc int, bias []float32) {
	w, words := k.isa.bytesWidth, (kk+3)/4
	quads := wordsOf(b)
	if k.isa.amxBytes != nil {
		k.amx.args.flags, k.amx.args.alpha = k.tile.flags, k.tile.alpha
		k.byTiles(k.isa.amxBytes, m, n, words, wordsOf(a), lda/4, quads, ldb/4, c, ldc, bias)
		return
	}
	need := k.BytesScratch(m, n, kk)
	k.bPack, k.exact = resize(k.bPack, need.B), resize(k.exact, need.Exact)
	t, ep := &k.tile, Epilogue{Bias: bias}
	x, lines := unsafe.Pointer(unsafe.SliceData(a)), words
	t.k, t.ldc, t.rowA = words, 4*ldc, lda
	if k.isa.widen != nil {
		lines = 2 * words
		k.widened(k.isa.widen, k.exact, x, lda, m, words)
		x, t.rowA = ptr(k.exact, 0), 4*lines
	}
	for j := 0; j < n; j += w {
		live, from, ld := min(w, n-j), quads[j*ldb/4:], ldb/4
		if k.isa.widen != nil {
			wide := k.exact[m*lines:]
			k.widened(k.isa.widenSigned, wide, ptr(from, 0), ldb, live, words)
			from, ld = wide, lines
		}
		k.transpose(k.bPack, w, from, ld, live, lines, w)
		if t.b = ptr(k.bPack, 0); k.isa.byteStart != nil {
			t.start = unsafe.Pointer(&k.edge.start)
			k.isa.byteStart(t)
		}
		if t.bits = bits(live); bias != nil {
			t.bias = ptr(bias, j)
		}
		height, extra := even(m, k.isa.height)
		for lo, h := 0, 0; lo < m; lo += h {
			h = next(height, &extra)
			t.a = unsafe.Add(x, lo*t.rowA)
			if k.isa.bytesWhole && live < w {
				k.edge.run(t, k.isa.bytes[h], h, live, j, c[lo*ldc+j:], ldc, lo, &ep)
				continue
			}
			t.c = ptr(c, lo*ldc+j)
			k.isa.bytes[h](t)
		}
	}
}

// widened runs f on rows of words of four bytes and stores them contiguously in dst.
func (k *Kernels) widened(f func(*moveArgs), dst []float32, src unsafe.Pointer, lds, rows, words int) {
	k.move = moveArgs{dst: ptr(dst, 0), src: src, ldd: 8 * words, lds: lds, rows: rows, cols: words}
	f(&k.move)
}

// sumFloats computes SumBytes with float products short enough to be exact with or without fused multiply-adds.
func (k *Kernels) sumFloats(m, n, kk int, a []uint8, lda int, b []int8, ldb int, c []int32, ldc int) {
	kc, need := min(kk, exactK), k.BytesScratch(m, n, kk).Exact
	k.exact = resize(k.exact, need)
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
		for i := range m {
			to, from := c[i*ldc:][:n], p[i*n:][:n]
			if k0 == 0 {
				clear(to)
			}
			for j, v := range from {
				to[j] += int32(v)
			}
		}
	}
}
