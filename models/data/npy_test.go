package data

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// npy encodes an array like numpy.save.
func npy(descr, shape string, values any) []byte {
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape)
	header += strings.Repeat(" ", 63-(len(header)+10)%64) + "\n"
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	out := bytes.NewBuffer(append(b, header...))
	var order binary.ByteOrder = binary.LittleEndian
	if descr[0] == '>' {
		order = binary.BigEndian
	}
	if err := binary.Write(out, order, values); err != nil {
		panic(err)
	}
	return out.Bytes()
}

func npz(files map[string][]byte) []byte {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for name, b := range files {
		w, _ := z.Create(name + ".npy")
		w.Write(b)
	}
	z.Close()
	return out.Bytes()
}

func TestReadNPY(t *testing.T) {
	for descr, values := range map[string]any{
		"|u1": []uint8{7, 200, 3}, "|b1": []bool{true, false, true}, "|i1": []int8{-7, 100, 3}, "<u2": []uint16{7, 60000, 3}, ">i2": []int16{-7, 30000, 3},
		"<u4": []uint32{7, 1 << 31, 3}, ">u4": []uint32{7, 1 << 31, 3}, "<i4": []int32{-7, 1 << 30, 3}, "<u8": []uint64{7, 1 << 50, 3}, "<i8": []int64{-7, 1 << 50, 3},
		"<f4": []float32{-7.5, 0.125, 3}, ">f4": []float32{-7.5, 0.125, 3}, "<f8": []float64{-7.5, 1e200, 3}, ">f8": []float64{-7.5, math.Inf(1), 3},
	} {
		a, err := readNPY(bytes.NewReader(npy(descr, "(3,)", values)), "x")
		if err != nil {
			t.Errorf("%s: %v", descr, err)
			continue
		}
		if !slices.Equal(a.numbers(), asFloats(values)) {
			t.Errorf("%s: %v, want %v", descr, a.numbers(), values)
		}
	}
}

// asFloats converts the values to float64 through their text.
func asFloats(values any) (out []float64) {
	for _, f := range strings.Fields(strings.NewReplacer("true", "1", "false", "0", "[", "", "]",
		"").Replace(fmt.Sprint(values))) {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			panic(err)
		}
		out = append(out, v)
	}
	return out
}

// TestNPYVersions: later versions of the format have longer headers.
func TestNPYVersions(t *testing.T) {
	one := npy("<f4", "(2, 2)", []float32{1, 2, 3, 4})
	for _, version := range []byte{2, 3} {
		b := slices.Concat([]byte("\x93NUMPY"), []byte{version, 0, one[8], one[9], 0, 0}, one[10:])
		a, err := readNPY(bytes.NewReader(b), "x")
		if err != nil || !slices.Equal(a.shape, []int{2, 2}) || !slices.Equal(a.numbers(), []float64{1, 2, 3, 4}) {
			t.Errorf("version %d: %v %v", version, a.shape, err)
		}
	}
}

