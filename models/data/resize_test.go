package data

import (
	"fmt"
	"hash/fnv"
	"image"
	"image/color"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rough returns a grey picture without structure.
func rough(w, h int) *image.Gray {
	img := image.NewGray(image.Rect(0, 0, w, h))
	for i := range img.Pix {
		img.Pix[i] = byte(uint32(i*i+7) * 2654435761 >> 24)
	}
	return img
}

// TestResizeFilter: results are those of a triangle filter in float64 up to rounding, and a sample of the picture's own
// size is the picture.
func TestResizeFilter(t *testing.T) {
	for _, c := range []struct {
		w, h, side int
	}{{7, 7, 7}, {20, 20, 6}, {5, 5, 13}, {31, 31, 30}, {64, 64, 1}, {1, 1, 9}} {
		img := rough(c.w, c.h)
		got := make([]byte, c.side*c.side)
		Resize{Side: c.side}.draw(got, img.Pix, image.Pt(c.w, c.h))
		if c.w == c.side && !slices.Equal(got, img.Pix) {
			t.Errorf("a picture of %d pixels a side changes", c.side)
		}
		scale := float64(c.w) / float64(c.side)
		weight := func(i, j int) float64 {
			return max(0, 1-math.Abs(float64(j)+0.5-(float64(i)+0.5)*scale)/max(1, scale))
		}
		for y := range c.side {
			for x := range c.side {
				sum, all := 0.0, 0.0
				for v := range c.h {
					for u := range c.w {
						w := weight(x, u) * weight(y, v)
						sum, all = sum+w*float64(img.Pix[v*c.w+u]), all+w
					}
				}
				if d := float64(got[y*c.side+x]) - sum/all; math.Abs(d) > 0.51 {
					t.Fatalf("%d to %d pixels: (%d, %d) is off by %.3f", c.w, c.side, x, y, d)
				}
			}
		}
	}
}

// TestResizeBits: the pixels are the same on every platform.
func TestResizeBits(t *testing.T) {
	for how, want := range map[string]uint64{"24": 0x30a184d719a35384, "24,letterbox": 0xbc10d4b930c89ca8,
		"300": 0xf44481f3a3819fec} {
		r, err := ParseResize(how)
		if err != nil || r.String() != how {
			t.Fatalf("%q: %v, %v", how, r, err)
		}
		got := make([]byte, r.Side*r.Side)
		r.draw(got, rough(181, 97).Pix, image.Pt(181, 97))
		h := fnv.New64a()
		h.Write(got)
		if h.Sum64() != want {
			t.Errorf("%s: %#x, want %#x", how, h.Sum64(), want)
		}
	}
}

// TestLetterbox: the whole picture is in the middle, between black bars.
func TestLetterbox(t *testing.T) {
	got := make([]byte, 8*8)
	Resize{Side: 8, Letterbox: true}.draw(got, slices.Repeat([]byte{200}, 32*12), image.Pt(32, 12))
	for y := range 8 {
		want := byte(0)
		if y >= 2 && y < 5 {
			want = 200
		}
		if row := got[y*8 : y*8+8]; !slices.Equal(row, slices.Repeat([]byte{want}, 8)) {
			t.Errorf("row %d is %v", y, row)
		}
	}
}

// TestResizedPictures: pictures of any size are samples of one size, also turned ones, and the form reads others so.
func TestResizedPictures(t *testing.T) {
	files := map[string][]byte{}
	for i := range 10 {
		files[fmt.Sprintf("a/%d.png", i)] = encodePNG(rough(20+i, 12))
		files[fmt.Sprintf("b/%d.png", i)] = encodePNG(tint(9, 30+i, color.NRGBA{200, 9, byte(i), 255}))
	}
	dir := put(t, files)
	if _, err := (Reading{}).Load(dir); err == nil || !strings.Contains(err.Error(), "or let --resize 64 do so") {
		t.Errorf("sizes that differ: %v", err)
	}
	s, err := Reading{Resize: Resize{Side: 16}}.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	form := s.Form()
	if !slices.Equal(s.Shape, []int{3, 16, 16}) || form.Resize.Side != 16 || form.Check() != nil {
		t.Errorf("samples of %v, form %+v, %v", s.Shape, form.Resize, form.Check())
	}
	for _, path := range []string{filepath.Join(dir, "b", "3.png"), filepath.Join(dir, "b")} {
		asked, err := Reading{Form: &form}.Ask(path)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.Index(asked.Names, "3.png")
		if got := asked.Image(asked.IDs[i]); asked.Answers != nil || got[0] != 200 || got[256] != 9 || got[512] != 3 {
			t.Errorf("%s: names %q, answers %q, pixels %v", path, asked.Names, asked.Answers, got[:8])
		}
	}
	across := rough(20, 12)
	stored := image.NewGray(image.Rect(0, 0, 12, 20)) // orientation 5: transposed
	for i := range stored.Pix {
		stored.Pix[i] = across.Pix[i%12*20+i/12]
	}
	turned := put(t, map[string][]byte{"a/0.png": encodePNG(across), "a/1.png": withEXIF(encodePNG(stored), oriented(5))})
	asked, err := Reading{Form: &form}.Ask(turned)
	if err != nil || !slices.Equal(asked.Image(0), asked.Image(1)) {
		t.Errorf("a turned picture differs, %v", err)
	}
	form.Resize = Resize{}
	if _, err := (Reading{Form: &form}).Ask(filepath.Join(dir, "b", "3.png")); err == nil ||
		!strings.Contains(err.Error(), "samples are of [3 33 9]") {
		t.Errorf("a model without resizing: %v", err)
	}
}

// TestResizeRefused: a bad size and data that are no pictures are named.
func TestResizeRefused(t *testing.T) {
	for _, text := range []string{"0", "-3", "5000", "64x48", "64,stretch", "64,"} {
		if _, err := ParseResize(text); err == nil || !strings.Contains(err.Error(), "write the pixels of a side") {
			t.Errorf("%q: %v", text, err)
		}
	}
	r := Reading{Resize: Resize{Side: 8}}
	table := filepath.Join(put(t, map[string][]byte{"t.csv": []byte(strings.Repeat("1,2,a\n3,4,b\n", 9))}), "t.csv")
	for _, path := range []string{table, "glyphs", "tales"} {
		if _, err := r.Load(path); err == nil || !strings.Contains(err.Error(), "is no folder of PNG or JPEG pictures") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
