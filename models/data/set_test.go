package data

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/blake3"
)

// ramp returns n images of 1x2x3 with ascending bytes and labels modulo 3.
func ramp(n int) Raster {
	r := Raster{Pixels: make([]byte, n*6), Labels: make([]uint16, n)}
	for i := range r.Pixels {
		r.Pixels[i] = byte(i)
	}
	for i := range r.Labels {
		r.Labels[i] = uint16(i % 3)
	}
	return r
}

func rampInfo() Info {
	return Info{Name: "ramp", Shape: []int{1, 2, 3}, Classes: 3, Mean: []float64{0.5}, Std: []float64{0.25}}
}

func TestSplitCoversTraining(t *testing.T) {
	s, err := New(rampInfo(), ramp(120), ramp(30), DefaultShare)
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(s.Train(), s.Validation())
	slices.Sort(all)
	if !slices.Equal(all, ids(0, 120)) || len(s.Validation()) != 10 {
		t.Errorf("train %v and validation %v are not 110 + 10 of 120", s.Train(), s.Validation())
	}
	if !slices.Equal(s.Test(), ids(120, 150)) {
		t.Errorf("test %v", s.Test())
	}
	if !slices.IsSorted(s.Train()) || !slices.IsSorted(s.Validation()) {
		t.Error("ids do not ascend")
	}
	if s.Validation()[9]-s.Validation()[0] < 20 {
		t.Errorf("validation %v is not spread over the set", s.Validation())
	}
	none, err := s.WithShare(0)
	if err != nil || len(none.Validation()) != 0 || len(none.Train()) != 120 || len(s.Validation()) != 10 {
		t.Errorf("share 0: %d + %d, %v", len(none.Train()), len(none.Validation()), err)
	}
}

func TestGather(t *testing.T) {
	s, err := New(rampInfo(), ramp(12), ramp(3), 0)
	if err != nil {
		t.Fatal(err)
	}
	x, y := make([]float32, 12), make([]int32, 2)
	if err := s.Gather([]int32{4, 13}, x, y); err != nil {
		t.Fatal(err)
	}
	want := func(p byte) float32 { return (float32(p)/255 - 0.5) / 0.25 }
	for i := range 6 {
		if x[i] != want(byte(24+i)) || x[6+i] != want(byte(6+i)) {
			t.Errorf("value %d: %v and %v", i, x[i], x[6+i])
		}
	}
	if y[0] != 1 || y[1] != 1 {
		t.Errorf("labels %v", y)
	}
	for _, bad := range []struct {
		ids  []int32
		x, y int
	}{{[]int32{15}, 6, 1}, {[]int32{-1}, 6, 1}, {[]int32{0}, 5, 1}, {[]int32{0}, 6, 2}} {
		if err := s.Gather(bad.ids, make([]float32, bad.x), make([]int32, bad.y)); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}

// labelled returns n samples of a ramp with all classes in turn.
func labelled(n, classes int) (Info, Raster) {
	i, r := rampInfo(), ramp(n)
	i.Classes = classes
	for k := range r.Labels {
		r.Labels[k] = uint16(k % classes)
	}
	return i, r
}

// TestDigestOfLabels: the digest hashes one byte per label up to 256 classes, for compatibility with older sessions,
// and two bytes above.
func TestDigestOfLabels(t *testing.T) {
	for classes, want := range map[int]string{3: "58f955cb798f216aa65913e3a05b7fc1de462311fafc7868a669a8e6a2da2737",
		256: "499d25a9d39a2b4c6fde20b96d5b4cbe4ddfeac16833130864b701d5dda0d435"} {
		i, r := labelled(300, classes)
		s, err := New(i, r, Raster{Pixels: r.Pixels[:12], Labels: r.Labels[:2]}, 0)
		if err != nil || s.Digest() != "blake3:"+want {
			t.Errorf("%d classes: %s, %v", classes, s.Digest(), err)
		}
	}
	i, r := labelled(300, 300)
	s, err := New(i, r, Raster{Pixels: r.Pixels[:12], Labels: r.Labels[:2]}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var naive []byte
	for _, n := range []uint64{1, 2, 3, 300, 300, 2} {
		naive = binary.LittleEndian.AppendUint64(naive, n)
	}
	naive = append(append(naive, r.Pixels...), r.Pixels[:12]...)
	for k := range 302 {
		naive = binary.LittleEndian.AppendUint16(naive, uint16(k%300))
	}
	if sum := blake3.Sum256(naive); s.Digest() != "blake3:"+hex.EncodeToString(sum[:]) {
		t.Errorf("300 classes: %s", s.Digest())
	}
}

// TestManyClasses: labels above 255 are preserved from the file to a batch, and each is in every split.
func TestManyClasses(t *testing.T) {
	for _, name := range []string{"%d", "name%05d"} {
		var text strings.Builder
		const classes = 1000
		for i := range 4 * classes {
			fmt.Fprintf(&text, "%d,%d,"+name+"\n", i%classes%7, i%classes/7, i*7%classes)
		}
		s, err := loadFile(t, "x.csv", []byte(text.String()))
		if err != nil || s.Classes != classes {
			t.Fatalf("%d classes: %v", s.Classes, err)
		}
		for _, split := range [][]int32{s.Train(), s.Validation(), s.Test()} {
			x, y := make([]float32, 2*len(split)), make([]int32, len(split))
			if err := s.Gather(split, x, y); err != nil {
				t.Fatal(err)
			}
			seen := map[int32]bool{}
			for i, l := range y {
				place := func(f int) int { return int(math.Round(float64(x[2*i+f])*float64(s.Std[f]) + float64(s.Mean[f]))) }
				if is := (place(1)*7 + place(0)) * 7 % classes; s.ClassName(int(l)) != fmt.Sprintf(name, is) {
					t.Fatalf("sample %d has the label %d, %s, and is of %d", split[i], l, s.ClassName(int(l)), is)
				}
				seen[l] = true
			}
			if len(seen) != classes {
				t.Errorf("a split has %d classes", len(seen))
			}
		}
	}
	i, r := labelled(20, 1<<16+1)
	if _, err := New(i, r, Raster{}, 0); err == nil || !strings.Contains(err.Error(), "65537 classes, want 1 to 65536") {
		t.Error(err)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, change := range map[string]func(*Info, *Raster){
		"shape":    func(i *Info, _ *Raster) { i.Shape = []int{6} },
		"zero":     func(i *Info, _ *Raster) { i.Shape = []int{1, 0, 6} },
		"label":    func(_ *Info, r *Raster) { r.Labels[2] = 3 },
		"pixels":   func(_ *Info, r *Raster) { r.Pixels = r.Pixels[1:] },
		"mean":     func(i *Info, _ *Raster) { i.Mean = nil },
		"nothing":  func(_ *Info, r *Raster) { *r = Raster{} },
		"channels": func(i *Info, _ *Raster) { i.Shape = []int{3, 2, 1} },
	} {
		i, r := rampInfo(), ramp(12)
		change(&i, &r)
		if _, err := New(i, r, ramp(3), 0); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, share := range []float64{-0.1, 1, 0.99} {
		if _, err := New(rampInfo(), ramp(12), ramp(3), share); err == nil {
			t.Errorf("share %v: no error", share)
		}
	}
}
