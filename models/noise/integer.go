package noise

// IntegerScale times Integer has variance 1: it is 1/sqrt(v) for the variance of Integer, 1365.375, which a test adds
// up.
const IntegerScale = float32(0.027062882)

// Integer turns a word into a whole number in [-127, 127]: its four bytes as signed numbers, the lowest bit of the last
// one set, are added; 3 more, and the two lowest bits are dropped. With that bit the distribution is exactly symmetric,
// so its mean is zero; as a sum of four it is bell-shaped (excess kurtosis -0.3). Sums of such numbers are exact in any
// order.
func Integer(w uint32) int8 {
	s := int32(int8(w)) + int32(int8(w>>8)) + int32(int8(w>>16)) + int32(int8(w>>24|1))
	return int8((s + 3) >> 2)
}

// Integers writes tile row b of k's stream as whole numbers: element i comes from the words whose normals are element i
// and its partner of Row, one word for each.
func (s *Schedule) Integers(dst *[Tile]int8, k Key, b uint32) {
	for i := range uint32(8) {
		w := s.Block(k.Counter(8*b + i))
		dst[2*i], dst[2*i+1] = Integer(w[0]), Integer(w[1])
		dst[16+2*i], dst[17+2*i] = Integer(w[2]), Integer(w[3])
	}
}
