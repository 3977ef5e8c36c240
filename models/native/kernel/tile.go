package kernel

import "unsafe"

// Limits for packing operands. Reading from the second-level cache is faster than packing; from further away, or at
// strides of whole pages (few cache sets, many pages), packing is faster. Packing does not change a bit of the result.
const (
	packTiles = 4    // row tiles that share a panel of B
	packLdb   = 512  // elements from row to row of B
	packLda   = 1024 // the same of A
	packCols  = 256  // columns that use the same row tile of A
	packLines = 64   // lines of A that tiles process at a time
)

// live holds 16 used words and 16 unused ones: the mask of n lanes starts at word 16-n.
var live = [32]int32{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}

func lanes(n int) unsafe.Pointer { return unsafe.Pointer(&live[16-min(n, 16)]) }

// bits returns a mask with a bit for each of n columns, at most 32.
func bits(n int) uint64 { return 1<<min(n, 32) - 1 }

// gemm runs a product by tiles. The rows are divided evenly: ten tiles of 12 or 13 for 128 rows, not nine of 14 and one
// of 2.
func (k *Kernels) gemm(form Form, m, n, kk int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int,
	ep *Epilogue) {
	need, steps := k.GemmScratch(form, m, n, kk, lda, ldb), k.steps(kk, ep.Add)
	packA, packB, block := need.A > 0, k.packsB(form, m, n, kk, ldb), k.rowsA(steps)
	k.bPack = resize(k.bPack, need.B)
	for k0 := 0; k0 == 0 || k0 < kk; k0 += steps {
		kc := min(steps, kk-k0)
		k.start(ep, k0 == 0, k0+kc >= kk)
		k.tile.k, k.tile.ldc, k.tile.ldGate = kc, 4*ldc, 4*ep.LDGate
		for i0 := 0; i0 < m; i0 += block {
			i1 := min(m, i0+block)
			if packA && kc > 0 {
				k.packA(form, i0, i1, k0, kc, a, lda)
			}
			for j := 0; j < n; j += k.isa.width {
				at, width := 0, min(k.isa.width, n-j)
				if packB && block < m {
					at = j * kc
				}
				k.panel(form, packB || k.ragged(width), i0 == 0, at, j, width, k0, kc, b, ldb)
				// Prefetching data that is already in the cache costs little.
				k.tile.ahead = uintptr(k.tile.b)
				// The next panel was packed for an earlier block of rows.
				if next := j + k.isa.width; packB && i0 > 0 && next < n {
					k.tile.ahead = uintptr(ptr(k.bPack, next*kc))
				}
				k.column(form, packA, i0, i1, j, width, k0, kc, a, lda, c, ldc, ep)
			}
		}
	}
}

// start sets the flags of one cut of k. A sum that is stored in C continues from C; one that is added to C is added cut
// by cut.
func (k *Kernels) start(ep *Epilogue, first, last bool) {
	t := &k.tile
	t.flags, t.alpha = 0, ep.Alpha
	set := func(flag uint64, on bool) {
		if on {
			t.flags |= flag
		}
	}
	set(flagAdd, ep.Add)
	set(flagLoad, !first && !ep.Add)
	set(flagBias, ep.Bias != nil && (first && ep.Add || last && !ep.Add))
	set(flagGate, ep.Gate != nil && (ep.Add || last))
	set(flagReLU, ep.ReLU && last)
}

// panel points the tile at columns [j, j+n) of rows [k0, k0+kc) of op(B). With pack they are at k.bPack[at:]; fresh
// packs them there.
func (k *Kernels) panel(form Form, pack, fresh bool, at, j, n, k0, kc int, b []float32, ldb int) {
	t, w := &k.tile, k.isa.width
	t.bits, t.lanes = bits(n), lanes(n)
	switch {
	case kc == 0:
		return
	case !pack:
		t.b, t.ldb = ptr(b, k0*ldb+j), 4*ldb
		return
	}
	t.b, t.ldb = ptr(k.bPack, at), 4*w
	switch {
	case !fresh:
	case form == NT:
		k.transpose(k.bPack[at:], w, b[j*ldb+k0:], ldb, n, kc, w)
	case k.isa.copyPanel == nil:
		for p := range kc {
			line := k.bPack[at+p*w:][:w]
			clear(line[copy(line, b[(k0+p)*ldb+j:][:n]):])
		}
	default:
		k.move = moveArgs{
			dst:       t.b,
			src:       ptr(b, k0*ldb+j),
			ldd:       4 * w,
			lds:       4 * ldb,
			rows:      kc,
			load:      uint32(bits(n)),
			loadLanes: lanes(n),
		}
		k.isa.copyPanel(&k.move)
	}
}

