package kernel

import "unsafe"

// moveArgs is the argument of transpositions and packing; strides are in bytes.
type moveArgs struct {
	dst, src              unsafe.Pointer
	ldd, lds, rows, cols  int
	load, store           uint32 // masks: one bit a lane
	loadLanes, storeLanes unsafe.Pointer
	allLanes              unsafe.Pointer
}

// Transpose writes dst[c*ldd+r] = src[r*lds+c] for r < rows and c < cols. Transpose an operand of many products once.
func (k *Kernels) Transpose(dst []float32, ldd int, src []float32, lds, rows, cols int) {
	if rows > 0 && cols > 0 {
		k.transpose(matrix(dst, cols, rows, ldd), ldd, matrix(src, rows, cols, lds), lds, rows, cols, rows)
	}
}

// transpose writes dst[c*ldd+r] = src[r*lds+c] for r < rows and c < cols, and zero for r in [rows, fill). fill must not
// exceed rows rounded up to a vector.
func (k *Kernels) transpose(dst []float32, ldd int, src []float32, lds, rows, cols, fill int) {
	if k.isa.transpose == nil {
		k.turn(dst, ldd, src, lds, rows, cols, fill)
		return
	}
	w := k.isa.vector
	if cols == 0 {
		return
	}
	for r := 0; r < fill; r += w {
		live, store := min(w, rows-r), min(w, fill-r)
		if live <= 0 {
			for c := range cols {
				clear(dst[c*ldd+r : c*ldd+r+store])
			}
			continue
		}
		rest := cols % w
		k.move = moveArgs{dst: ptr(dst, r), src: ptr(src, r*lds), ldd: 4 * ldd, lds: 4 * lds, rows: live, cols: cols,
			load: uint32(bits(rest)), store: uint32(bits(store)), loadLanes: lanes(rest), storeLanes: lanes(store),
			allLanes: lanes(w)}
		k.isa.transpose(&k.move)
	}
}

// turn transposes whole blocks of four by four with kernels, and the rest with the portable variant.
func (k *Kernels) turn(dst []float32, ldd int, src []float32, lds, rows, cols, fill int) {
	whole := cols &^ 3
	if k.isa.turn == nil || whole == 0 {
		transpose(dst, ldd, src, lds, rows, cols, fill)
		return
	}
	r := 0
	for ; r+4 <= rows; r += 4 {
		k.move = moveArgs{dst: ptr(dst, r), src: ptr(src, r*lds), ldd: 4 * ldd, lds: 4 * lds, cols: whole}
		k.isa.turn(&k.move)
	}
	if whole < cols && r > 0 {
		transpose(dst[whole*ldd:], ldd, src[whole:], lds, r, cols-whole, r)
	}
	if r < fill {
		transpose(dst[r:], ldd, src[min(r*lds, len(src)):], lds, rows-r, cols, fill-r)
	}
}

// transpose is the portable variant: blocks of eight lines stay in the cache.
func transpose(dst []float32, ldd int, src []float32, lds, rows, cols, fill int) {
	for c0 := 0; c0 < cols; c0 += 8 {
		for r := range rows {
			for c := c0; c < min(cols, c0+8); c++ {
				dst[c*ldd+r] = src[r*lds+c]
			}
		}
	}
	for c := range cols {
		clear(dst[c*ldd+rows : c*ldd+fill])
	}
}
