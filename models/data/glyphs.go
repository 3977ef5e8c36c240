package data

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"brood/models/noise"
)

//go:generate go run ./internal/glyphgen

// Sizes of the default set, and the digest it has on every platform.
const (
	GlyphTrain  = 12000
	GlyphTest   = 2000
	GlyphDigest = "blake3:e809ccf4c59ae9dd00f8c6e84cb4522380387d64d27e13e0244509ece37b7691"
)

// glyphFile holds distance fields of digits, written by internal/glyphgen: fonts, digits, height and width in a byte
// each, then a field per font and digit. A sample is 128 on the outline, 16 more a sample of distance inside, less
// outside.
//
//go:embed glyphs.bin.gz
var glyphFile []byte

const (
	glyphSide  = 28
	glyphCell  = 32 // samples of a field per direction
	glyphFonts = 12
)

type glyphFields [glyphFonts * 10][glyphCell * glyphCell]uint8

func readGlyphs() (*glyphFields, error) {
	z, err := gzip.NewReader(bytes.NewReader(glyphFile))
	if err != nil {
		return nil, fmt.Errorf("data glyphs: %w", err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("data glyphs: %w", err)
	}
	f := new(glyphFields)
	if len(b) != 4+len(f)*len(f[0]) || [4]byte(b) != [4]byte{glyphFonts, 10, glyphCell, glyphCell} {
		return nil, fmt.Errorf("data glyphs: embedded file of %d bytes, header %v", len(b), b[:min(4, len(b))])
	}
	for i := range f {
		copy(f[i][:], b[4+i*len(f[0]):])
	}
	return f, nil
}

// Glyphs draws the first train and test images of the embedded set. Image i of a split depends on i and the split only.
// The default set is drawn once and kept in the user's cache: reading it takes a tenth of the time, and its digest says
// whether it is what would be drawn.
func Glyphs(train, test int) (*Set, error) {
	if train < 1 || test < 0 || max(train, test) > 1<<20 {
		return nil, fmt.Errorf("data glyphs: %d training and %d test images, want 1 to 1048576", train, test)
	}
	info := glyphInfo()
	standard := train == GlyphTrain && test == GlyphTest
	if standard {
		if s := keptGlyphs(info); s != nil {
			return s, nil
		}
	}
	s, err := drawGlyphs(info, train, test)
	if err == nil && standard {
		keepGlyphs(s)
	}
	return s, err
}

func glyphInfo() Info {
	return Info{Name: "glyphs", Shape: []int{1, glyphSide, glyphSide}, Classes: 10, Mean: []float64{0.2245}, Std: []float64{0.2154}, From: "built in"}
}

func drawGlyphs(info Info, train, test int) (*Set, error) {
	f, err := readGlyphs()
	if err != nil {
		return nil, err
	}
	return New(info, f.raster(0, train), f.raster(1, test), DefaultShare)
}

// glyphCache is the file of the default set: its images, then their labels, a byte each. "" where there is no cache.
func glyphCache() string {
	dir, err := Cache("glyphs")
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "drawn.bin")
}

// keptGlyphs is the default set as the cache has it; nil where it is missing, cut, or not what would be drawn.
func keptGlyphs(info Info) *Set {
	const n = GlyphTrain + GlyphTest
	b, err := os.ReadFile(glyphCache())
	if err != nil || len(b) != n*(glyphSide*glyphSide+1) {
		return nil
	}
	pixels := n * glyphSide * glyphSide
	s, err := own(info, Raster{Pixels: b[:pixels:pixels], Labels: widened(b[pixels:])}, GlyphTrain, DefaultShare)
	if err != nil || s.digest != GlyphDigest {
		return nil
	}
	return s
}

// keepGlyphs writes the default set to the cache, whole or not at all. Where it cannot, it is drawn again the next
// time.
func keepGlyphs(s *Set) {
	path := glyphCache()
	if os.MkdirAll(filepath.Dir(path), 0o755) != nil {
		return
	}
	f, err := os.CreateTemp(filepath.Dir(path), "drawn-*.tmp")
	if err != nil {
		return
	}
	_, err = f.Write(slices.Concat(s.pixels, s.labelBytes()))
	if errors.Join(err, f.Close()) != nil || os.Rename(f.Name(), path) != nil {
		os.Remove(f.Name())
	}
}

func (f *glyphFields) raster(split uint32, n int) Raster {
	r := Raster{Pixels: make([]byte, n*glyphSide*glyphSide), Labels: make([]uint16, n)}
	var wg sync.WaitGroup
	k := runtime.GOMAXPROCS(0)
	for j := range k {
		wg.Go(func() {
			for i := j * n / k; i < (j+1)*n/k; i++ {
				px := r.Pixels[i*glyphSide*glyphSide : (i+1)*glyphSide*glyphSide]
				r.Labels[i] = uint16(f.draw((*canvas)(px), split, uint32(i)))
			}
		})
	}
	wg.Wait()
	return r
}

// draw is image i of a split: a warped digit, a fragment of another one at its edge, an occluding bar, noise. All of it
// is integer arithmetic on words of the image's own stream.
func (f *glyphFields) draw(dst *canvas, split, i uint32) (label byte) {
	key := noise.Key{Purpose: noise.Data, Member: i, Stream: split}
	d := dice{s: key.Schedule(), ctr: key.Counter(0)}
	label = byte(d.below(10))
	paper := d.within(0, 60)
	ink := paper + d.within(90, 190)
	var cover canvas
	w := randomWarp(&d, 0)
	w.paint(&cover, &f[d.below(glyphFonts)*10+int(label)], d.within(-5, 20), d.within(6, 20))
	far := randomWarp(&d, 1)
	far.paint(&cover, &f[d.below(len(f))], d.within(-5, 12), 14)
	bar(&cover, &d)
	grain := d.within(4, 24)
	var speckle canvas
	d.fill(&speckle)
	for p, c := range cover {
		v := paper + (ink-paper)*int(c)/255 + (int(speckle[p])-128)*grain/128
		dst[p] = byte(max(0, min(255, v)))
	}
	return label
}
