package data

import (
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"
)

// picture is an image file and its class.
type picture struct {
	path, class string
	orientation int // EXIF orientation, 1 to 8; 0 until header is called
}

// readPictures reads a folder that has a sub-folder of PNG and JPEG pictures for each class.
func (r Reading) readPictures(dir string) (*part, error) {
	files, err := listPictures(dir)
	if err != nil {
		return nil, err
	}
	return r.readFiles(dir, files, false)
}

// readFiles reads pictures of equal size, or resizes them, turned upright by their EXIF orientation. The samples are in
// colour if colour is set or any picture is stored in colour, else grey. Channels of 16 bits are rounded to 8.
//
// Transparent pixels are drawn on white or black. Unless [Reading.background] determines it, the background is white if
// the pictures with transparent pixels are darker than mid-grey in the alpha-weighted mean, else black.
func (r Reading) readFiles(dir string, files []picture, colour bool) (*part, error) {
	size, grey, err := measurePictures(files, r.resize())
	if err != nil {
		return nil, err
	}
	grey = grey && !colour
	p := &part{shape: []int{3, size.Y, size.X}, path: dir, namesAreFolders: true}
	if grey {
		p.shape[0] = 1
	}
	row := p.shape[0] * size.X * size.Y
	if len(files) > maxBytes/row {
		return nil, fmt.Errorf("%s is too large: %d pictures of %d x %d take more than %d bytes; scale them down",
			dir, len(files), size.X, size.Y, maxBytes)
	}
	p.Pixels = make([]byte, len(files)*row)
	for _, f := range files {
		p.names, p.files = append(p.names, f.class), append(p.files, f.path)
	}
	seen := make([]appearance, len(files))
	white, settled := r.background()
	d := drawing{size: size, resize: r.resize(), grey: grey, whiteBackground: white}
	draw := func(i int) (err error) {
		seen[i], err = d.read(p.Pixels[i*row:(i+1)*row], files[i])
		return err
	}
	if err := inParallel(len(files), draw); err != nil {
		return nil, err
	}
	var all appearance
	for _, a := range seen {
		all.add(a)
	}
	if !settled && all.dark() {
		d.whiteBackground = true
		err = inParallel(len(files), func(i int) error {
			if !seen[i].transparent {
				return nil
			}
			return draw(i)
		})
	}
	p.whiteBackground, p.notes = d.whiteBackground, all.notes(d.whiteBackground, settled)
	if p.resize = d.resize; d.resize.Side > 0 {
		p.notes = append(p.notes, "pictures are "+d.resize.Doc())
	}
	return p, err
}

// background reports whether transparent pixels are drawn on white rather than black. settled is false if neither the
// model nor the training samples of the same folder determine it; then the pictures themselves do.
func (r Reading) background() (white, settled bool) {
	switch {
	case r.Form != nil:
		return r.Form.White, true
	case r.whiteBackground != nil:
		return *r.whiteBackground, true
	}
	return false, false
}

// inParallel calls do for 0 to n-1 on GOMAXPROCS goroutines and waits for all. It returns the error of the smallest
// index.
func inParallel(n int, do func(i int) error) error {
	failed := make([]error, n)
	var wg sync.WaitGroup
	k := runtime.GOMAXPROCS(0)
	for j := range k {
		wg.Go(func() {
			for i := j; i < n; i += k {
				failed[i] = do(i)
			}
		})
	}
	wg.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// listPictures returns the pictures of a folder, class by class. It skips names that begin with a dot. It fails if
// there is no sub-folder, an empty one, or a file of another format in one.
func listPictures(dir string) (files []picture, err error) {
	classes, err := visible(dir)
	if err != nil {
		return nil, err
	}
	found := 0
	for _, class := range classes {
		sub := filepath.Join(dir, class)
		if i, err := os.Stat(sub); err != nil || !i.IsDir() {
			continue // a file such as README
		}
		if !utf8.ValidString(class) {
			return nil, fmt.Errorf("%s: the name of the sub-folder %q is not UTF-8: rename it", dir, class)
		}
		if found++; found > maxClasses {
			return nil, fmt.Errorf("%s has more than %d sub-folders; at most %d classes are supported",
				dir, maxClasses, maxClasses)
		}
		names, err := visible(sub)
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("%s: class %s has no sample: put pictures into that folder or remove it", sub, class)
		}
		for _, name := range names {
			if !isPicture(name) {
				return nil, fmt.Errorf("%s is no PNG or JPEG picture; convert it, or move it away", filepath.Join(sub, name))
			}
			files = append(files, picture{path: filepath.Join(sub, name), class: class})
		}
	}
	if found == 0 {
		return nil, fmt.Errorf("%s has no sub-folders: put the pictures of each class into one of its own", dir)
	}
	return files, nil
}

