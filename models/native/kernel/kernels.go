package kernel

import "unsafe"

// Kernels is one variant's table of functions with the scratch memory of one goroutine. It keeps no result between calls.
type Kernels struct {
	variant Variant
	isa     isa // all nil in the portable variant

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
	rounded      []float32 // operands of a product of bfloat16
	part         [1]convRun
	every        []int32   // the taps of every other channel of a block
	aLines       []float32 // rows of A in whole lines of the cache
	partial      []float32 // sums of tiles of AMX, and of blocks of bfloat16
	paired       bool      // the present product is one of pairs
	filters      []float32 // weights of a convolution, packed
	line         []float32 // a piece of a long statement, or some tiles of noise
	unwanted     []float32 // a row of softmax that nobody asked for
	exact        []float32 // bytes as floats, and their products
	totals       []int32
	leads        []lead   // of a noise sum's members
	segment      [5]int32 // of RowDots
	maxima, sums [softRows]float32
	lanes        [Lanes]float32
	squares      [squareSums]float64
	edge         *edge     // of variants whose tiles have no masks
	amx          *amx      // of the variant that has tiles
	stream       []float32 // what Stream measures with
}

// isa is what an instruction set supplies. Arguments are passed in structs that live in Kernels, because a call through
// a variable makes its pointers escape.
type isa struct {
	vector        int  // floats
	height, width int  // of the largest tile of a product
	whole         bool // tiles have no dead columns: those of an edge are computed in scratch
	reads         int  // columns of B that tiles read at a time, dead or live; 0: the live ones alone

	tiles       []func(*tileArgs) // by height
	narrow      []func(*tileArgs) // for at most width/2 columns; nil: none
	masked      []func(*tileArgs) // for less than width columns; nil: all tiles are
	pairs       []func(*tileArgs) // of bfloat16, by height; nil: by floats, see GemmBF16
	pairsNarrow []func(*tileArgs)
	round16     func(*vecArgs)
	roundFloats func(*vecArgs) // of an even length, neighbours in each other's places; nil: Go

	transpose, copyPanel             func(*moveArgs)
	copyRows                         func(*moveArgs)   // of at most a vector each
	turn                             func(*moveArgs)   // transpose, of whole blocks of four by four alone
	lin                              [4]func(*vecArgs) // by terms
	adam, natural, colSum, squares   func(*vecArgs)
	relu, gate, mul, lookup          func(*vecArgs)
	lookupBytes                      func(*vecArgs) // of multiples of lookupStep
	leaky, leakyBack, tanh, tanhBack func(*vecArgs)
	silu, siluBack, gelu, geluBack   func(*vecArgs)
	softmax                          func(*softArgs)
	noiseFill, noiseSum, noiseSquare func(*noiseArgs)
	drop                             func(*noiseArgs)
	noiseFloats, noiseBytes          func(*noiseArgs)
	noiseWhole, noiseRounded         func(*noiseArgs)
	bytes                            []func(*tileArgs)    // products of bytes, by height; nil: none
	bytesWhole                       bool                 // they have no dead columns
	bytesWidth, bytesDot             int                  // their columns; the products of what Issue counts as one Dot
	byteStart                        func(*tileArgs)      // fills tileArgs.start; nil: sums start from zero
	widen, widenSigned               func(*moveArgs)      // bytes to 16 bits each, which bytes takes; nil: it takes bytes
	amxConv                          []func(*amxConvArgs) // by tiles of 16 channels of the result; nil: none
	join16                           func(*vecArgs)       // two rows of numbers as words of two of bfloat16
	settle, settleWide               func(*settleArgs)
	amxBytes, amxPairs               *[2][2]func(*amxArgs) // products by tiles, by rows and columns of 16; nil: none
	powerSums                        func(*vecArgs)

	normSums, normSquares, normApply, normBackSums, normBack func(*normArgs)

	layerSum, layerSquares, layerApply, layerBackSums, layerBack, layerScale func(*vecArgs)

	conv                                         []func(*convArgs)  // by channels
	convRow                                      func(*convArgs)    // one channel, pixels in fours
	dots                                         [][]func(*dotArgs) // by rows of B, then of A; nil: none
	maxPool, maxPoolBack, meanPool, meanPoolBack func(*poolArgs)
	maxPoolSet                                   func(*poolArgs) // maxPoolBack of windows that do not meet

	issue     [Ops]func(turns int)    // loops of independent instructions of each kind
	issueTurn int                     // instructions of a turn
	ports     map[string][Ops]float64 // vector instructions of a value of each kind of noise; nil: not counted
	chain     func(turns int)         // additions that wait for each other
}

// New makes the kernels of t for one goroutine. It fails with an UnavailableError where this CPU cannot run them.
func New(t Variant) (*Kernels, error) {
	if t >= variants || !available(t) {
		return nil, &UnavailableError{t}
	}
	k := &Kernels{variant: t, isa: table(t)}
	if k.isa.whole || k.isa.bytesWhole {
		k.edge = new(edge)
	}
	if k.isa.amxBytes != nil {
		k.amx = new(amx)
	}
	return k, nil
}

// Variant says which implementation k runs.
func (k *Kernels) Variant() Variant { return k.variant }

// aligned returns n zeroed floats that start on a cache line.
func aligned(n int) []float32 {
	s := make([]float32, n+16)
	o := -int(uintptr(unsafe.Pointer(unsafe.SliceData(s)))/4) & 15
	return s[o : o+n : o+n]
}

// roomy is s, or new memory where it is too short.
func roomy(s []float32, n int) []float32 {
	if len(s) < n {
		return aligned(n)
	}
	return s
}

// ptr is the address of s[i]; i may be len(s) where nothing is read.
func ptr(s []float32, i int) unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(s[i:]))
}
