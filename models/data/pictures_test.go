package data

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func encodePNG(img image.Image) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func encodeJPEG(img image.Image) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 100}); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// shade returns a grey picture whose pixels count up from base; tint a picture of one colour.
func shade(w, h int, base byte) *image.Gray {
	img := image.NewGray(image.Rect(0, 0, w, h))
	for i := range img.Pix {
		img.Pix[i] = base + byte(i)
	}
	return img
}

func tint(w, h int, c color.Color) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.Set(x, y, c)
		}
	}
	return img
}

func TestGreyPictures(t *testing.T) {
	files := map[string][]byte{"README.md": []byte("what these are"), "cats/.DS_Store": nil}
	for i := range 10 {
		files[fmt.Sprintf("cats/%02d.png", i)] = encodePNG(shade(4, 3, byte(i)))
		files[fmt.Sprintf("dogs/%02d.PNG", i)] = encodePNG(shade(4, 3, byte(100+i)))
	}
	s, err := Load(put(t, files))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Shape, []int{1, 3, 4}) || !slices.Equal(s.Names, []string{"cats", "dogs"}) || s.Len() != 20 {
		t.Fatalf("%d pictures of %v in %v", s.Len(), s.Shape, s.Names)
	}
	for i := range int32(20) {
		img := s.Image(i)
		if base := img[0]; (base >= 100) != (s.Label(i) == 1) || !bytes.Equal(img, shade(4, 3, base).Pix) {
			t.Errorf("picture %d of class %d: %v", i, s.Label(i), img)
		}
	}
}

// TestColouredPictures: a coloured picture among grey ones makes all of them coloured; bright ones are drawn on black;
// JPEG and palettes are read.
func TestColouredPictures(t *testing.T) {
	files := map[string][]byte{}
	palette := image.NewPaletted(image.Rect(0, 0, 2, 2), color.Palette{color.RGBA{10, 20, 30, 255}})
	for i := range 6 {
		files[fmt.Sprintf("train/grey/%d.png", i)] = encodePNG(shade(2, 2, 50))
		files[fmt.Sprintf("train/half/%d.png", i)] = encodePNG(tint(2, 2, color.NRGBA{220, 150, 0, 128}))
		files[fmt.Sprintf("train/palette/%d.png", i)] = encodePNG(palette)
		files[fmt.Sprintf("train/photo/%d.jpg", i)] = encodeJPEG(tint(2, 2, color.NRGBA{90, 90, 90, 255}))
		files[fmt.Sprintf("train/zinc/%d.png", i)] = encodePNG(shade(2, 2, 70))
	}
	for _, class := range []string{"grey", "half", "palette", "photo", "zinc"} {
		files["test/"+class+"/a.jpeg"] = encodeJPEG(tint(2, 2, color.NRGBA{7, 7, 7, 255}))
	}
	s, err := Load(put(t, files))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Shape, []int{3, 2, 2}) || len(s.Test()) != 5 || len(s.Train())+len(s.Validation()) != 30 {
		t.Fatalf("shape %v, %d test pictures", s.Shape, len(s.Test()))
	}
	want := [][]byte{
		{50, 51, 52, 53, 50, 51, 52, 53, 50, 51, 52, 53},
		{110, 110, 110, 110, 75, 75, 75, 75, 0, 0, 0, 0},
		{10, 10, 10, 10, 20, 20, 20, 20, 30, 30, 30, 30},
		slices.Repeat([]byte{90}, 12),
		{70, 71, 72, 73, 70, 71, 72, 73, 70, 71, 72, 73},
	}
	for i := range int32(30) {
		for j, v := range s.Image(i) {
			if d := int(v) - int(want[s.Label(i)][j]); d < -1 || d > 1 {
				t.Fatalf("picture of class %s: %v, want %v", s.ClassName(int(s.Label(i))), s.Image(i), want[s.Label(i)])
			}
		}
	}
}

