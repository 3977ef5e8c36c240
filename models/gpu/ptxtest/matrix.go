package ptxtest

import "math"

// matrices maps instructions that multiply small matrices with a whole warp: D = A B + C, of 16 x 8 elements. Their
// registers are four of D, four of A, two of B and four of C.
var matrices = map[string]func(warp []thread, i *inst){
	"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32":  func(w []thread, i *inst) { multiply(w, i, 1) },
	"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32": func(w []thread, i *inst) { multiply(w, i, 2) },
}

func gather(t *thread, _ *inst) { t.state = gathered }

// multiply computes the product; registers of A and B hold each elements. An element is the sum of all products and the
// element of C, rounded once: a card rounds more often, in an unspecified order.
func multiply(warp []thread, i *inst, each int) {
	var a [16][16]float64
	var b [16][8]float64
	var c [16][8]float64
	for lane := range warp {
		t := &warp[lane]
		for e := range 4 * each {
			row, col := fragmentA(lane, e, each)
			a[row][col] = element(t.r[i.vector[4+e/each]], e%each, each)
		}
		for e := range 2 * each {
			row, col := fragmentB(lane, e, each)
			b[row][col] = element(t.r[i.vector[8+e/each]], e%each, each)
		}
		for e := range 4 {
			row, col := fragmentC(lane, e)
			c[row][col] = float64(single(t.r[i.vector[10+e]]))
		}
	}
	for lane := range warp {
		for e := range 4 {
			row, col := fragmentC(lane, e)
			sum := c[row][col]
			for k := range 8 * each {
				sum += float64(a[row][k] * b[k][col])
			}
			warp[lane].r[i.vector[e]] = fromSingle(float32(sum))
		}
	}
}

// fragmentA returns the row and column of A for element e of a lane, with each elements per register; fragmentB and
// fragmentC do so for B, and for C and D.
func fragmentA(lane, e, each int) (row, col int) {
	r := e / each
	return lane/4 + r%2*8, (lane%4+r/2*4)*each + e%each
}

func fragmentB(lane, e, each int) (row, col int) {
	return (lane%4+e/each*4)*each + e%each, lane / 4
}

func fragmentC(lane, e int) (row, col int) { return lane/4 + e/2*8, lane%4*2 + e%2 }

// element returns an element of a register: tf32, ignoring its low 13 bits, or one of two bf16.
func element(x uint64, e, each int) float64 {
	if each == 1 {
		return float64(math.Float32frombits(uint32(x) &^ (1<<13 - 1)))
	}
	return float64(math.Float32frombits(uint32(x>>(16*e)) << 16))
}

// toTF32 rounds to eleven significant bits, ties away from zero.
func toTF32(x uint64) uint64 {
	if v := single(x); v != v {
		return 0x7fffffff
	}
	if math.IsInf(float64(single(x)), 0) {
		return x & math.MaxUint32
	}
	return (x + 1<<12) & 0xffffe000
}

// toBF16 rounds to eight significant bits, ties to even.
func toBF16(x uint64) uint64 {
	if v := single(x); v != v {
		return 0x7fff
	}
	return (x + 0x7fff + x>>16&1) >> 16 & 0xffff
}
