package kernel

import "unsafe"

// AMX tiles hold 16 rows of 64 bytes. One instruction multiplies 16 rows of A, each 64 bytes of k, with 16 columns of B
// in the layout of a packed panel: a line for each word of k. A call computes blocks of 32 rows with a panel of 32
// columns.

// amxArgs is the argument of a product by tiles; strides are in bytes.
type amxArgs struct {
	a, b, c, bias, sums, config unsafe.Pointer // sums: for each block, 32 lines of 32
	rowA, ldc                   int
	steps                       int // number of 64-byte steps of k, at least one
	blocks, rows                int // number of blocks, and rows per block
	flags, bits                 uint64
	alpha                       float32
	// Progress of the kernel, as offsets: the collector must not see a pointer past the last row.
	doneA, doneC, doneSums int
	nextSums               int // distance of the sums of consecutive blocks; 0: all use the same memory
}

// amxConfig configures the tiles: 0 to 3 hold sums, 4 and 5 A, 6 and 7 B.
type amxConfig struct {
	palette, start uint8
	_              [14]uint8
	bytes          [16]uint16 // of a row
	rows           [16]uint8
}

const (
	amxRows  = 16           // of a tile, and columns
	amxWords = 16           // words per row
	amxBlock = 2 * amxRows  // rows of a block, and columns of a panel
	amxBytes = 4 * amxWords // bytes of k in a step
	// Steps for which a panel of B and the rows multiplied with it fit into the first-level cache.
	amxSteps = 13
)

// amx is the scratch memory of a Kernels with tiles.
type amx struct {
	args   amxArgs
	conv   amxConvArgs
	config amxConfig
}

// wholeSteps rounds words up to whole steps.
func wholeSteps(words int) int { return (words + amxWords - 1) / amxWords * amxWords }

// byTiles runs a product by tiles; its flags, factor and bias must be set. A has m rows of words, rowA words apart, B n
// rows of words. C consists of elements of four bytes. Rows of A are copied unless they consist of whole cache lines,
// which tiles need.
func (k *Kernels) byTiles(kernels *[2][2]func(*amxArgs), m, n, words int, a []float32, rowA int, b []float32, ldb int,
	c []float32, ldc int, bias []float32) {
	wide, need := wholeSteps(words), k.amxScratch(m, words, rowA)
	k.bPack, k.partial, k.aLines = resize(k.bPack, need.B), resize(k.partial, need.Sums), resize(k.aLines, need.ALines)
	if need.ALines > 0 {
		for i := range m {
			row := k.aLines[i*wide:][:wide]
			clear(row[copy(row, a[i*rowA:][:words]):])
		}
		a, rowA = k.aLines, wide
	}
	t, flags := &k.amx.args, k.amx.args.flags
	t.sums, t.config = ptr(k.partial, 0), unsafe.Pointer(&k.amx.config)
	t.rowA, t.ldc = 4*rowA, 4*ldc
	cuts := (wide/amxWords + amxSteps - 1) / amxSteps
	for j := 0; j < n; j += amxBlock {
		live := min(amxBlock, n-j)
		k.transpose(k.bPack, amxBlock, b[j*ldb:], ldb, live, words, amxBlock)
		clear(k.bPack[words*amxBlock : wide*amxBlock])
		if t.bits = bits(live); bias != nil {
			t.bias = ptr(bias, j)
		}
		for cut := range cuts {
			from, to := cut*(wide/amxWords)/cuts, (cut+1)*(wide/amxWords)/cuts
			if t.flags = flags; cut > 0 {
				t.flags |= flagLoad
			}
			if cut < cuts-1 {
				t.flags |= flagKeep
			}
			for lo := 0; lo < m; {
				t.steps, t.blocks, t.rows = to-from, max(1, (m-lo)/amxBlock), min(amxBlock, m-lo)
				k.amx.config.set(t.rows)
				t.a, t.b, t.c = ptr(a, lo*rowA+from*amxWords), ptr(k.bPack, from*amxWords*amxBlock), ptr(c, lo*ldc+j)
				t.doneA, t.doneC, t.doneSums, t.nextSums = 0, 0, 0, 0
				if cuts > 1 {
					t.doneSums, t.nextSums = 4*lo*amxBlock, 4*amxBlock*amxBlock
				}
				lo += t.blocks * t.rows // the kernel decrements blocks
				kernels[(t.rows-1)/amxRows][(live-1)/amxRows](t)
			}
		}
	}
}

// amxScratch returns the scratch memory of byTiles.
func (k *Kernels) amxScratch(m, words, rowA int) (r Scratch) {
	wide := wholeSteps(words)
	r.B, r.Sums = amxBlock*wide, amxBlock*amxBlock
	if wide > amxSteps*amxWords {
		r.Sums *= (m + amxBlock - 1) / amxBlock
	}
	if wide != words || rowA%amxWords != 0 {
		r.ALines = m * wide
	}
	return r
}

// narrow sets the number of lines of B and of words of A.
func (c *amxConfig) narrow(words int) {
	for i := range 2 {
		c.bytes[4+i], c.rows[6+i] = uint16(4*words), uint8(words)
	}
}

// set configures the tiles for blocks of this many rows.
func (c *amxConfig) set(rows int) {
	c.palette = 1
	for i := range 8 {
		c.bytes[i], c.rows[i] = amxBytes, amxRows
	}
	first, second := uint8(min(rows, amxRows)), uint8(max(rows-amxRows, 1))
	c.rows[0], c.rows[1], c.rows[4] = first, first, first
	c.rows[2], c.rows[3], c.rows[5] = second, second, second
}
