package data

import (
	"slices"

	"brood/models/typed"
)

// Views are the ways in which a model is shown an image when it is asked about it, whose answers are averaged
// (test-time augmentation).
type Views struct {
	Flip  bool // each is shown mirrored left and right too
	Shift int  // the image also so many pixels up and to the left, and down and to the right, half as heavy
}

// View is one of them.
type View struct {
	Flip        bool
	Down, Right int     // pixels; black ones come in
	Weight      float64 // of its answer; those of all add up to 1
}

// ParseViews reads what a person writes: flip and shift=N, separated by a comma.
func ParseViews(text string) (v Views, err error) {
	var ok bool
	if v.Flip, v.Shift, ok = flips(text, "flip", "shift"); !ok {
		return Views{}, typed.Errorf("views %q: write flip, shift=N, or both with a comma between them, such as flip,shift=1", text)
	}
	return v, nil
}

// List is the views, the image as it is first.
func (v Views) List() (out []View) {
	out = []View{{Weight: 1}}
	if v.Shift > 0 {
		out = []View{{Weight: 0.5}, {Down: -v.Shift, Right: -v.Shift, Weight: 0.25}, {Down: v.Shift, Right: v.Shift, Weight: 0.25}}
	}
	if v.Flip {
		for _, one := range slices.Clone(out) {
			one.Flip = true
			out = append(out, one)
		}
		for i := range out {
			out[i].Weight /= 2
		}
	}
	return out
}

// Viewable says whether the set can be shown in these views: its samples must be images, and where a view moves them of
// bytes, since it is not known what is black among numbers.
func (s *Set) Viewable(views []View) error {
	for _, v := range views {
		far := max(v.Down, -v.Down, v.Right, -v.Right)
		switch {
		case len(s.Shape) != 3 || s.Text:
			return typed.Errorf("data %s: its samples are no images, which could be shown in another way", s.Name)
		case far > 0 && s.pixels == nil:
			return typed.Errorf("data %s: its pixels are numbers, and shift takes bytes: save them as whole numbers from 0 to 255, or leave shift out", s.Name)
		case far >= min(s.Shape[1], s.Shape[2]):
			return typed.Errorf("data %s: shift=%d leaves nothing of images of %d x %d: give less than the smaller side", s.Name, far, s.Shape[1], s.Shape[2])
		}
	}
	return nil
}

// Viewed is the same data as a view shows it: moved, then mirrored, in memory of its own unless it is shown as it is.
// It fails where that is not [Set.Viewable].
func (s *Set) Viewed(v View) (*Set, error) {
	if err := s.Viewable([]View{v}); err != nil {
		return nil, err
	}
	moves := v.Down != 0 || v.Right != 0
	if !v.Flip && !moves {
		return s, nil
	}
	c, height, width := *s, s.Shape[1], s.Shape[2]
	c.pixels, c.values = slices.Clone(s.pixels), slices.Clone(s.values)
	if moves {
		clear(c.pixels)
		from, to := max(0, -v.Right), max(0, v.Right)
		for row := range len(s.pixels) / width {
			if y := row%height + v.Down; y >= 0 && y < height {
				copy(c.pixels[(row+v.Down)*width+to:(row+v.Down+1)*width], s.pixels[row*width+from:(row+1)*width])
			}
		}
	}
	if v.Flip {
		for row := range slices.Chunk(c.pixels, width) {
			slices.Reverse(row)
		}
		for row := range slices.Chunk(c.values, width) {
			slices.Reverse(row)
		}
	}
	return &c, nil
}
