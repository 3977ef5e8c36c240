package kernel

import "unsafe"

// powers are 2^(-i/16) in units of 2^-32, rounded.
var powers = [16]uint64{
	4294967296, 4112874773, 3938502376, 3771522796, 3611622603, 3458501653, 3311872529, 3171459999,
	3037000500, 2908241642, 2784941738, 2666869345, 2553802834, 2445529972, 2341847524, 2242560872,
}

// PowerSums computes for each row of n integers z (rows are contiguous) the largest, written to most, and written to
// sums the sum of
//
//	p[(most-z) mod 16] >> (most-z)/16, p[i] = 2^(32 - i/16) rounded,
//
// over the row. There are len(most) rows. Differences must be below 2^31.
func (k *Kernels) PowerSums(most []int32, sums []uint64, z []int32, n int) {
	sums, z = sums[:len(most)], z[:len(most)*n]
	if k.isa.powerSums != nil && len(z) > 0 {
		k.sweep(n)
		v := &k.vec
		v.dst, v.rows = unsafe.Pointer(unsafe.SliceData(most)), len(most)
		v.x = [4]unsafe.Pointer{unsafe.Pointer(unsafe.SliceData(z)), unsafe.Pointer(&powers),
			unsafe.Pointer(unsafe.SliceData(sums))}
		k.isa.powerSums(v)
		return
	}
	for i := range most {
		row, top, sum := z[i*n:(i+1)*n], z[i*n], uint64(0)
		for _, x := range row {
			top = max(top, x)
		}
		for _, x := range row {
			d := uint32(top - x)
			sum += powers[d%16] >> (d / 16)
		}
		most[i], sums[i] = top, sum
	}
}