// even divides rows into the fewest tiles of at most limit rows: the first extra tiles have one row more than height.
func even(rows, limit int) (height, extra int) {
	tiles := (rows + limit - 1) / limit
	return rows / tiles, rows % tiles
}

// next returns the height of the next tile and decrements extra.
func next(height int, extra *int) int {
	if *extra > 0 {
		*extra--
		return height + 1
	}
	return height
}

// packA packs rows [i0, i1) tile by tile, the rows of a tile adjacent. Lines of A that need no transposition are taken
// some at a time by all tiles: neighbouring tiles share most cache lines, and all share pages.
func (k *Kernels) packA(form Form, i0, i1, k0, kc int, a []float32, lda int) {
	k.aPack = resize(k.aPack, k.scratchA())
	lines := kc
	if form == TN {
		lines = packLines
	}
	for p := 0; p < kc; p += lines {
		height, extra := even(i1-i0, k.isa.height)
		at := 0
		for lo, h := i0, 0; lo < i1; lo += h {
			h = next(height, &extra)
			if form == TN {
				k.copyRows(k.aPack[at+p*h:], h, a[(k0+p)*lda+lo:], lda, min(lines, kc-p))
			} else {
				k.transpose(k.aPack[at:], h, a[lo*lda+k0:], lda, h, kc, h)
			}
			at += h * kc
		}
	}
}

// copyRows copies rows of h elements, at most a vector, contiguously.
func (k *Kernels) copyRows(dst []float32, h int, src []float32, lds, rows int) {
	p := 0
	if k.isa.copyRows != nil && rows > 1 { // it may write whole vectors, so the last row is left
		p = rows - 1
		k.move = moveArgs{
			dst:       ptr(dst, 0),
			src:       ptr(src, 0),
			ldd:       4 * h,
			lds:       4 * lds,
			rows:      p,
			load:      uint32(bits(h)),
			loadLanes: lanes(h),
		}
		k.isa.copyRows(&k.move)
	}
	for ; p < rows; p++ {
		copy(dst[p*h:(p+1)*h], src[p*lds:])
	}
}

// column runs the tiles of rows [i0, i1) of one panel.
func (k *Kernels) column(form Form, packed bool, i0, i1, j, n, k0, kc int, a []float32, lda int, c []float32, ldc int,
	ep *Epilogue) {
	t, at := &k.tile, 0
	kernels := k.isa.tiles
	switch {
	case k.paired && k.isa.pairs != nil && n <= k.isa.width/2:
		kernels = k.isa.pairsNarrow
	case k.paired && k.isa.pairs != nil:
		kernels = k.isa.pairs
	case k.isa.narrow != nil && n <= k.isa.width/2:
		kernels = k.isa.narrow
	case k.isa.masked != nil && n < k.isa.width:
		kernels = k.isa.masked
	}
	if ep.Bias != nil {
		t.bias = ptr(ep.Bias, j)
	}
	height, extra := even(i1-i0, k.isa.height)
	for lo, h := i0, 0; lo < i1; lo += h {
		h = next(height, &extra)
		switch {
		case kc == 0:
		case packed:
			t.a, t.rowA, t.stepA = ptr(k.aPack, at), 4, 4*h
			at += h * kc
		case form == TN:
			t.a, t.rowA, t.stepA = ptr(a, k0*lda+lo), 4, 4*lda
		default:
			t.a, t.rowA, t.stepA = ptr(a, lo*lda+k0), 4*lda, 4
		}
		if k.isa.whole && n < k.isa.width {
			k.edge.run(t, kernels[h], h, n, j, c[lo*ldc+j:], ldc, lo, ep)
			continue
		}
		t.c = ptr(c, lo*ldc+j)
		if ep.Gate != nil {
			t.gate = ptr(ep.Gate, lo*ep.LDGate+j)
		}
		kernels[h](t)
		t.ahead += uintptr(kc / 4 * lineBytes)
	}
}
