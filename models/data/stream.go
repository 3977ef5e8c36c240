package data

import "brood/models/noise"

// Window is a contiguous, wrapping range of a base permutation of the sample ids. If each of n members is trained on a
// fraction f of N samples, member i has the window {N*i/n, f*N}.
type Window struct{ Lo, Len int }

// Batch fills dst with elements cursor, cursor+1, ... of a data stream over ids. It is a pure function, so that the
// cursor is the only state of a data order across joins, resizes and resumption. key contains seed, purpose and stream
// (as Member); its Round is ignored. Element p is
//
//	ids[base((Lo + perm_pass(p mod Len)) mod N)],  pass = p / Len
//
// where base is the same permutation for all streams of the seed, and perm_pass differs for every pass of every stream.
// Len is clamped to 1..N and a negative Lo to 0. If ids is empty, dst is unchanged.
func Batch(dst, ids []int32, key noise.Key, cursor uint64, w Window) {
	if len(dst) == 0 || len(ids) == 0 {
		return
	}
	total := uint64(len(ids))
	n, lo := uint64(max(1, min(w.Len, len(ids)))), uint64(max(0, w.Lo))%total
	base := noise.Key{Seed: key.Seed, Purpose: noise.Split, Round: 1}.Permutation(total)
	var perm noise.Permutation
	var places [64]uint64
	for p, pass, first := cursor, uint64(0), true; len(dst) > 0; first = false {
		if first || p/n != pass {
			pass = p / n
			key.Round = pass
			perm = key.Permutation(n)
		}
		at := places[:min(uint64(len(places)), uint64(len(dst)), n-p%n)] // positions within one pass
		for i := range at {
			at[i] = p%n + uint64(i)
		}
		perm.Map(at)
		for i, x := range at {
			at[i] = (lo + x) % total
		}
		base.Map(at)
		for i, x := range at {
			dst[i] = ids[x]
		}
		p, dst = p+uint64(len(at)), dst[len(at):]
	}
}
