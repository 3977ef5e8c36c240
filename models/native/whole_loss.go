package native

import (
	"math"
	"math/bits"
	"slices"

	"brood/models"
	"brood/models/data"
	"brood/models/native/kernel"
)

// wholeOne is a loss of one bit.
const wholeOne = 1 << 16

// wholeLogs adds up log2(sum/2^32) in units of 1/65536, each rounded down digit by digit; sums must be at least 2^32.
// The digits of a logarithm depend on each other, so it computes four logarithms at once in little more time.
func wholeLogs(sums []uint64) (total int64) {
	for len(sums) > 0 {
		four := [4]uint64{1 << 32, 1 << 32, 1 << 32, 1 << 32} // logarithm zero
		sums = sums[copy(four[:], sums):]
		a, i := mantissa(four[0])
		b, j := mantissa(four[1])
		c, k := mantissa(four[2])
		d, l := mantissa(four[3])
		for range 16 {
			a, i = digit(a, i)
			b, j = digit(b, j)
			c, k = digit(c, k)
			d, l = digit(d, l)
		}
		total += int64(i + j + k + l)
	}
	return total
}

// mantissa splits a sum of at least 2^32 into m/2^31 in [1, 2) and a power of two, minus 2^32.
func mantissa(sum uint64) (m, log uint64) {
	whole := bits.Len64(sum) - 1
	return sum << (63 - whole) >> 32, uint64(whole - 32)
}

// digit squares m and appends the next digit of its logarithm.
func digit(m, log uint64) (uint64, uint64) {
	m = m * m >> 31
	beyond := m >> 32 // m is now in [2^31, 2^33)
	return m >> (beyond & 1), log<<1 | beyond
}

// score returns the summed loss of n samples, in units of 1/65536 of a bit, and the number of correct predictions: the
// predicted class is the first with the largest logit. The cross-entropy of class c with logits z is log2 of the sum of
// 2^(z/16), minus z[c]/16.
func (w *wholePass) score(k *kernel.Kernels, m *models.Model, set *data.Set, ids []int32) (loss, correct int64) {
	most, powers := w.most[:len(ids)], w.powers[:len(ids)]
	k.PowerSums(most, powers, w.logits, m.Classes)
	for s, id := range ids {
		z, class := w.logits[s*m.Classes:(s+1)*m.Classes], set.Label(id)
		loss += int64(most[s]-z[class]) * (wholeOne / models.LogitUnits)
		if z[class] == most[s] && !slices.Contains(z[:class], most[s]) {
			correct++
		}
	}
	return loss + wholeLogs(powers), correct
}

// nats converts a loss from units of 1/65536 of a bit to nats.
func nats(loss int64) float64 { return float64(loss) * (math.Ln2 / wholeOne) }
