package data

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"slices"
	"testing"
)

// tiff returns a TIFF block whose first directory has an unrelated entry and one with this tag, type, count and value.
func tiff(order binary.AppendByteOrder, tag, kind uint16, count uint32, value uint16) []byte {
	b := []byte("II*\x00")
	if order == binary.AppendByteOrder(binary.BigEndian) {
		b = []byte("MM\x00*")
	}
	b = order.AppendUint32(b, 8)
	b = order.AppendUint16(b, 2)
	for _, e := range [][3]uint32{{0x0100, 4, 1}, {uint32(tag), uint32(kind), count}} {
		b = order.AppendUint16(b, uint16(e[0]))
		b = order.AppendUint16(b, uint16(e[1]))
		b = order.AppendUint32(b, e[2])
		b = order.AppendUint16(b, value)
		b = append(b, 0, 0)
	}
	return order.AppendUint32(b, 0)
}

func oriented(value int) []byte { return tiff(binary.BigEndian, 0x0112, 3, 1, uint16(value)) }

// withEXIF inserts a block into a JPEG, after another segment, or into a PNG, after its pixels.
func withEXIF(file, block []byte) []byte {
	if bytes.HasPrefix(file, []byte(pngMagic)) {
		chunk := append([]byte("eXIf"), block...)
		b := binary.BigEndian.AppendUint32(nil, uint32(len(block)))
		b = binary.BigEndian.AppendUint32(append(b, chunk...), crc32.ChecksumIEEE(chunk))
		return slices.Insert(bytes.Clone(file), len(file)-12, b...)
	}
	body := append([]byte("Exif\x00\x00"), block...)
	b := []byte("\xff\xe1\x00\x05Ex?\xff\xff\xe1")
	b = binary.BigEndian.AppendUint16(b, uint16(len(body)+2))
	return slices.Insert(bytes.Clone(file), 2, append(b, body...)...)
}

// stored is the picture 1 2 3 / 4 5 6 as stored in each orientation (CIPA DC-008, figure of tag 0x0112).
var stored = [][]byte{
	1: {1, 2, 3, 4, 5, 6}, 2: {3, 2, 1, 6, 5, 4}, 3: {6, 5, 4, 3, 2, 1}, 4: {4, 5, 6, 1, 2, 3},
	5: {1, 4, 2, 5, 3, 6}, 6: {3, 6, 2, 5, 1, 4}, 7: {6, 3, 5, 2, 4, 1}, 8: {4, 1, 5, 2, 6, 3},
}

// sixth returns a picture whose pixels are the numbers times 40.
func sixth(pixels []byte, orientation int) *image.Gray {
	img := image.NewGray(image.Rect(0, 0, 3, 2))
	if orientation >= 5 {
		img = image.NewGray(image.Rect(0, 0, 2, 3))
	}
	for i, v := range pixels {
		img.Pix[i] = 40 * v
	}
	return img
}

// TestOrientation: pictures stored rotated or mirrored are read upright.
func TestOrientation(t *testing.T) {
	files := map[string][]byte{}
	for o := 1; o <= 8; o++ {
		img := sixth(stored[o], o)
		files[fmt.Sprintf("jpeg/%d.jpg", o)] = withEXIF(encodeJPEG(img), oriented(o))
		files[fmt.Sprintf("png/%d.png", o)] = withEXIF(encodePNG(img), oriented(o))
	}
	s, err := Load(put(t, files))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Shape, []int{1, 2, 3}) || s.Len() != 16 {
		t.Fatalf("%d pictures of %v", s.Len(), s.Shape)
	}
	for i := range int32(16) {
		var got []byte
		for _, v := range s.Image(i) {
			got = append(got, byte((int(v)+20)/40))
		}
		if !bytes.Equal(got, stored[1]) {
			t.Errorf("picture %d of class %s: %v", i, s.ClassName(int(s.Label(i))), got)
		}
	}
	form := &Form{
		Shape:   []int{1, 2, 3},
		Bytes:   true,
		Mean:    []float64{0},
		Std:     []float64{1},
		Classes: []string{"jpeg", "png"},
	}
	a, err := Reading{Form: form}.Ask(put(t, map[string][]byte{"6.png": files["png/6.png"]}))
	if err != nil || !bytes.Equal(a.Image(0), sixth(stored[1], 1).Pix) {
		t.Errorf("a model is asked about another picture: %v", err)
	}
}

// TestOrientationDamaged: a damaged or unrelated block leaves the picture as stored.
func TestOrientationDamaged(t *testing.T) {
	good := oriented(6)
	if tiffOrientation(good) != 6 || tiffOrientation(tiff(binary.LittleEndian, 0x0112, 3, 1, 8)) != 8 {
		t.Fatal("good blocks are not read")
	}
	far := bytes.Clone(good)
	copy(far[4:], []byte{255, 255, 255, 255})
	for name, b := range map[string][]byte{
		"empty": nil, "cut header": good[:7], "cut directory": good[:9], "cut entry": good[:30], "magic": append([]byte("XX"), good[2:]...), "offset": far,
		"tag": tiff(binary.BigEndian, 0x0113, 3, 1, 6), "type": tiff(binary.BigEndian, 0x0112, 2, 1, 6), "count": tiff(binary.BigEndian, 0x0112, 3, 2, 6),
		"zero": oriented(0), "nine": oriented(9),
	} {
		if got := tiffOrientation(b); got != upright {
			t.Errorf("%s: %d", name, got)
		}
	}
	file := withEXIF(encodeJPEG(sixth(stored[1], 1)), good)
	for n := range file {
		if got := orientation(bytes.NewReader(file[:n]), false); got != upright && got != 6 {
			t.Fatalf("cut to %d bytes: %d", n, got)
		}
	}
}

func FuzzOrientation(f *testing.F) {
	img := sixth(stored[1], 1)
	f.Add(false, withEXIF(encodeJPEG(img), oriented(6)))
	f.Add(true, withEXIF(encodePNG(img), tiff(binary.LittleEndian, 0x0112, 3, 1, 8)))
	f.Add(false, []byte("\xff\xd8\xff\xff\xff\xe1\x00\x00"))
	f.Add(true, []byte(pngMagic+"\xff\xff\xff\xffeXIfII*\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, isPNG bool, b []byte) {
		if o := orientation(bytes.NewReader(b), isPNG); o < upright || o > lastTurn {
			t.Fatalf("orientation %d", o)
		}
	})
}
