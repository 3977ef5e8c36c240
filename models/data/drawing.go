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

// drawing says how a picture becomes a sample.
type drawing struct {
	size  image.Point // of the sample
	grey  bool        // one channel, else red, green and blue
	white bool        // the ground of what is transparent; else black
}

// read writes a picture channel by channel.
func (d drawing) read(dst []byte, f picture) (a appearance, err error) {
	err = f.with(func(in io.ReadSeeker, isPNG bool) error {
		decode := jpeg.Decode
		if isPNG {
			decode = png.Decode
		}
		img, err := decode(in)
		if err != nil {
			return err
		}
		a, err = d.upright(dst, img, f.orientation)
		return err
	})
	return a, err
}

// upright writes a picture that is stored in an orientation.
func (d drawing) upright(dst []byte, img image.Image, orientation int) (appearance, error) {
	if orientation <= upright {
		return d.planes(dst, img)
	}
	stored := d
	if orientation >= firstOnSide {
		stored.size = image.Pt(d.size.Y, d.size.X)
	}
	planes := make([]byte, len(dst))
	a, err := stored.planes(planes, img)
	if err != nil {
		return a, err
	}
	for n := d.size.X * d.size.Y; len(dst) > 0; dst, planes = dst[n:], planes[n:] {
		turn(dst[:n], planes[:n], stored.size.X, stored.size.Y, orientation)
	}
	return a, nil
}

// planes writes a picture as it is stored.
func (d drawing) planes(dst []byte, img image.Image) (appearance, error) {
	if img.Bounds().Size() != d.size {
		return appearance{}, fmt.Errorf("it is %v, its header says %v", img.Bounds().Size(), d.size)
	}
	a := look(img)
	if a.deep || d.white && a.transparent {
		d.exact(dst, img)
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

// exact writes a picture from 16 bits a channel: 65535 is 255, and values between are rounded.
func (d drawing) exact(dst []byte, img image.Image) {
	n := d.size.X * d.size.Y
	i := 0
	for c := range pixels(img) {
		ground := uint32(0)
		if d.white {
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

// pixels yields the pixels row by row, their colours multiplied by alpha.
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

// appearance is what pictures show that decides how they are drawn.
type appearance struct {
	transparent bool // a pixel is not opaque
	deep        bool // channels have 16 bits
	// sums over the pixels of transparent pictures: of alpha, and of the brightness times alpha (ITU-R BT.601)
	alpha, light uint64
	largest      uint16 // of deep pictures: the largest value of a channel
}

// look measures a picture.
func look(img image.Image) (a appearance) {
	m := img.ColorModel()
	a.deep = m == color.Gray16Model || m == color.RGBA64Model || m == color.NRGBA64Model
	if o, ok := img.(interface{ Opaque() bool }); ok {
		a.transparent = !o.Opaque()
	}
	if !a.transparent && !a.deep {
		return a
	}
	for c := range pixels(img) {
		a.largest = max(a.largest, c.R, c.G, c.B)
		a.alpha += 1000 * uint64(c.A)
		a.light += 299*uint64(c.R) + 587*uint64(c.G) + 114*uint64(c.B)
	}
	if !a.deep {
		a.largest = 0
	}
	if !a.transparent {
		a.alpha, a.light = 0, 0
	}
	return a
}

// add makes it that of both.
func (a *appearance) add(b appearance) {
	a.transparent, a.deep = a.transparent || b.transparent, a.deep || b.deep
	a.alpha, a.light = a.alpha+b.alpha, a.light+b.light
	a.largest = max(a.largest, b.largest)
}

// dark reports whether the pictures with transparent pixels are darker than mid-grey in the mean, each pixel weighted by
// its alpha.
func (a appearance) dark() bool { return 2*a.light < a.alpha }

// notes are sentences on what drawing the pictures did to them. settled says that the ground was not chosen by them.
func (a appearance) notes(white, settled bool) (notes []string) {
	ground, shade := "black", "no darker"
	if white {
		ground, shade = "white", "darker"
	}
	switch {
	case a.transparent && settled:
		notes = append(notes, "transparent pixels are drawn on "+ground)
	case a.transparent:
		notes = append(notes, fmt.Sprintf("transparent pixels are drawn on %s, since the pictures that have some are %s than mid-grey in their opaque parts", ground, shade))
	}
	if half := uint16(1 << 15); a.deep && a.largest < half {
		levels := (int(a.largest)+128)/257 + 1
		notes = append(notes, fmt.Sprintf("the largest value of the pictures with 16 bits a channel is %d of 65535, so that 8 bits keep %d levels; scale the values to the whole range, or save them as NPY", a.largest, levels))
	}
	return notes
}
