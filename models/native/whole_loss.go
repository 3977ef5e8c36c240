package native

import (
	"math"
	"math/bits"

	"brood/models"
	"brood/models/data"
)

// wholeOne is a loss of one bit.
const wholeOne = 1 << 16

// wholePowers are 2^(-i/16) in units of 2^-32.
var wholePowers = [models.LogitUnits]uint64{4294967296, 4112874773, 3938502376, 3771522796, 3611622603, 3458501653, 3311872529, 3171459999,
	3037000500, 2908241642, 2784941738, 2666869345, 2553802834, 2445529972, 2341847524, 2242560872}

// wholeLoss is the cross-entropy of a class by the logits z, in units of 1/65536 of a bit: log2 of the sum of 2^(z/16),
// less z of the class over 16.
func wholeLoss(z []int32, class int32) int64 {
	most := z[0]
	for _, x := range z {
		most = max(most, x)
	}
	sum := uint64(0)
	for _, x := range z {
		d := uint(most - x)
		sum += wholePowers[d%models.LogitUnits] >> (d / models.LogitUnits)
	}
	return int64(most-z[class])*(wholeOne/models.LogitUnits) + wholeLog(sum)
}

// wholeLog is log2(sum/2^32) in units of 1/65536, rounded down digit by digit; sum is at least 2^32.
func wholeLog(sum uint64) int64 {
	whole := bits.Len64(sum) - 1
	log, m := int64(whole-32), sum<<(63-whole)>>32 // m/2^31 in [1, 2)
	for range 16 {
		log <<= 1
		if m = m * m >> 31; m >= 1<<32 {
			log, m = log|1, m>>1
		}
	}
	return log
}

// score is the summed loss of the samples, in units of 1/65536 of a bit, and how many are right.
func (w *wholePass) score(m *models.Model, set *data.Set, ids []int32) (loss, correct int64) {
	for s, id := range ids {
		z, best, class := w.logits[s*m.Classes:(s+1)*m.Classes], 0, set.Label(id)
		for c, x := range z {
			if x > z[best] {
				best = c
			}
		}
		if best == int(class) {
			correct++
		}
		loss += wholeLoss(z, class)
	}
	return loss, correct
}

// nats is a loss in units of 1/65536 of a bit as one in nats.
func nats(loss int64) float64 { return float64(loss) * (math.Ln2 / wholeOne) }
