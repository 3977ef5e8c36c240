package data

import (
	"fmt"

	"brood/models/noise"
)

// Augment is how an image changes each time it is drawn for training.
type Augment struct {
	Pad  int  // crop the image's size from the image with so many black pixels around it, at a random place
	Flip bool // mirror left and right, half of the time
}

// Apply writes to dst what becomes of the image src of a shape [channels, height, width]; they must not overlap. It is a
// pure function of the image, of key's seed, purpose and member, and of the position in the member's stream of data: the
// cursor of the batch plus the place in it. The key is that of the stream, of purpose noise.Order; its Round is ignored and
// its Stream must be 0, since 1 is taken here.
func (a Augment) Apply(dst, src []byte, shape []int, key noise.Key, position uint64) error {
	if len(shape) != 3 || len(src) != shape[0]*shape[1]*shape[2] || len(dst) != len(src) {
		return fmt.Errorf("data: augment %d bytes into %d as an image of shape %v", len(src), len(dst), shape)
	}
	if a.Pad < 0 || a.Pad > 1<<12 {
		return fmt.Errorf("data: augment with a padding of %d, want 0 to 4096", a.Pad)
	}
	key.Round, key.Stream = position, 1
	dy, dx := key.Below(0, 2*a.Pad+1)-a.Pad, key.Below(1, 2*a.Pad+1)-a.Pad
	flip := a.Flip && key.Below(2, 2) == 1
	height, width := shape[1], shape[2]
	for row := range shape[0] * height {
		out := dst[row*width : (row+1)*width]
		clear(out)
		y := row%height + dy
		if lo, hi := max(0, -dx), min(width, width-dx); y >= 0 && y < height && lo < hi {
			copy(out[lo:hi], src[(row+dy)*width+lo+dx:])
		}
		if flip {
			for i, j := 0, width-1; i < j; i, j = i+1, j-1 {
				out[i], out[j] = out[j], out[i]
			}
		}
	}
	return nil
}
