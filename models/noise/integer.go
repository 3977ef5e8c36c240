package noise

// IntegerScale times Integer has variance 1: it is 1/sqrt(v) for the variance v of Integer, 1365.375, which a test
// computes.
const IntegerScale = float32(0.027062882)

// Integer converts a word to a whole number in [-127, 127]: it adds its four bytes as signed numbers, with the lowest
// bit of the last one set, adds 3, and drops the two lowest bits. That bit makes the distribution exactly symmetric, so
// its mean is zero; as a sum of four it is bell-shaped (excess kurtosis -0.3). Sums of such numbers are exact in any
// order.
func Integer(w uint32) int8 {
	s := int32(int8(w)) + int32(int8(w>>8)) + int32(int8(w>>16)) + int32(int8(w>>24|1))
	return int8((s + 3) >> 2)
}

// Integers writes tile b of k's stream as whole numbers. Element i comes from one of the two words that give element i
// of Row and its partner.
func (s *Schedule) Integers(dst *[Tile]int8, k Key, b uint32) {
	for i := range uint32(8) {
		w := s.Block(k.Counter(8*b + i))
		dst[2*i], dst[2*i+1] = Integer(w[0]), Integer(w[1])
		dst[16+2*i], dst[17+2*i] = Integer(w[2]), Integer(w[3])
	}
}
