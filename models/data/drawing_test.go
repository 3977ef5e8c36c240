package data

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"slices"
	"strings"
	"testing"
)

// ink returns a picture of three pixels: one of this shade, one with half alpha, and one transparent.
func ink(shade byte) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, 3, 1))
	for x, alpha := range []byte{255, 128, 0} {
		img.SetNRGBA(x, 0, color.NRGBA{shade, shade, shade, alpha})
	}
	return img
}

// icons returns a folder of two classes of pictures of a shade.
func icons(shade byte, below string) map[string][]byte {
	files := map[string][]byte{}
	for i := range 10 {
		for k, class := range []string{"a", "b"} {
			files[fmt.Sprintf("%s%s/%d.png", below, class, i)] = encodePNG(ink(shade + byte(k)))
		}
	}
	return files
}

// TestBackground: dark pictures on a transparent background are drawn on white, others on black.
func TestBackground(t *testing.T) {
	for _, c := range []struct {
		shade byte
		want  []byte // the red plane of class a
		note  string
	}{
		{0, []byte{0, 127, 255}, "transparent pixels are drawn on white, since the pictures that have some are darker than mid-grey"},
		{126, []byte{126, 190, 255}, "drawn on white"},
		{128, []byte{128, 64, 0}, "transparent pixels are drawn on black, since the pictures that have some are no darker"},
	} {
		s, err := Reading{}.Load(put(t, icons(c.shade, "")))
		if err != nil {
			t.Fatal(err)
		}
		got := s.Image(0)[:3]
		if near := func(i int) bool { return got[i] <= c.want[i]+1 && c.want[i] <= got[i]+1 }; s.Label(0) != 0 || !near(0) ||
			!near(1) || got[2] != c.want[2] {
			t.Errorf("shade %d: %v, want %v", c.shade, got, c.want)
		}
		if len(s.Notes) != 1 || !strings.Contains(s.Notes[0], c.note) || s.Form().White != strings.Contains(c.note, "white") {
			t.Errorf("shade %d: notes %q, form %+v", c.shade, s.Notes, s.Form())
		}
	}
	files := map[string][]byte{}
	for i := range 10 {
		files[fmt.Sprintf("a/%d.png", i)], files[fmt.Sprintf("b/%d.png", i)] = encodePNG(tint(3, 1,
			color.NRGBA{1, 1, 1, 255})), encodePNG(tint(3, 1, color.NRGBA{2, 1, 1, 255}))
	}
	if s, err := Load(put(t, files)); err != nil || s.Notes != nil {
		t.Errorf("opaque pictures: notes %q, %v", s.Notes, err)
	}
}

// TestBackgroundOfTraining: the background of the training pictures is used for test pictures and for predictions.
func TestBackgroundOfTraining(t *testing.T) {
	files := icons(0, "train/")
	for _, class := range []string{"a", "b"} {
		files["test/"+class+"/1.png"] = encodePNG(ink(250))
	}
	s, err := Load(put(t, files))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Image(s.Test()[0])[:3]; got[2] != 255 {
		t.Errorf("a test picture: %v", got)
	}
	for _, white := range []bool{true, false} {
		form := s.Form()
		form.White = white
		r := Reading{Form: &form}
		dark, light := encodePNG(ink(0)), encodePNG(ink(250))
		a, err := r.Ask(put(t, map[string][]byte{"1.png": dark, "2.png": light}))
		if err != nil {
			t.Fatal(err)
		}
		again, err := r.Load(put(t, icons(250, "")))
		if err != nil {
			t.Fatal(err)
		}
		want := byte(0)
		if white {
			want = 255
		}
		if a.Image(0)[2] != want || a.Image(1)[2] != want || again.Image(0)[2] != want || again.Form().White != white {
			t.Errorf("on white: %t: %v, %v, %v", white, a.Image(0), a.Image(1), again.Image(0))
		}
	}
}

// TestBackgroundOfOtherKinds: grey pictures with a transparent value are drawn on the background in one channel, and so
// are 16-bit pictures.
func TestBackgroundOfOtherKinds(t *testing.T) {
	deep := image.NewNRGBA64(image.Rect(0, 0, 2, 1))
	deep.SetNRGBA64(0, 0, color.NRGBA64{A: 65535})
	got := make([]byte, 6)
	d := drawing{size: image.Pt(2, 1), whiteBackground: true}
	if _, err := d.drawPlanes(got, deep); err != nil || !bytes.Equal(got, []byte{0, 255, 0, 255, 0, 255}) {
		t.Errorf("16 bits: %v, %v", got, err)
	}
	d.grey = true
	grey := image.NewNRGBA(image.Rect(0, 0, 2, 1)) // as decoded from such a picture
	grey.SetNRGBA(0, 0, color.NRGBA{7, 7, 7, 255})
	if _, err := d.drawPlanes(got[:2], grey); err != nil || !bytes.Equal(got[:2], []byte{7, 255}) {
		t.Errorf("grey: %v, %v", got[:2], err)
	}
}

// TestShallowPictures: if 16-bit pictures use only a part of the range, a note reports the precision lost in 8 bits.
func TestShallowPictures(t *testing.T) {
	for largest, notes := range map[uint16]int{4095: 1, 32767: 1, 32768: 0, 65535: 0} {
		img := image.NewGray16(image.Rect(0, 0, 2, 1))
		img.SetGray16(1, 0, color.Gray16{Y: largest})
		files := map[string][]byte{}
		for i := range 10 {
			files[fmt.Sprintf("a/%d.png", i)], files[fmt.Sprintf("b/%d.png", i)] = encodePNG(img), encodePNG(img)
		}
		s, err := Load(put(t, files))
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Notes) != notes || largest == 4095 &&
			!strings.Contains(s.Notes[0], "is 4095 of 65535, so that 8 bits keep 17 levels") {
			t.Errorf("largest %d: notes %q", largest, s.Notes)
		}
	}
}

// TestPicturesByContent: the content determines the format: a PNG may be named .jpg, and a JPEG .png.
func TestPicturesByContent(t *testing.T) {
	files := map[string][]byte{}
	for i := range 10 {
		files[fmt.Sprintf("a/%d.jpg", i)], files[fmt.Sprintf("b/%d.png", i)] = encodePNG(shade(4, 3, 9)),
			encodeJPEG(tint(4, 3, color.NRGBA{90, 90, 90, 255}))
	}
	s, err := Load(put(t, files))
	if err != nil {
		t.Fatal(err)
	}
	for i := range int32(20) {
		got, want := s.Image(i)[:12], shade(4, 3, 9).Pix
		if s.Label(i) == 1 {
			want = slices.Repeat([]byte{90}, 12)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("class %d: %v", s.Label(i), got)
		}
	}
}
