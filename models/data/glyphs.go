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

// Sizes in images of the default set, and its digest, which is equal on all platforms.
const (
	GlyphTrain  = 12000
	GlyphTest   = 2000
	GlyphDigest = "blake3:e809ccf4c59ae9dd00f8c6e84cb4522380387d64d27e13e0244509ece37b7691"
)

// glyphFile contains signed distance fields of digits, written by internal/glyphgen: the numbers of fonts and digits,
// the height and the width, one byte each, then a field per font and digit. A field sample is 128 on the outline, plus
// 16 per sample of distance inside it, minus 16 outside.
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

// Glyphs returns a set of train training and test test images of digits, drawn from the embedded fields. Image i of a
// split depends only on i and the split. The default set is cached in the user's cache directory, since reading it
// takes a tenth of the time of drawing it; a cached file with another digest is ignored.
func Glyphs(train, test int) (*Set, error) {
	if train < 1 || test < 0 || max(train, test) > 1<<20 {
		return nil, fmt.Errorf("data glyphs: %d training and %d test images, want 1 to 1048576", train, test)
	}
	info := glyphInfo()
	standard := train == GlyphTrain && test == GlyphTest
	if standard {
		if s := cachedGlyphs(info); s != nil {
			return s, nil
		}
	}
	s, err := drawGlyphs(info, train, test)
	if err == nil && standard {
		storeGlyphs(s)
	}
	return s, err
}

func glyphInfo() Info {
	return Info{
		Name:    "glyphs",
		Shape:   []int{1, glyphSide, glyphSide},
		Classes: 10,
		Mean:    []float64{0.2245},
		Std:     []float64{0.2154},
		From:    "built in",
	}
}

func drawGlyphs(info Info, train, test int) (*Set, error) {
	f, err := readGlyphs()
	if err != nil {
		return nil, err
	}
	return New(info, f.raster(0, train), f.raster(1, test), DefaultShare)
}

// glyphCache returns the path of the cached default set: its images, then their labels, one byte each. It returns "" if
// there is no cache directory.
func glyphCache() string {
	dir, err := Cache("glyphs")
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "drawn.bin")
}

// cachedGlyphs returns the cached default set, or nil if it is missing, has another size, or has another digest.
func cachedGlyphs(info Info) *Set {
	const n = GlyphTrain + GlyphTest
	b, err := os.ReadFile(glyphCache())
	if err != nil || len(b) != n*(glyphSide*glyphSide+1) {
		return nil
	}
	pixels := n * glyphSide * glyphSide
	s, err := newSet(info, Raster{Pixels: b[:pixels:pixels], Labels: toUint16(b[pixels:])}, GlyphTrain, DefaultShare)
	if err != nil || s.digest != GlyphDigest {
		return nil
	}
	return s
}

// storeGlyphs writes the default set to the cache atomically. It ignores errors: without a cache the set is drawn
// again.
func storeGlyphs(s *Set) {
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

// raster draws the first n images of a split, in parallel.
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

// draw draws image i of a split and returns its label: a warped digit, a fragment of another digit at the border, an
// occluding bar, and noise. It uses only integer arithmetic on random words of the image's own noise stream.
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
