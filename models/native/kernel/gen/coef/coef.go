// Package coef holds the constants that both kernel generators write into assembly; they equal the constants of the
// portable variant and of models/noise. Tests compare the resulting bits.
package coef

import "math"

// Constants of noise.Normals.
var (
	Log = []float32{-2.000001907348633, 1.000022292137146, -0.6662901639938354, 0.49819502234458923, -0.40992698073387146,
		0.3733559846878052, -0.2379191517829895}
	Sin = []float32{1.5707948207855225, -0.645920991897583, 0.07948773354291916, -0.004362513776868582}
	Cos = []float32{0.9999999403953552, -1.2336982488632202, 0.2536507546901703, -0.02081063948571682,
		0.0008581960573792458}
)

const (
	M0, M1   = 0xD2511F53, 0xCD9E8D57 // multipliers of Philox
	TwoM31   = float32(1) / (1 << 31)
	Minus2L  = float32(-2 * math.Ln2)
	RootHalf = 0x3f3504f3 // the bits of sqrt(1/2)
)

// Exp2 is the polynomial of kernel.exp, for arguments in [-ExpLimit, ExpLimit].
var Exp2 = []float32{1.0, 0.6931471824645996, 0.24022646248340607, 0.05550328642129898, 0.009618489071726799,
	0.0013399930903688073, 0.0001534580806037411}

// Constants of kernel.exp.
const (
	ExpLimit float32 = 86
	Round    float32 = 1.5 * (1 << 23) // adding it rounds to an integer
)

// Constants of kernel.tanh and kernel.phi.
var (
	Tanh = []float32{-0.3333328366279602, 0.13331490755081177, -0.05374349281191826, 0.02065056934952736,
		-0.005717025604099035}
	Phi = []float32{0.11217926442623138, 0.11261438578367233, 0.10037834197282791, 0.09624698013067245,
		0.04247264191508293, 0.03796470910310745, 0.05165994167327881, -0.07481034100055695, 0.021294107660651207}
)

const (
	TanhSmall float32 = 0.625
	PhiScale  float32 = 9.0 / 32
	Density   float32 = 0.3989422804014327
)
