package kernel

import (
	"math"
	"unsafe"

	"brood/models/noise"
)

// Integers writes scale times the Integer noise of elements [lo, lo+len(dst)) of f, with rounded products.
func (k *Kernels) Integers(dst []float32, scale float32, f Field, lo int) {
	k.fill(dst, f, lo, k.isa.noiseFloats, scale, func(first uint32, count int) { k.integerTiles(first, count, scale, f) })
}

// ByteStride returns the bytes of a row of IntegerBytes.
func ByteStride(cols int) int { return (cols + noise.Tile - 1) / noise.Tile * noise.Tile }

// IntegerBytes writes the Integer noise of the first rows rows of f, each padded to ByteStride(f.Cols) by values that
// belong to no element.
func (k *Kernels) IntegerBytes(dst []int8, f Field, rows int) {
	tiles := rows * ByteStride(f.Cols) / noise.Tile
	dst = dst[:tiles*noise.Tile]
	if k.isa.noiseBytes != nil && tiles > 0 {
		k.noise = f.args(unsafe.Pointer(unsafe.SliceData(dst)), 0, tiles)
		k.isa.noiseBytes(&k.noise)
		return
	}
	for i := range tiles {
		f.Schedule.Integers((*[noise.Tile]int8)(dst[noise.Tile*i:]), f.Key, uint32(i))
	}
}

// RoundedBytes is IntegerBytes with each value v replaced by outer*(inner*v), both products rounded, then rounded to
// the nearest integer, ties to even, and limited to [-127, 127]. NaN becomes 0.
func (k *Kernels) RoundedBytes(dst []int8, outer, inner float32, f Field, rows int) {
	tiles := rows * ByteStride(f.Cols) / noise.Tile
	dst = dst[:tiles*noise.Tile]
	most := 127 * inner * outer
	// Otherwise values exceed int32 or are NaN.
	if k.isa.noiseRounded != nil && tiles > 0 && most > -1<<30 && most < 1<<30 {
		k.noise = f.args(unsafe.Pointer(unsafe.SliceData(dst)), 0, tiles)
		k.noise.keep, k.noise.limit = inner, math.Float32bits(outer)
		k.isa.noiseRounded(&k.noise)
		return
	}
	k.IntegerBytes(dst, f, rows)
	var table [256]int8
	for v := -127; v <= 127; v++ {
		if x := math.RoundToEven(float64(outer * float32(inner*float32(v)))); x == x {
			table[uint8(v)] = int8(max(-127, min(127, x)))
		}
	}
	for i, v := range dst {
		dst[i] = table[uint8(v)]
	}
}

// IntegerSum computes dst = scale * (sum_i weights[i]*v(members[i])) over elements [lo, lo+len(dst)) of f, whose
// Key.Member is not read. The sum must fit int32, where it is exact; it is then rounded to float32 and multiplied.
func (k *Kernels) IntegerSum(dst []float32, members []uint32, weights []int32, scale float32, f Field, lo int) {
	if len(members) == 0 {
		clear(dst)
		return
	}
	weights = weights[:len(members)]
	k.lead(f, members)
	k.runs(len(dst), lo, f, func(first uint32, count int) { k.wholeTiles(first, count, members, weights, scale, f) },
		func(at int, sum []float32) { copy(dst[at:], sum) })
}

// integerTiles fills k.line with scaled tiles [first, first+count).
func (k *Kernels) integerTiles(first uint32, count int, scale float32, f Field) {
	if k.isa.noiseFloats != nil {
		k.noise = f.args(ptr(k.line, 0), first, count)
		k.noise.keep = scale
		k.isa.noiseFloats(&k.noise)
		return
	}
	var v [noise.Tile]int8
	for i := range count {
		f.Schedule.Integers(&v, f.Key, first+uint32(i))
		for l, x := range v {
			k.line[noise.Tile*i+l] = float32(x) * scale
		}
	}
}

// wholeTiles fills k.line with tiles of sums.
func (k *Kernels) wholeTiles(first uint32, count int, members []uint32, weights []int32, scale float32, f Field) {
	if k.isa.noiseWhole != nil {
		k.noise = k.sumArgs(f, first, count, members, unsafe.Pointer(unsafe.SliceData(weights)))
		k.noise.keep = scale
		k.isa.noiseWhole(&k.noise)
		return
	}
	var v [noise.Tile]int8
	for i := range count {
		var sum [noise.Tile]int32
		for j, m := range members {
			f.Key.Member = m
			f.Schedule.Integers(&v, f.Key, first+uint32(i))
			for l, x := range v {
				sum[l] += weights[j] * int32(x)
			}
		}
		for l, s := range sum {
			k.line[noise.Tile*i+l] = float32(s) * scale
		}
	}
}