// isPicture reports whether a file is a picture, by its name.
func isPicture(name string) bool {
	ext := strings.ToLower(filepath.Ext(name))
	return ext == ".png" || ext == ".jpg" || ext == ".jpeg"
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

// measurePictures reads the headers of all pictures. It returns their common upright size, or that to which they are
// resized, and whether all are grey, and sets their orientation. It fails if the sizes are too large, or differ without
// resizing.
func measurePictures(files []picture, to Resize) (size image.Point, grey bool, err error) {
	grey, size = true, image.Pt(to.Side, to.Side)
	for i := range files {
		f := &files[i]
		c, err := f.header()
		if err != nil {
			return size, false, err
		}
		at := turned(image.Pt(c.Width, c.Height), f.orientation)
		switch {
		case to.Side > 0:
			if at.X < 1 || at.Y < 1 || at.X > maxPicture || at.Y > maxPicture || at.X > maxBytes/8/at.Y {
				return size, false, fmt.Errorf("%s is %d x %d pixels, too large to read; scale the picture down", f.path, at.X,
					at.Y)
			}
		case i == 0 && (at.X < 1 || at.Y < 1 || at.X > maxFeatures/3/at.Y):
			return size, false, fmt.Errorf("%s is %d x %d pixels, too large to train on; scale the pictures down",
				f.path, at.X, at.Y)
		case i == 0:
			size = at
		case at != size:
			return size, false, fmt.Errorf("%s is %d x %d pixels, but %s is %d x %d; scale all pictures to one size, "+
				"or let --resize 64 do so",
				f.path, at.X, at.Y, files[0].path, size.X, size.Y)
		}
		grey = grey && (c.ColorModel == color.GrayModel || c.ColorModel == color.Gray16Model)
	}
	return size, grey, nil
}

const (
	pngMagic  = "\x89PNG\r\n\x1a\n"
	jpegMagic = "\xff\xd8"
)

// open opens the file, calls do with it, and names the file in do's error. The format is detected from the first bytes,
// or from the file name if they are neither PNG nor JPEG.
func (f *picture) open(do func(in io.ReadSeeker, isPNG bool) error) error {
	in, err := openFile(f.path)
	if err != nil {
		return err
	}
	defer in.Close()
	head := make([]byte, len(pngMagic))
	n, _ := in.ReadAt(head, 0) // the decoder reports a short or unreadable file
	head = head[:n]
	namedPNG := strings.EqualFold(filepath.Ext(f.path), ".png")
	isPNG := string(head) == pngMagic || namedPNG && !strings.HasPrefix(string(head), jpegMagic)
	if err := do(in, isPNG); err != nil {
		return fmt.Errorf("%s cannot be read as a picture (%w); repair it or move it away", f.path, err)
	}
	return nil
}

// header reads the size and colour model, and sets the orientation of f.
func (f *picture) header() (c image.Config, err error) {
	err = f.open(func(in io.ReadSeeker, isPNG bool) (err error) {
		decode := jpeg.DecodeConfig
		if isPNG {
			decode = png.DecodeConfig
		}
		if c, err = decode(in); err != nil {
			return err
		}
		if _, err = in.Seek(0, io.SeekStart); err == nil {
			f.orientation = orientation(in, isPNG)
		}
		return err
	})
	return c, err
}
