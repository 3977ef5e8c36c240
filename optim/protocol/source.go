package protocol

import (
	"math/bits"

	"brood/models/noise"
)

// source reads the words of a key one after another: the randomness of one execution in one round. 2^66 words.
type source struct {
	s   *noise.Schedule
	ctr [4]uint32
	w   [4]uint32
	at  int // next of w
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

// below is uniform in [0, n), exactly: products whose low half falls short are drawn again (Lemire 2019).
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

// unit is uniform in (0, 1): an odd multiple of 2^-53.
func (r *source) unit() float64 {
	return float64(float64(r.word64()>>12)*(1.0/(1<<52))) + 1.0/(1<<53)
}

// two are distinct agents of n: who begins and who answers.
func (r *source) two(n uint64) (i, j uint64) {
	i, j = r.below(n), r.below(n-1)
	if j >= i {
		j++
	}
	return i, j
}
