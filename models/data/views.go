package data

import (
	"slices"

	"brood/models/usererr"
)

// Views are the ways in which a model is shown an image when it is asked about it, whose answers are averaged
// (test-time augmentation).
type Views struct {
	Flip    bool // each is shown mirrored left and right too
	Shift   int  // the image also so many pixels up and to the left, and down and to the right, half as heavy
	Reflect bool // what comes in then is the image's own, mirrored at its border, and not black
}

// View is one of them.
type View struct {
	Flip        bool
	Down, Right int // pixels; black ones come in, or with Reflect the image's own, mirrored at its border
	Reflect     bool
	Weight      float64 // of its answer; those of all add up to 1
}

// ParseViews reads what a person writes: flip, and shift=N or reflect=N, separated by a comma.
func ParseViews(text string) (Views, error) {
	for _, word := range []string{"shift", "reflect"} {
		if flip, n, ok := flips(text, "flip", word); ok {
			return Views{Flip: flip, Shift: n, Reflect: n > 0 && word == "reflect"}, nil
		}
	}
	return Views{}, usererr.Errorf("views %q: write flip, and shift=N or reflect=N, with a comma between them, such as flip,shift=1", text)
}

// List is the views, the image as it is first.
func (v Views) List() (out []View) {
	out = []View{{Weight: 1}}
	if v.Shift > 0 {
		out = []View{{Weight: 0.5}, {Down: -v.Shift, Right: -v.Shift, Reflect: v.Reflect, Weight: 0.25}, {Down: v.Shift, Right: v.Shift, Reflect: v.Reflect, Weight: 0.25}}
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
			return usererr.Errorf("data %s: its samples are no images, which could be shown in another way", s.Name)
		case far > 0 && s.pixels == nil:
			return usererr.Errorf("data %s: its pixels are numbers, and to move images takes bytes: save them as whole numbers from 0 to 255, or take flip alone", s.Name)
		case far >= min(s.Shape[1], s.Shape[2]):
			return usererr.Errorf("data %s: to move images of %d x %d by %d pixels leaves nothing of them: give less than the smaller side", s.Name, s.Shape[1], s.Shape[2], far)
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
		for row := range len(s.pixels) / width {
			moved(c.pixels[row*width:(row+1)*width], s.pixels, row, height, -v.Down, -v.Right, v.Reflect)
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
