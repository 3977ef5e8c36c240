package picture

import (
	"image"
	"image/color"
	"image/png"
	"io"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/gomonobold"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// raster draws on pixels. Its letters are those of Go Mono.
type raster struct {
	img           *image.RGBA
	regular, bold font.Face
}

func newPNG(w, h int) (*raster, error) {
	r := &raster{img: image.NewRGBA(image.Rect(0, 0, w*cellW*pngScale, h*cellH*pngScale))}
	for _, f := range []struct {
		ttf []byte
		to  *font.Face
	}{{gomono.TTF, &r.regular}, {gomonobold.TTF, &r.bold}} {
		parsed, err := opentype.Parse(f.ttf)
		if err != nil {
			return nil, err
		}
		*f.to, err = opentype.NewFace(parsed,
			&opentype.FaceOptions{Size: fontSize * pngScale, DPI: 72, Hinting: font.HintingNone})
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *raster) rect(x, y, w, h float64, c color.Color) {
	r.polygon([]point{{x, y}, {x + w, y}, {x + w, y + h}, {x, y + h}}, c)
}

// polygon rasterises within the bounds of the points alone: a picture has thousands of small ones.
func (r *raster) polygon(points []point, c color.Color) {
	lo, hi := point{math.Inf(1), math.Inf(1)}, point{math.Inf(-1), math.Inf(-1)}
	for _, p := range points {
		lo, hi = point{min(lo.x, p.x), min(lo.y, p.y)}, point{max(hi.x, p.x), max(hi.y, p.y)}
	}
	x, y := int(lo.x*pngScale), int(lo.y*pngScale)
	b := r.img.Bounds()
	w, h := min(int(math.Ceil(hi.x*pngScale)), b.Dx())-x, min(int(math.Ceil(hi.y*pngScale)), b.Dy())-y
	if w <= 0 || h <= 0 {
		return
	}
	v := vector.NewRasterizer(w, h)
	for i, p := range points {
		px := float32(min(p.x*pngScale-float64(x), float64(w))) // a shape may reach beyond the image
		py := float32(min(p.y*pngScale-float64(y), float64(h)))
		if i == 0 {
			v.MoveTo(px, py)
		} else {
			v.LineTo(px, py)
		}
	}
	v.ClosePath()
	v.Draw(r.img, image.Rect(x, y, x+w, y+h), image.NewUniform(c), image.Point{})
}

// stroke draws each segment as a rectangle of the width, longer by a quarter of it at both ends.
func (r *raster) stroke(points []point, width float64, c color.Color) {
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		n := math.Hypot(b.x-a.x, b.y-a.y)
		if n == 0 {
			continue
		}
		dx, dy := (b.x-a.x)/n*width/2, (b.y-a.y)/n*width/2
		a, b = point{a.x - dx/2, a.y - dy/2}, point{b.x + dx/2, b.y + dy/2}
		r.polygon([]point{{a.x - dy, a.y + dx}, {b.x - dy, b.y + dx}, {b.x + dy, b.y - dx}, {a.x + dy, a.y - dx}}, c)
	}
}

func (r *raster) text(x, y int, s string, cells int, bold bool, c color.Color) {
	d := font.Drawer{Dst: r.img, Src: image.NewUniform(c), Face: r.regular}
	if bold {
		d.Face = r.bold
	}
	for i, letter := range []rune(s) { // each in its cell: the advance of the font is not a whole number of pixels
		d.Dot = fixed.P((x+i*cells)*cellW*pngScale, int((float64(y*cellH)+baseline)*pngScale))
		d.DrawString(string(letter))
	}
}

func (r *raster) end(out io.Writer) error { return png.Encode(out, r.img) }
