package data

import (
	"slices"

	"brood/models/usererr"
)

// Views configures test-time augmentation: the model's outputs for several views of an image are averaged.
type Views struct {
	Flip    bool // add the left-right mirror image of each view
	Shift   int  // add views shifted by N pixels up-left and down-right, each of half the weight; 0: none
	Reflect bool // fill shifted-in pixels with the image mirrored at its border instead of black
}

// View is one view of an image.
type View struct {
	Flip        bool
	Down, Right int     // shift in pixels
	Reflect     bool    // as in Views
	Weight      float64 // of its output in the average; the weights of all views sum to 1
}

// ParseViews parses the views option: flip, and shift=N or reflect=N, separated by a comma. One is enough.
func ParseViews(text string) (Views, error) {
	for _, word := range []string{"shift", "reflect"} {
		if flip, n, ok := parseFlagAndNumber(text, "flip", word); ok {
			return Views{Flip: flip, Shift: n, Reflect: n > 0 && word == "reflect"}, nil
		}
	}
	return Views{}, usererr.Errorf("views %q: write flip, and shift=N or reflect=N, with a comma between them, "+
		"such as flip,shift=1", text)
}

// List returns the views. The first is the unchanged image.
func (v Views) List() (out []View) {
	out = []View{{Weight: 1}}
	if v.Shift > 0 {
		out = []View{
			{Weight: 0.5},
			{Down: -v.Shift, Right: -v.Shift, Reflect: v.Reflect, Weight: 0.25},
			{Down: v.Shift, Right: v.Shift, Reflect: v.Reflect, Weight: 0.25},
		}
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

// Viewable returns an error if the set does not support the views. Samples must be images. For a shift they must be
// bytes, since the value of black is unknown for numbers, and the shift must be less than the smaller side.
func (s *Set) Viewable(views []View) error {
	for _, v := range views {
		far := max(v.Down, -v.Down, v.Right, -v.Right)
		switch {
		case len(s.Shape) != 3 || s.Text:
			return usererr.Errorf("data %s: its samples are no images, which could be shown in another way", s.Name)
		case far > 0 && s.pixels == nil:
			return usererr.Errorf("data %s: its pixels are numbers, and to move images takes bytes: "+
				"save them as whole numbers from 0 to 255, or take flip alone", s.Name)
		case far >= min(s.Shape[1], s.Shape[2]):
			return usererr.Errorf("data %s: to move images of %d x %d by %d pixels leaves nothing of them: "+
				"give less than the smaller side", s.Name, s.Shape[1], s.Shape[2], far)
		}
	}
	return nil
}

// Viewed returns the data transformed by a view: shifted, then mirrored. The result is a copy, or s itself if the view
// changes nothing. It fails if the view is not [Set.Viewable].
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
			shiftedRow(c.pixels[row*width:(row+1)*width], s.pixels, row, height, -v.Down, -v.Right, v.Reflect)
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