func TestPicturesRefuse(t *testing.T) {
	good := encodePNG(shade(4, 4, 0))
	for name, c := range map[string]struct {
		files   map[string][]byte
		wantErr string
	}{
		"empty":     {nil, "has no sub-folders"},
		"flat":      {map[string][]byte{"a.png": good}, "has no sub-folders"},
		"no sample": {map[string][]byte{"a/1.png": good, "b/.keep": nil}, "class b has no sample"},
		"sizes":     {map[string][]byte{"a/1.png": good, "b/2.png": encodePNG(shade(5, 4, 0))}, "2.png is 5 x 4 pixels, but"},
		"kind":      {map[string][]byte{"a/1.png": good, "b/notes.txt": nil}, "notes.txt is no PNG or JPEG picture"},
		"nested":    {map[string][]byte{"a/1.png": good, "b/c/2.png": good}, "is no PNG or JPEG picture"},
		"cut":       {map[string][]byte{"a/1.png": good, "b/2.png": good[:len(good)-20]}, "2.png cannot be read as a picture"},
		"no header": {map[string][]byte{"a/1.png": good[:20]}, "1.png cannot be read as a picture"},
		"GIF":       {map[string][]byte{"a/1.jpg": []byte("GIF89a and more")}, "1.jpg cannot be read as a picture"},
		"one class": {map[string][]byte{"a/1.png": good, "a/2.png": good, "a/3.png": good, "a/4.png": good, "a/5.png": good, "a/6.png": good, "a/7.png": good, "a/8.png": good}, `every label is "a"`},
	} {
		if _, err := Load(put(t, c.files)); err == nil || !strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHugePicture: a picture of an enormous claimed size is refused by its header.
func TestHugePicture(t *testing.T) {
	b := encodePNG(shade(4, 4, 0))
	copy(b[16:], []byte{0, 1, 0, 0, 0, 1, 0, 0}) // 65536 x 65536
	b = fixCRC(b)
	if _, err := Load(put(t, map[string][]byte{"a/1.png": b, "b/2.png": b})); err == nil ||
		!strings.Contains(err.Error(), "65536 x 65536 pixels, too large") {
		t.Errorf("%v", err)
	}
}

func FuzzPicture(f *testing.F) {
	f.Add(true, encodePNG(shade(4, 3, 0)))
	f.Add(true, encodePNG(tint(4, 3, color.NRGBA{1, 2, 3, 4})))
	f.Add(false, encodeJPEG(shade(4, 3, 0)))
	f.Add(false, withEXIF(encodeJPEG(shade(4, 3, 0)), oriented(5)))
	f.Fuzz(func(t *testing.T, isPNG bool, b []byte) {
		name := "a.jpg"
		if isPNG {
			name = "a.png"
		}
		p := picture{path: filepath.Join(put(t, map[string][]byte{name: b}), name)}
		files := []picture{p}
		size, grey, err := measurePictures(files, Resize{})
		if err != nil || size.X*size.Y > 1<<16 {
			return
		}
		dst := make([]byte, 3*size.X*size.Y)
		if grey {
			dst = dst[:size.X*size.Y]
		}
		for _, white := range []bool{false, true} {
			_, _ = drawing{size: size, grey: grey, whiteBackground: white}.read(dst, files[0])
		}
	})
}

// fixCRC recomputes the checksum of a PNG's header.
func fixCRC(b []byte) []byte {
	b = bytes.Clone(b)
	binary.BigEndian.PutUint32(b[29:], crc32.ChecksumIEEE(b[12:29]))
	return b
}

// TestDeepPictures: 16-bit channels are rounded to 8 bits: 65535/255 = 257 steps become one.
func TestDeepPictures(t *testing.T) {
	values := []uint16{0, 128, 129, 255, 256, 32768, 65406, 65407, 65535}
	files := map[string][]byte{}
	for i := range 10 {
		grey, colour := image.NewGray16(image.Rect(0, 0, 9, 1)), image.NewNRGBA64(image.Rect(0, 0, 9, 1))
		for x, v := range values {
			grey.SetGray16(x, 0, color.Gray16{Y: v})
			colour.SetNRGBA64(x, 0, color.NRGBA64{R: v, G: 65535 - v, B: v, A: 65535})
		}
		for _, class := range []string{"a", "b"} {
			files[fmt.Sprintf("grey/%s/%d.png", class, i)] = encodePNG(grey)
			files[fmt.Sprintf("colour/%s/%d.png", class, i)] = encodePNG(colour)
		}
	}
	dir := put(t, files)
	want := []byte{0, 0, 1, 1, 1, 128, 254, 255, 255}
	grey, err := Load(dir + "/grey")
	if err != nil {
		t.Fatal(err)
	}
	colour, err := Load(dir + "/colour")
	if err != nil {
		t.Fatal(err)
	}
	if got := grey.Image(0); !bytes.Equal(got, want) {
		t.Errorf("grey %v, want %v", got, want)
	}
	if got := colour.Image(0); !bytes.Equal(got[:9], want) || !bytes.Equal(got[18:], want) || got[9] != 255 ||
		got[17] != 0 {
		t.Errorf("coloured %v, want %v", got, want)
	}
}
