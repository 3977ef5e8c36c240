package data

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"io"
	"iter"
)

// drawing is the configuration of converting a picture to a sample.
type drawing struct {
	size            image.Point // of the sample, and of the picture unless resize is set
	resize          Resize
	grey            bool // one channel; else red, green and blue
	whiteBackground bool // draw transparent pixels on white; else on black
}

// read decodes the picture file f and writes its pixels to dst, channel by channel and turned upright.
func (d drawing) read(dst []byte, f picture) (a appearance, err error) {
	err = f.open(func(in io.ReadSeeker, isPNG bool) error {
		decode := jpeg.Decode
		if isPNG {
			decode = png.Decode
		}
		img, err := decode(in)
		if err != nil {
			return err
		}
		if d.resize.Side == 0 {
			a, err = d.drawUpright(dst, img, f.orientation)
			return err
		}
		whole := d
		whole.size = turned(img.Bounds().Size(), f.orientation)
		planes := make([]byte, len(dst)/(d.size.X*d.size.Y)*whole.size.X*whole.size.Y)
		if a, err = whole.drawUpright(planes, img, f.orientation); err == nil {
			d.resize.draw(dst, planes, whole.size)
		}
		return err
	})
	return a, err
}

// turned returns the upright size of a picture that is stored in the given EXIF orientation.
func turned(size image.Point, orientation int) image.Point {
	if orientation >= firstOnSide {
		return image.Pt(size.Y, size.X)
	}
	return size
}

// drawUpright writes img, stored in the given EXIF orientation, to dst upright.
func (d drawing) drawUpright(dst []byte, img image.Image, orientation int) (appearance, error) {
	if orientation <= upright {
		return d.drawPlanes(dst, img)
	}
	stored := d
	stored.size = turned(d.size, orientation)
	planes := make([]byte, len(dst))
	a, err := stored.drawPlanes(planes, img)
	if err != nil {
		return a, err
	}
	for n := d.size.X * d.size.Y; len(dst) > 0; dst, planes = dst[n:], planes[n:] {
		turn(dst[:n], planes[:n], stored.size.X, stored.size.Y, orientation)
	}
	return a, nil
}

// drawPlanes writes img to dst as stored, channel by channel. It fails if the size differs from d.size.
func (d drawing) drawPlanes(dst []byte, img image.Image) (appearance, error) {
	if img.Bounds().Size() != d.size {
		return appearance{}, fmt.Errorf("it is %v, its header says %v", img.Bounds().Size(), d.size)
	}
	a := measureAppearance(img)
	if a.has16Bits || d.whiteBackground && a.transparent {
		d.draw16Bit(dst, img)
		return a, nil
	}
	box := image.Rectangle{Max: d.size}
	if d.grey {
		draw.Draw(&image.Gray{Pix: dst, Stride: d.size.X, Rect: box}, box, img, img.Bounds().Min, draw.Src)
		return a, nil
	}
	rgba := image.NewRGBA(box)
	draw.Draw(rgba, box, img, img.Bounds().Min, draw.Src)
	n := d.size.X * d.size.Y
	for i := range n {
		dst[i], dst[n+i], dst[2*n+i] = rgba.Pix[4*i], rgba.Pix[4*i+1], rgba.Pix[4*i+2]
	}
	return a, nil
}

// draw16Bit writes a picture of 16 bits per channel to dst, rounding to 8 bits: 65535 becomes 255.
func (d drawing) draw16Bit(dst []byte, img image.Image) {
	n := d.size.X * d.size.Y
	i := 0
	for c := range pixels(img) {
		ground := uint32(0)
		if d.whiteBackground {
			ground = 0xffff - uint32(c.A)
		}
		for k, v := range []uint16{c.R, c.G, c.B} {
			if k == 0 || !d.grey {
				dst[k*n+i] = byte((uint32(v) + ground + 128) / 257)
			}
		}
		i++
	}
}

// pixels yields the pixels row by row, with alpha-premultiplied colours.
func pixels(img image.Image) iter.Seq[color.RGBA64] {
	at := func(x, y int) color.RGBA64 { return color.RGBA64Model.Convert(img.At(x, y)).(color.RGBA64) }
	if fast, ok := img.(image.RGBA64Image); ok {
		at = fast.RGBA64At
	}
	box := img.Bounds()
	return func(yield func(color.RGBA64) bool) {
		for y := box.Min.Y; y < box.Max.Y; y++ {
			for x := box.Min.X; x < box.Max.X; x++ {
				if !yield(at(x, y)) {
					return
				}
			}
		}
	}
}

// appearance is the statistics of pictures that determine the background and the notes for the user.
type appearance struct {
	transparent bool // a pixel is not opaque
	has16Bits   bool // channels have 16 bits
	// sums over the pixels of transparent pictures: of alpha, and of the brightness times alpha (ITU-R BT.601)
	alpha, light uint64
	largest      uint16 // largest channel value of 16-bit pictures
}

// measureAppearance returns the statistics of one picture.
func measureAppearance(img image.Image) (a appearance) {
	m := img.ColorModel()
	a.has16Bits = m == color.Gray16Model || m == color.RGBA64Model || m == color.NRGBA64Model
	if o, ok := img.(interface{ Opaque() bool }); ok {
		a.transparent = !o.Opaque()
	}
	if !a.transparent && !a.has16Bits {
		return a
	}
	for c := range pixels(img) {
		a.largest = max(a.largest, c.R, c.G, c.B)
		a.alpha += 1000 * uint64(c.A)
		a.light += 299*uint64(c.R) + 587*uint64(c.G) + 114*uint64(c.B)
	}
	if !a.has16Bits {
		a.largest = 0
	}
	if !a.transparent {
		a.alpha, a.light = 0, 0
	}
	return a
}

// add merges the statistics of b into a.
func (a *appearance) add(b appearance) {
	a.transparent, a.has16Bits = a.transparent || b.transparent, a.has16Bits || b.has16Bits
	a.alpha, a.light = a.alpha+b.alpha, a.light+b.light
	a.largest = max(a.largest, b.largest)
}

// dark reports whether the pictures with transparent pixels are darker than mid-grey in the mean, each pixel weighted
// by its alpha.
func (a appearance) dark() bool { return 2*a.light < a.alpha }

// notes returns sentences that tell the user how drawing changed the pictures. settled means that the background was
// not chosen from these pictures.
func (a appearance) notes(white, settled bool) (notes []string) {
	ground, shade := "black", "no darker"
	if white {
		ground, shade = "white", "darker"
	}
	switch {
	case a.transparent && settled:
		notes = append(notes, "transparent pixels are drawn on "+ground)
	case a.transparent:
		notes = append(notes, fmt.Sprintf("transparent pixels are drawn on %s, "+
			"since the pictures that have some are %s than mid-grey in their opaque parts", ground, shade))
	}
	if half := uint16(1 << 15); a.has16Bits && a.largest < half {
		levels := (int(a.largest)+128)/257 + 1
		notes = append(notes, fmt.Sprintf("the largest value of the pictures with 16 bits a channel is %d of 65535, "+
			"so that 8 bits keep %d levels; scale the values to the whole range, or save them as NPY", a.largest, levels))
	}
	return notes
}
