package data

import (
	"image"
	"strconv"
	"strings"

	"brood/models/usererr"
)

// Resize specifies how pictures of any size become samples of Side x Side pixels. The zero Resize requires pictures of
// one size.
type Resize struct {
	Side      int
	Letterbox bool // the whole picture, between black bars; else its central square
}

// Bounds of resizing: the largest side of a sample, and of a picture before it is resized. The second one keeps the
// sums of scalePlane within 64 bits.
const (
	maxSide    = 4096
	maxPicture = 1 << 16
)

// ParseResize parses the option resize: a number of pixels, optionally followed by ,crop or ,letterbox. An empty text
// is the zero Resize.
func ParseResize(text string) (r Resize, err error) {
	if text == "" {
		return r, nil
	}
	side, how, given := strings.Cut(text, ",")
	r.Side, err = strconv.Atoi(side)
	if r.Letterbox = how == "letterbox"; err != nil || r.Side < 1 || r.Side > maxSide ||
		given && how != "crop" && how != "letterbox" {
		return Resize{}, usererr.Errorf("resize = %q: write the pixels of a side, 1 to %d, as in 64 or 64,letterbox", text,
			maxSide)
	}
	return r, nil
}

// String returns the text that ParseResize parses.
func (r Resize) String() string {
	switch {
	case r.Side == 0:
		return ""
	case r.Letterbox:
		return strconv.Itoa(r.Side) + ",letterbox"
	}
	return strconv.Itoa(r.Side)
}

// Doc describes for users what happens to a picture.
func (r Resize) Doc() string {
	side := strconv.Itoa(r.Side)
	if r.Letterbox {
		return "scaled to fit into " + side + " x " + side + " pixels, with black bars"
	}
	return "cropped to their central square and scaled to " + side + " x " + side + " pixels"
}

// resize returns the resizing of pictures: that of the options, else that of the model.
func (r Reading) resize() Resize {
	if r.Resize.Side == 0 && r.Form != nil {
		return r.Form.Resize
	}
	return r.Resize
}

// checkNoResize returns an error if pictures are to be resized, for other data. what names the data.
func (r Reading) checkNoResize(what string) error {
	if r.Resize.Side == 0 {
		return nil
	}
	return usererr.Errorf("resize %s: %s is no folder of PNG or JPEG pictures; leave it out", r.Resize, what)
}

// regions returns the part of a picture of this size that is used, and its place in the sample.
func (r Resize) regions(size image.Point) (from, to image.Rectangle) {
	if !r.Letterbox {
		n := min(size.X, size.Y)
		corner := image.Pt((size.X-n)/2, (size.Y-n)/2)
		return image.Rectangle{Min: corner, Max: corner.Add(image.Pt(n, n))}, image.Rect(0, 0, r.Side, r.Side)
	}
	n := max(size.X, size.Y)
	scaled := func(side int) int { return max(1, (2*side*r.Side+n)/(2*n)) } // rounded half up
	at := image.Pt(scaled(size.X), scaled(size.Y))
	corner := image.Pt((r.Side-at.X)/2, (r.Side-at.Y)/2)
	return image.Rectangle{Max: size}, image.Rectangle{Min: corner, Max: corner.Add(at)}
}

// draw writes a picture to dst, a sample of zeros. planes has the channels of the picture, each of this size.
func (r Resize) draw(dst, planes []byte, size image.Point) {
	from, to := r.regions(size)
	across, down := filterTaps(from.Dx(), to.Dx()), filterTaps(from.Dy(), to.Dy())
	for n := r.Side * r.Side; len(dst) > 0; dst, planes = dst[n:], planes[size.X*size.Y:] {
		scalePlane(dst[to.Min.Y*r.Side+to.Min.X:], r.Side, planes[from.Min.Y*size.X+from.Min.X:], size.X, across, down)
	}
}

// taps are the inputs of one output of a filter: weights of consecutive inputs, and their sum.
type taps struct {
	first   int
	weights []uint64
	sum     uint64
}

// filterTaps returns the taps of each of out pixels over in pixels in a row: a triangle whose half width is one pixel
// of the coarser of both grids. This is bilinear interpolation for larger pictures, and a mean over the covered pixels,
// so without aliasing, for smaller ones. With centres at (2i+1)/2 pixels, distances in units of 1/(2 out) input pixels
// are whole numbers, so that the weights are exact.
func filterTaps(in, out int) []taps {
	all, reach := make([]taps, out), 2*max(in, out)
	for i := range all {
		t, centre := &all[i], (2*i+1)*in
		t.first = max(0, ((centre-reach)/out-1)/2)
		for j := t.first; j < in; j++ {
			d := (2*j+1)*out - centre
			if w := reach - max(d, -d); w > 0 {
				t.weights, t.sum = append(t.weights, uint64(w)), t.sum+uint64(w)
			} else if d > 0 {
				break
			} else {
				t.first = j + 1
			}
		}
	}
	return all
}

// scalePlane filters one channel, first the rows and then the columns. Rows of dst and src begin every toRow and
// fromRow elements. All arithmetic is of whole numbers, so that its results are equal on every platform: rows are
// rounded to 16 bits, results to 8 bits, halves up.
func scalePlane(dst []byte, toRow int, src []byte, fromRow int, across, down []taps) {
	last := down[len(down)-1]
	rows := last.first + len(last.weights)
	between := make([]uint16, rows*len(across))
	for y := range rows {
		row := src[y*fromRow:]
		for x, t := range across {
			sum := uint64(0)
			for k, w := range t.weights {
				sum += w * uint64(row[t.first+k])
			}
			between[y*len(across)+x] = uint16((2*257*sum + t.sum) / (2 * t.sum))
		}
	}
	for y, t := range down {
		for x := range across {
			sum := uint64(0)
			for k, w := range t.weights {
				sum += w * uint64(between[(t.first+k)*len(across)+x])
			}
			dst[y*toRow+x] = byte((2*sum + 257*t.sum) / (2 * 257 * t.sum))
		}
	}
}
