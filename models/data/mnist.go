package data

import (
	"fmt"
)

// loadMNIST reads the four standard files. The training samples are read with capacity for the test samples, so that
// joining them does not raise the peak memory.
func loadMNIST(k Known, p fileLocations) (*Set, error) {
	var parts [2]Raster
	for i, more := range []int{k.Test, 0} {
		shape, r, err := readPair(p.paths[2*i], p.paths[2*i+1], more*28*28)
		if err != nil {
			return nil, err
		}
		if shape[0] != 1 || shape[1] != 28 || shape[2] != 28 {
			return nil, &FileError{p.paths[2*i], 4, fmt.Sprintf("sizes %v are not the sizes of 28 x 28 images", shape)}
		}
		for j, l := range r.Labels {
			if l > 9 {
				return nil, &FileError{p.paths[2*i+1], int64(8 + j), fmt.Sprintf("label %d is not 0 to 9", l)}
			}
		}
		parts[i] = r
	}
	info := Info{
		Name:    k.Name,
		Shape:   k.Shape,
		Classes: k.Classes,
		Mean:    []float64{0.1307},
		Std:     []float64{0.3081},
		From:    p.dir,
	}
	train, test := parts[0], parts[1]
	n := len(train.Labels)
	train.Pixels, train.Labels = append(train.Pixels, test.Pixels...), append(train.Labels, test.Labels...)
	return newSet(info, train, n, DefaultShare)
}

// readPair reads an IDX file of samples (grey or coloured images, or flat samples) and the file of their labels. The
// pixels have capacity for more further bytes.
func readPair(images, labels string, more int) (shape []int, r Raster, err error) {
	n, shape, px, err := readImages(images, more)
	if err != nil {
		return nil, r, err
	}
	ldims, ls, err := readIDXFile(labels, 0)
	if err != nil {
		return nil, r, err
	}
	if len(ldims) != 1 || ldims[0] != n {
		return nil, r, &FileError{labels, 4, fmt.Sprintf("sizes %v do not match %d images", ldims, n)}
	}
	return shape, Raster{Pixels: px, Labels: toUint16(ls)}, nil
}

// readImages reads an IDX file of n samples and returns their shape. The pixels have capacity for more further bytes.
func readImages(path string, more int) (n int, shape []int, pixels []byte, err error) {
	dims, pixels, err := readIDXFile(path, more)
	if err != nil {
		return 0, nil, nil, err
	}
	if len(dims) == 1 {
		return 0, nil, nil, &FileError{path, 3, "one size: these are labels, not samples"}
	}
	shape, last := sampleShape(dims)
	switch {
	case shape == nil: // neither 1 nor 3 channels: the channels are the first axis
		shape = dims[1:]
	case last:
		pixels = channelsFirst(pixels, shape)
	}
	return dims[0], shape, pixels, nil
}

func readIDXFile(path string, more int) ([]int, []byte, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	return readIDX(f, path, more)
}
