package kernel

import (
	"unsafe"

	"brood/models/noise"
)

// Kernels is one variant's table of functions with the scratch memory of one goroutine. No result is stored between
// calls.
type Kernels struct {
	variant Variant
	isa     isa // zero in the portable variant
	caches  caches

	tile     tileArgs
	move     moveArgs
	vec      vecArgs
	settling settleArgs
	soft     softArgs
	noise    noiseArgs
	conv     convArgs
	dot      dotArgs
	pool     poolArgs
	norm     normArgs
	window   window // of the portable pooling

	aPack, bPack []float32 // row tiles of A, panels of B
	rounded      []float32 // operands of a bfloat16 product
	part         [1]convRun
	every        []int32   // the taps of every other channel of a block
	aLines       []float32 // rows of A in whole cache lines
	partial      []float32 // sums of AMX tiles, and of bfloat16 blocks
	paired       bool      // the current product uses pairs
	filters      []float32 // weights of a convolution, packed
	line         []float32 // a piece of a long statement, or tiles of noise
	unwanted     []float32 // a row of softmax that the caller does not need
	exact        []float32 // bytes as floats, and their products
	totals       []int32
	leads        []lead                  // of a noise sum's members
	coins        [16 * noise.Tile]uint32 // words of a stream
	segment      [5]int32                // of RowDots
	maxima, sums [softRows]float32
	lanes        [Lanes]float32
	squares      [squareSums]float64
	edge         *edge     // of variants whose tiles have no masks
	amx          *amx      // of the variant with tiles
	stream       []float32 // memory measured by Stream and Reading
}

// isa is an instruction set's functions and sizes. Arguments are passed in structs that are part of Kernels, because a
// call through a variable makes its pointers escape.
type isa struct {
	vector        int  // floats per vector
	height, width int  // size of the largest tile of a product
	whole         bool // all columns of a tile are used: edges are computed in scratch memory
	reads         int  // columns of B that tiles read at a time, used or not; 0: only used ones
	near          bool // tiles do not prefetch B: what they read should be in the first-level cache

	tiles       []func(*tileArgs) // by height
	narrow      []func(*tileArgs) // for at most width/2 columns; nil: none
	masked      []func(*tileArgs) // for fewer than width columns; nil: all tiles have masks
	pairs       []func(*tileArgs) // of bfloat16, by height; nil: with floats, see GemmBF16
	pairsNarrow []func(*tileArgs)
	round16     func(*vecArgs)
	roundFloats func(*vecArgs) // of an even length, with neighbours swapped; nil: Go

	transpose, copyPanel             func(*moveArgs)
	copyRows                         func(*moveArgs)   // of at most a vector each
	turn                             func(*moveArgs)   // transposition of whole blocks of four by four only
	lin                              [4]func(*vecArgs) // by terms
	adam, natural, colSum, squares   func(*vecArgs)
	relu, gate, mul, lookup          func(*vecArgs)
	lookupBytes                      func(*vecArgs) // of multiples of lookupStep
	leaky, leakyBack, tanh, tanhBack func(*vecArgs)
	silu, siluBack, gelu, geluBack   func(*vecArgs)
	softmax                          func(*softArgs)
	noiseFill, noiseSum, noiseSquare func(*noiseArgs)
	drop, words                      func(*noiseArgs)
	pick                             func(*vecArgs)
	noiseFloats, noiseBytes          func(*noiseArgs)
	noiseWhole, noiseRounded         func(*noiseArgs)
	bytes                            []func(*tileArgs)    // products of bytes, by height; nil: none
	bytesWhole                       bool                 // their columns are all used
	bytesWidth, bytesDot             int                  // their number of columns; products per Dot that Issue counts
	byteStart                        func(*tileArgs)      // fills tileArgs.start; nil: sums start from zero
	widen, widenSigned               func(*moveArgs)      // widens bytes to 16 bits each for bytes; nil: it takes bytes
	amxConv                          []func(*amxConvArgs) // by tiles of 16 result channels; nil: none
	join16                           func(*vecArgs)       // two rows of numbers as words of two bfloat16
	settle, settleWide               func(*settleArgs)
	amxBytes, amxPairs               *[2][2]func(*amxArgs) // products by tiles, by rows and columns of 16; nil: none
	powerSums                        func(*vecArgs)

	normSums, normSquares, normApply, normBackSums, normBack func(*normArgs)

	layerSum, layerSquares, layerApply, layerBackSums, layerBack, layerScale func(*vecArgs)

	conv                                         []func(*convArgs)  // by channels
	convRow                                      func(*convArgs)    // one channel, pixels in fours
	dots                                         [][]func(*dotArgs) // by rows of B, then of A; nil: none
	maxPool, maxPoolBack, meanPool, meanPoolBack func(*poolArgs)
	maxPoolSet                                   func(*poolArgs) // maxPoolBack for windows that do not overlap

	issue     [Ops]func(turns int)    // loops of independent instructions of each kind
	read      func(*vecArgs)          // loads a vector, eight registers at a time
	issueTurn int                     // instructions per turn
	ports     map[string][Ops]float64 // instructions of each kind per value of a loop; nil: not counted
	chain     func(turns int)         // dependent additions
}

// New returns the kernels of t for one goroutine. It returns an UnavailableError if this CPU cannot run them.
func New(t Variant) (*Kernels, error) {
	if t >= variants || !available(t) {
		return nil, &UnavailableError{t}
	}
	k := &Kernels{variant: t, isa: table(t), caches: processorCaches()}
	if k.isa.whole || k.isa.bytesWhole {
		k.edge = new(edge)
	}
	if k.isa.amxBytes != nil {
		k.amx = new(amx)
	}
	return k, nil
}

// Variant returns the implementation that k runs.
func (k *Kernels) Variant() Variant { return k.variant }

// aligned returns n zeroed floats that start on a cache line.
func aligned(n int) []float32 {
	s := make([]float32, n+16)
	o := -int(uintptr(unsafe.Pointer(unsafe.SliceData(s)))/4) & 15
	return s[o : o+n : o+n]
}

// resize returns s, or new memory if s is too short.
func resize(s []float32, n int) []float32 {
	if len(s) < n {
		return aligned(n)
	}
	return s
}

// ptr returns the address of s[i]; i may be len(s) if nothing is read.
func ptr(s []float32, i int) unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(s[i:]))
}