func TestReadNPYNamesOffset(t *testing.T) {
	good := npy("<f4", "(2, 2)", []float32{1, 2, 3, 4})
	edit := func(from, to string) []byte { return bytes.Replace(good, []byte(from), []byte(to), 1) }
	for name, c := range map[string]struct {
		bytes   []byte
		offset  int64
		wantErr string
	}{
		"empty":     {nil, 0, "within its magic"},
		"magic":     {[]byte("PK\x03\x04 and more"), 0, "no NPY file"},
		"version":   {edit("NUMPY\x01", "NUMPY\x04"), 0, "no NPY file"},
		"header":    {good[:40], 40, "within its header"},
		"long":      {append([]byte("\x93NUMPY\x02\x00"), 255, 255, 255, 255), 8, "a header of 4294967295 bytes"},
		"type":      {edit("'<f4'", "'<c8'"), 10, "of type c8"},
		"fields":    {edit("'<f4'", "[('a', '<f4')]"), 10, "plain array"},
		"objects":   {edit("'<f4'", "'|O8'"), 10, "of type O8"},
		"scalar":    {edit("(2, 2)", "()"), 10, "a single number"},
		"huge":      {edit("(2, 2)", "(99999999, 99999999)"), 10, "more than"},
		"number":    {edit("(2, 2)", "(99999999999999999999,)"), 10, "too large"},
		"no sample": {edit("(2, 2)", "(0, 2)"), 10, "asks for nothing"},
		"short":     {good[:len(good)-3], int64(len(good) - 3), "ends after 13 of 16 bytes"},
		"trailing":  {append(bytes.Clone(good), 0), int64(len(good)), "has data after"},
	} {
		_, err := readNPY(bytes.NewReader(c.bytes), "a/"+name)
		var f *FileError
		if !errors.As(err, &f) || f.File != "a/"+name || f.Offset != c.offset || !strings.Contains(f.What, c.wantErr) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestArrays: arrays give the same data from a folder, from one of its files and from an archive, with and without test
// samples.
func TestArrays(t *testing.T) {
	x, y := make([]float32, 24*6), make([]int64, 24)
	for i := range x {
		x[i] = float32(i) / 8
	}
	for i := range y {
		y[i] = int64(i % 3)
	}
	pair := map[string][]byte{"x": npy("<f4", "(24, 6)", x), "y": npy("<i8", "(24,)", y)}
	split := map[string][]byte{"x_train": pair["x"], "y_train": npy("<i8", "(24, 1)", y),
		"x_test": npy("<f4", "(12, 6)", x[:72]), "y_test": npy("<i8", "(12,)", y[:12])}
	for tests, files := range map[int]map[string][]byte{3: pair, 12: split} {
		onDisk := map[string][]byte{"all.npz": npz(files)}
		for name, b := range files {
			onDisk[name+".npy"] = b
		}
		dir, digest := put(t, onDisk), ""
		first := map[int]string{3: "x.npy", 12: "x_train.npy"}[tests]
		for _, path := range []string{dir, filepath.Join(dir, first), filepath.Join(dir, "all.npz")} {
			s, err := Load(path)
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			if digest == "" {
				digest = s.Digest()
			}
			if len(s.Test()) != tests || s.Features() != 6 || s.Classes != 3 || s.Digest() != digest {
				t.Errorf("%s: %d test samples of %d features, digest %s", path, len(s.Test()), s.Features(), s.Digest())
			}
		}
	}
}

// TestArrayShapes: for pictures as arrays, bytes stay bytes, and a last axis of channels is moved to the front.
func TestArrayShapes(t *testing.T) {
	px := make([]uint8, 8*3*4*5)
	for i := range px {
		px[i] = uint8(i * 37)
	}
	moved := make([]uint8, len(px)) // n x 4 x 5 x 3
	for n := range 8 {
		for c := range 3 {
			for p := range 20 {
				moved[(n*20+p)*3+c] = px[(n*3+c)*20+p]
			}
		}
	}
	load := func(shape string, values any, descr string) *Set {
		t.Helper()
		y := npy("|u1", "(8,)", []uint8{0, 1, 0, 1, 0, 1, 0, 1})
		s, err := loadFile(t, "x.npz",
			npz(map[string][]byte{"x_train": npy(descr, shape, values), "y_train": y, "x_test": npy(descr, shape, values),
				"y_test": y}))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first, last := load("(8, 3, 4, 5)", px, "|u1"), load("(8, 4, 5, 3)", moved, "|u1")
	if first.Digest() != last.Digest() || !slices.Equal(last.Shape, []int{3, 4, 5}) ||
		!bytes.Equal(last.Image(2), px[120:180]) {
		t.Errorf("shape %v, digests %s and %s", last.Shape, first.Digest(), last.Digest())
	}
	if s := load("(8, 12, 5)", px, "|u1"); !slices.Equal(s.Shape, []int{1, 12, 5}) ||
		!strings.HasPrefix(s.Normalisation(), "bytes to 0..1, then minus") {
		t.Errorf("shape %v, %s", s.Shape, s.Normalisation())
	}
	if s := load("(8, 60)", px, "|u1"); s.Normalisation() != "bytes to 0..1" {
		t.Errorf("flat bytes: %s", s.Normalisation())
	}
}

// TestOtherMembers: members of an archive that are neither samples nor labels are not read.
func TestOtherMembers(t *testing.T) {
	y := npy("<i4", "(9,)", []int32{0, 1, 0, 1, 0, 1, 0, 1, 0})
	x := npy("<u2", "(9, 2)", []uint16{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17})
	files := map[string][]byte{"x": x, "y": y, "meta": npy("|O8", "()", uint64(0)), "z": npy("<c8", "(1,)", uint64(0)),
		"notes": []byte("no array")}
	if _, err := loadFile(t, "x.npz", npz(files)); err != nil {
		t.Error(err)
	}
}

func TestArraysRefuse(t *testing.T) {
	x, y := npy("<f4", "(9, 2)", make([]float32, 18)), npy("<i4", "(9,)", []int32{0, 1, 0, 1, 0, 1, 0, 1, 0})
	nan := make([]float32, 18)
	nan[7] = float32(math.NaN())
	for name, c := range map[string]struct {
		files   map[string][]byte
		wantErr string
	}{
		"names":     {map[string][]byte{"arr_0": x, "arr_1": y}, "name the samples x and their labels y"},
		"nothing":   {nil, "holds no array"},
		"no labels": {map[string][]byte{"x": x}, "samples x without their labels"},
		"no tests":  {map[string][]byte{"x_train": x, "y_train": y, "x_test": x}, "samples x_test without their labels"},
		"count":     {map[string][]byte{"x": x, "y": npy("<i4", "(8,)", make([]int32, 8))}, "y has shape [8] for 9 samples"},
		"one-hot":   {map[string][]byte{"x": x, "y": npy("<i4", "(9, 2)", make([]int32, 18))}, "label 1 has 0 numbers that are 1"},
		"row":       {map[string][]byte{"x": x, "y": npy("<i4", "(1, 9)", make([]int32, 9))}, "y has shape [1 9] for 9 samples"},
		"fraction":  {map[string][]byte{"x": x, "y": npy("<f8", "(9,)", []float64{0, 1, 0.5, 1, 0, 1, 0, 1, 0})}, "label 0.5 of sample 3"},
		"range":     {map[string][]byte{"x": x, "y": npy("<i4", "(9,)", []int32{0, 1, 0, 1, 0, 1, 0, 1, -2})}, "label -2 is out of range"},
		"shape":     {map[string][]byte{"x": npy("<f4", "(9, 2, 1, 2)", make([]float32, 36)), "y": y}, "has shape [9 2 1 2]"},
		"flat":      {map[string][]byte{"x": npy("<f4", "(9,)", make([]float32, 9)), "y": y}, "has shape [9]"},
		"NaN":       {map[string][]byte{"x": npy("<f4", "(9, 2)", nan), "y": y}, "x.npz: x: row 4 has the value NaN"},
		"broken":    {map[string][]byte{"x": x[:100], "y": y}, "save the file again"},
	} {
		if _, err := loadFile(t, "x.npz", npz(c.files)); err == nil || !strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("%s: %v", name, err)
		}
	}
	whole := npz(map[string][]byte{"x": x, "y": y})
	for name, b := range map[string][]byte{"cut": whole[:len(whole)/2], "empty": nil, "text": []byte("1,2,3\n")} {
		if _, err := loadFile(t, "x.npz", b); err == nil || !strings.Contains(err.Error(), "no NPZ file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzNPY(f *testing.F) {
	f.Add(npy("<f4", "(2, 2)", []float32{1, 2, 3, 4}))
	f.Add(npy(">i8", "(3,)", []int64{1, -2, 3}))
	f.Add(npy("<f8", "(2, 2)", []float64{1e9, 1e9 + 1, 1e9 + 2, 1e9 + 3})) // not exactly representable in float32
	f.Add(npy("|u1", "(1, 1, 2, 3)", make([]uint8, 6)))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := readNPY(bytes.NewReader(b), "fuzz")
		if err != nil {
			return
		}
		n := 1
		for _, d := range a.shape {
			n *= d
		}
		if len(a.numbers()) != n {
			t.Fatalf("shape %v, %d numbers", a.shape, len(a.numbers()))
		}
		if p, err := a.part(); err == nil && len(p.Pixels)+len(p.Values)+len(p.Doubles) != n {
			t.Fatalf("shape %v, %d bytes, %d float32, %d float64", a.shape, len(p.Pixels), len(p.Values), len(p.Doubles))
		}
	})
}

func FuzzNPZ(f *testing.F) {
	f.Add(npz(map[string][]byte{"x": npy("<f4", "(9, 2)", make([]float32, 18)),
		"y": npy("<i4", "(9,)", []int32{0, 1, 0, 1, 0, 1, 0, 1, 0})}))
	f.Fuzz(func(t *testing.T, b []byte) {
		z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		own, err := Reading{}.readArrays("fuzz", zipArrays("fuzz", z), "")
		if err != nil {
			return
		}
		if s, err := (Reading{}).assemble("fuzz", own); err == nil && s.Len() < minSamples {
			t.Fatalf("%d samples", s.Len())
		}
	})
}

// TestNPYOrders: arrays in Fortran order and in float16 have the same numbers as others.
func TestNPYOrders(t *testing.T) {
	columns := func(b []byte) []byte {
		return bytes.Replace(b, []byte("'fortran_order': False, "), []byte("'fortran_order': True,  "), 1)
	}
	for _, c := range []struct {
		name string
		file []byte
		want []float64
	}{
		{"rows", npy("<i2", "(2, 3)", []int16{1, 2, 3, 4, 5, 6}), []float64{1, 2, 3, 4, 5, 6}},
		{"columns", columns(npy("<i2", "(2, 3)", []int16{1, 4, 2, 5, 3, 6})), []float64{1, 2, 3, 4, 5, 6}},
		{"columns of images", columns(npy("|u1", "(2, 2, 3)", []uint8{0, 6, 3, 9, 1, 7, 4, 10, 2, 8, 5, 11})), []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
		{"a list", columns(npy("<f8", "(3,)", []float64{1, 2, 3})), []float64{1, 2, 3}},
		{"half", npy("<f2", "(4,)", []uint16{0x3c00, 0xc000, 0x3555, 0x0001}), []float64{1, -2, 0.333251953125, 0x1p-24}},
	} {
		a, err := readNPY(bytes.NewReader(c.file), "x.npy")
		if err != nil || !slices.Equal(a.numbers(), c.want) {
			t.Errorf("%s: %v, %v", c.name, a.numbers(), err)
		}
	}
}
