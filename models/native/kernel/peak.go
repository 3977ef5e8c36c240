package kernel

import "time"

// Peak is the multiply-add rate of the registers alone in GFLOP/s, which no product exceeds: the best of some hundred
// short runs, since a neighbour only ever slows one down. The portable twin has none, and 0 is returned.
func (k *Kernels) Peak() float64 {
	if k.isa.peak == nil {
		return 0
	}
	const turns = 20_000
	best := 0.0
	for range 200 {
		began := time.Now()
		k.isa.peak(turns)
		best = max(best, turns*k.isa.peakFlops/time.Since(began).Seconds()/1e9)
	}
	return best
}

// Bandwidth is what the memory gives in GB/s: the best of many pieces of a vector that is added to another, neither of
// which fits a cache. (A result of its own would be read before it is written, unseen.)
func (k *Kernels) Bandwidth() float64 {
	const n, piece = 24 << 20, 1 << 18
	x := aligned(2 * n)
	for i := range x { // memory that was never written is one page of zeros
		x[i] = 1
	}
	best := 0.0
	for range 4 {
		for lo := 0; lo < n; lo += piece {
			began := time.Now()
			k.Add(x[lo:lo+piece], x[lo:lo+piece], x[n+lo:n+lo+piece])
			best = max(best, 3*4*piece/time.Since(began).Seconds()/1e9)
		}
	}
	return best
}
