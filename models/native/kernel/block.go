package kernel

// Lanes is the number of samples in a block of activations: the innermost index of convolutions and pooling.
const Lanes = 32

// Plane returns the number of rows of Lanes floats per channel of an image of h x w: the pixels, plus one if their
// number is even. An odd distance spreads the channels over all sets of a cache. The extra row is not read.
func Plane(h, w int) int { return h*w | 1 }

// ToBlock writes rows (at most Lanes) samples of channels x h x w values, stored at stride ld, as a block
// [channels][Plane(h, w)][Lanes]. Lanes without a sample become zero.
func (k *Kernels) ToBlock(dst, src []float32, ld, rows, channels, h, w int) {
	pixels, plane := h*w, Plane(h, w)
	dst, src = dst[:channels*plane*Lanes], matrix(src, rows, channels*pixels, ld)
	if plane == pixels { // channels are contiguous
		channels, pixels = 1, channels*pixels
	}
	for c := range channels {
		k.transpose(dst[c*plane*Lanes:], Lanes, src[c*pixels:], ld, min(rows, Lanes), pixels, Lanes)
	}
}

// FromBlock is the inverse: it writes rows samples at stride ld from a block.
func (k *Kernels) FromBlock(dst []float32, ld int, src []float32, rows, channels, h, w int) {
	pixels, plane := h*w, Plane(h, w)
	dst, src = matrix(dst, rows, channels*pixels, ld), src[:channels*plane*Lanes]
	if plane == pixels {
		channels, pixels = 1, channels*pixels
	}
	for c := range channels {
		k.transpose(dst[c*pixels:], ld, src[c*plane*Lanes:], Lanes, pixels, min(rows, Lanes), pixels)
	}
}
