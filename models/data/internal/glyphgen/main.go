// Command glyphgen draws the digits 0-9 in the Go fonts and writes their distance fields to glyphs.bin.gz in the
// working directory. The file is committed, so that rasterisation (floating point in x/image) can never change the data
// set.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"image"
	"math"
	"os"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/gobolditalic"
	"golang.org/x/image/font/gofont/goitalic"
	"golang.org/x/image/font/gofont/gomedium"
	"golang.org/x/image/font/gofont/gomediumitalic"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/gomonobold"
	"golang.org/x/image/font/gofont/gomonobolditalic"
	"golang.org/x/image/font/gofont/gomonoitalic"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/gofont/gosmallcaps"
	"golang.org/x/image/font/gofont/gosmallcapsitalic"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

const (
	side  = 32 // samples of a field per direction
	fine  = 8  // pixels per sample
	tall  = 20 // height of a digit in samples
	reach = 8  // distances are clamped to this many samples
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "glyphgen:", err)
		os.Exit(1)
	}
}

func run() error {
	fonts := [][]byte{goregular.TTF, gobold.TTF, goitalic.TTF, gobolditalic.TTF, gomedium.TTF, gomediumitalic.TTF,
		gomono.TTF, gomonobold.TTF, gomonoitalic.TTF, gomonobolditalic.TTF, gosmallcaps.TTF, gosmallcapsitalic.TTF}
	out := []byte{byte(len(fonts)), 10, side, side}
	for i, ttf := range fonts {
		f, err := opentype.Parse(ttf)
		if err != nil {
			return fmt.Errorf("font %d: %w", i, err)
		}
		for d := '0'; d <= '9'; d++ {
			m, err := draw(f, d)
			if err != nil {
				return fmt.Errorf("font %d, digit %c: %w", i, d, err)
			}
			out = append(out, field(m)...)
		}
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(out); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile("glyphs.bin.gz", b.Bytes(), 0o644)
}

// draw centres the digit's box on a canvas of side*fine pixels, the box tall samples high.
func draw(f *opentype.Font, d rune) (*image.Alpha, error) {
	face, err := opentype.NewFace(f, &opentype.FaceOptions{Size: 200, DPI: 72})
	if err != nil {
		return nil, err
	}
	box, _, ok := face.GlyphBounds(d)
	if !ok {
		return nil, fmt.Errorf("no glyph")
	}
	size := 200 * float64(tall*fine) * 64 / float64(box.Max.Y-box.Min.Y)
	if face, err = opentype.NewFace(f, &opentype.FaceOptions{Size: size, DPI: 72}); err != nil {
		return nil, err
	}
	box, _, _ = face.GlyphBounds(d)
	mid := fixed.I(side * fine / 2)
	m := image.NewAlpha(image.Rect(0, 0, side*fine, side*fine))
	w := font.Drawer{
		Dst:  m,
		Src:  image.Opaque,
		Face: face,
		Dot:  fixed.Point26_6{X: mid - (box.Min.X+box.Max.X)/2, Y: mid - (box.Min.Y+box.Max.Y)/2},
	}
	w.DrawString(string(d))
	return m, nil
}

// field returns the signed distance to the outline at the middle of each sample: 128 on the outline, plus 16 per sample
// inside.
func field(m *image.Alpha) []byte {
	out := make([]byte, 0, side*side)
	inside := func(x, y int) bool { return m.AlphaAt(x, y).A >= 128 }
	for y := range side {
		for x := range side {
			cx, cy := x*fine+fine/2, y*fine+fine/2
			in := inside(cx, cy)
			best := float64(reach * fine)
			for py := cy - reach*fine; py <= cy+reach*fine; py++ {
				for px := cx - reach*fine; px <= cx+reach*fine; px++ {
					if inside(px, py) != in {
						best = min(best, math.Hypot(float64(px-cx), float64(py-cy)))
					}
				}
			}
			v := best / fine * 16
			if !in {
				v = -v
			}
			out = append(out, byte(max(0, min(255, math.Round(128+v)))))
		}
	}
	return out
}
