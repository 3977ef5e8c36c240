package protocol

import (
	"math/bits"

	"brood/models/noise"
)

// source is the random stream of one execution in one round: the 2^66 words of a key, in order.
type source struct {
	s   *noise.Schedule
	ctr [4]uint32
	w   [4]uint32
	at  int // index of the next word in w; 4: w is used up
}

func newSource(k noise.Key) *source {
	return &source{s: k.Schedule(), ctr: k.Counter(0), at: 4}
}

func (r *source) word() uint32 {
	if r.at == 4 {
		r.w, r.at = r.s.Block(r.ctr), 0
		if r.ctr[0]++; r.ctr[0] == 0 {
			r.ctr[1]++
		}
	}
	r.at++
	return r.w[r.at-1]
}

func (r *source) word64() uint64 { return uint64(r.word())<<32 | uint64(r.word()) }

// below draws a uniform integer in [0, n). It is exactly uniform: products whose low half is too small are rejected
// (Lemire 2019).
func (r *source) below(n uint64) uint64 {
	if n < 1<<32 {
		for {
			p := uint64(r.word()) * n
			if low := p & (1<<32 - 1); low >= n || low >= (1<<32)%n {
				return p >> 32
			}
		}
	}
	for {
		hi, lo := bits.Mul64(r.word64(), n)
		if lo >= n || lo >= -n%n {
			return hi
		}
	}
}

// unit draws a uniform number in (0, 1): an odd multiple of 2^-53.
func (r *source) unit() float64 {
	return float64(float64(r.word64()>>12)*(1.0/(1<<52))) + 1.0/(1<<53)
}

// distinctPair draws two distinct agents of n: the initiator i and the responder j.
func (r *source) distinctPair(n uint64) (i, j uint64) {
	i, j = r.below(n), r.below(n-1)
	if j >= i {
		j++
	}
	return i, j
}
