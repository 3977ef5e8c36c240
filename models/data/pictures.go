package data

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// picture is a file of a class.
type picture struct{ path, class string }

// readPictures reads a folder with a sub-folder of PNG and JPEG pictures for each class. All have one size; they are
// grey when every file is stored as grey, else red, green and blue; what is transparent is drawn on black. Channels of
// 16 bits are rounded to 8, or cut.
func readPictures(dir string, round bool) (*part, error) {
	files, err := listPictures(dir)
	if err != nil {
		return nil, err
	}
	return readFiles(dir, files, round, false)
}

// readFiles reads the pictures of a folder: in colour where that is asked for, or where one of them has it.
func readFiles(dir string, files []picture, round, colour bool) (*part, error) {
	size, grey, err := measurePictures(files)
	if err != nil {
		return nil, err
	}
	grey = grey && !colour
	p := &part{shape: []int{3, size.Y, size.X}, from: dir, folders: true}
	if grey {
		p.shape[0] = 1
	}
	row := p.shape[0] * size.X * size.Y
	if len(files) > maxBytes/row {
		return nil, fmt.Errorf("%s is too large: %d pictures of %d x %d take more than %d bytes; scale them down", dir, len(files), size.X, size.Y, maxBytes)
	}
	p.Pixels = make([]byte, len(files)*row)
	failed := make([]error, len(files))
	var wg sync.WaitGroup
	k := runtime.GOMAXPROCS(0)
	for j := range k {
		wg.Go(func() {
			for i := j; i < len(files); i += k {
				failed[i] = files[i].read(p.Pixels[i*row:(i+1)*row], size, grey, round)
			}
		})
	}
	wg.Wait()
	for i, err := range failed {
		if err != nil {
			return nil, err
		}
		p.names = append(p.names, files[i].class)
	}
	return p, nil
}

// listPictures names the files, class by class. Names that begin with a dot do not count.
func listPictures(dir string) (files []picture, err error) {
	classes, err := visible(dir)
	if err != nil {
		return nil, err
	}
	found := 0
	for _, class := range classes {
		sub := filepath.Join(dir, class)
		if i, err := os.Stat(sub); err != nil || !i.IsDir() {
			continue // a README beside the classes
		}
		if found++; found > maxClasses {
			return nil, fmt.Errorf("%s has more than %d sub-folders; at most %d classes can be told apart", dir, maxClasses, maxClasses)
		}
		names, err := visible(sub)
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("%s: class %s has no sample: put pictures into that folder or remove it", sub, class)
		}
		for _, name := range names {
			switch strings.ToLower(filepath.Ext(name)) {
			case ".png", ".jpg", ".jpeg":
				files = append(files, picture{filepath.Join(sub, name), class})
			default:
				return nil, fmt.Errorf("%s is no PNG or JPEG picture; convert it, or move it away", filepath.Join(sub, name))
			}
		}
	}
	if found == 0 {
		return nil, fmt.Errorf("%s has no sub-folders: put the pictures of each class into one of its own", dir)
	}
	return files, nil
}

func visible(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// measurePictures reads the headers: the one size, and whether all are grey.
func measurePictures(files []picture) (size image.Point, grey bool, err error) {
	grey = true
	for i, f := range files {
		c, err := f.header()
		if err != nil {
			return size, false, err
		}
		at := image.Pt(c.Width, c.Height)
		switch {
		case i == 0 && (at.X < 1 || at.Y < 1 || at.X > maxFeatures/3/at.Y):
			return size, false, fmt.Errorf("%s is %d x %d pixels, too large to train on; scale the pictures down", f.path, at.X, at.Y)
		case i == 0:
			size = at
		case at != size:
			return size, false, fmt.Errorf("%s is %d x %d pixels, but %s is %d x %d; scale all pictures to one size", f.path, at.X, at.Y, files[0].path, size.X, size.Y)
		}
		grey = grey && (c.ColorModel == color.GrayModel || c.ColorModel == color.Gray16Model)
	}
	return size, grey, nil
}

// with gives the opened file to do, and names it in its errors.
func (f picture) with(do func(io.Reader) error) error {
	in, err := openFile(f.path)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := do(in); err != nil {
		return fmt.Errorf("%s cannot be read as a picture (%w); repair it or move it away", f.path, err)
	}
	return nil
}

func (f picture) isPNG() bool { return strings.EqualFold(filepath.Ext(f.path), ".png") }

func (f picture) header() (c image.Config, err error) {
	decode := jpeg.DecodeConfig
	if f.isPNG() {
		decode = png.DecodeConfig
	}
	err = f.with(func(r io.Reader) (err error) { c, err = decode(r); return err })
	return c, err
}

func (f picture) read(dst []byte, size image.Point, grey, round bool) error {
	decode := jpeg.Decode
	if f.isPNG() {
		decode = png.Decode
	}
	return f.with(func(r io.Reader) error {
		img, err := decode(r)
		if err != nil {
			return err
		}
		return planes(dst, img, size, grey, round)
	})
}

// planes writes a picture channel by channel.
func planes(dst []byte, img image.Image, size image.Point, grey, round bool) error {
	if img.Bounds().Size() != size {
		return fmt.Errorf("it is %v, its header says %v", img.Bounds().Size(), size)
	}
	if m := img.ColorModel(); round && (m == color.Gray16Model || m == color.RGBA64Model || m == color.NRGBA64Model) {
		deep(dst, img, size, grey)
		return nil
	}
	box := image.Rectangle{Max: size}
	if grey {
		draw.Draw(&image.Gray{Pix: dst, Stride: size.X, Rect: box}, box, img, img.Bounds().Min, draw.Src)
		return nil
	}
	rgba := image.NewRGBA(box)
	draw.Draw(rgba, box, img, img.Bounds().Min, draw.Src)
	n := size.X * size.Y
	for i := range n {
		dst[i], dst[n+i], dst[2*n+i] = rgba.Pix[4*i], rgba.Pix[4*i+1], rgba.Pix[4*i+2]
	}
	return nil
}

// deep writes a picture of 16 bits a channel: 65535 is 255, and what lies between is rounded.
func deep(dst []byte, img image.Image, size image.Point, grey bool) {
	n, min := size.X*size.Y, img.Bounds().Min
	for i := range n {
		r, g, b, _ := img.At(min.X+i%size.X, min.Y+i/size.X).RGBA()
		for c, v := range []uint32{r, g, b} {
			if c == 0 || !grey {
				dst[c*n+i] = byte((v + 128) / 257)
			}
		}
	}
}
