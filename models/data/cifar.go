package data

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"brood/models/wrongfile"
)

// cifarPixels is the number of bytes of a CIFAR image: red, green and blue planes of 32 x 32.
const cifarPixels = 3 * 32 * 32

const cifar10Names = "airplane automobile bird cat deer dog frog horse ship truck"

const cifar100Names = `apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus
butterfly camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur
dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster
man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree
plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper snail
snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip
turtle wardrobe whale willow_tree wolf woman worm`

// loadCIFAR reads the binary batches; the last file is the test set. A record is one byte per label, of which the last
// is used, followed by the pixels.
func loadCIFAR(k Known, p fileLocations) (*Set, error) {
	info := Info{Name: k.Name, Shape: k.Shape, Classes: k.Classes, From: p.dir}
	limits := []int{10}
	info.Names = strings.Fields(cifar10Names)
	info.Mean, info.Std = []float64{0.4914, 0.4822, 0.4465}, []float64{0.2470, 0.2435, 0.2616}
	if k.Classes == 100 {
		limits = []int{20, 100}
		info.Names = strings.Fields(cifar100Names)
		info.Mean, info.Std = []float64{0.5071, 0.4865, 0.4409}, []float64{0.2673, 0.2564, 0.2762}
	}
	all, each := zeroRaster(k.Train+k.Test), k.Train/(len(k.Files)-1)
	err := eachFile(k, p, func(i int, name string, r io.Reader) error {
		lo, hi := i*each, (i+1)*each
		if i == len(k.Files)-1 {
			hi = lo + k.Test
		}
		dst := Raster{Pixels: all.Pixels[lo*cifarPixels : hi*cifarPixels], Labels: all.Labels[lo:hi]}
		return readRecords(r, name, limits, dst)
	})
	if err != nil {
		return nil, err
	}
	return newSet(info, all, k.Train, DefaultShare)
}

// zeroRaster returns n CIFAR samples, all zero.
func zeroRaster(n int) Raster {
	return Raster{Pixels: make([]byte, n*cifarPixels), Labels: make([]uint16, n)}
}

// readRecords fills dst from a CIFAR file, gzipped or not. It fails if the file has more or fewer records than dst.
// limits is the number of classes of each label of a record.
func readRecords(r io.Reader, file string, limits []int, dst Raster) error {
	in, err := gunzip(r)
	if err != nil {
		return &FileError{file, 0, err.Error()}
	}
	head, n := len(limits), len(dst.Labels)
	record := make([]byte, head+cifarPixels)
	for i := range n {
		at := int64(i * len(record))
		if got, err := io.ReadFull(in, record); err != nil {
			return &FileError{file, at + int64(got), fmt.Sprintf("the file ends or breaks within record %d of %d", i+1, n)}
		}
		for j, limit := range limits {
			if int(record[j]) >= limit {
				return &FileError{file, at + int64(j), fmt.Sprintf("label %d is not 0 to %d", record[j], limit-1)}
			}
		}
		dst.Labels[i] = uint16(record[head-1])
		copy(dst.Pixels[i*cifarPixels:], record[head:])
	}
	switch _, err := in.ReadByte(); {
	case err == nil:
		return &FileError{file, int64(n * len(record)), fmt.Sprintf("the file has data after its %d records", n)}
	case !errors.Is(err, io.EOF):
		return &FileError{file, int64(n * len(record)), err.Error()}
	}
	return nil
}

// eachFile calls f for each file of a set, read from its path or from the archive. i is the index of the file in
// k.Files. It stops at the first error.
func eachFile(k Known, p fileLocations, f func(i int, name string, r io.Reader) error) error {
	if p.archive != "" {
		return eachMember(k, p.archive, f)
	}
	for i, path := range p.paths {
		in, err := openFile(path)
		if err != nil {
			return err
		}
		err = f(i, path, in)
		in.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func eachMember(k Known, archive string, f func(i int, name string, r io.Reader) error) error {
	in, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := wrongfile.CheckPointer(in, archive); err != nil {
		return err
	}
	return Unpack(in, archive, k.Files, f)
}

// Unpack calls f for each wanted file of a tar.gz, in the order of the archive. wanted contains base names, and i is
// the index in it. Unpack fails if a file is missing or the archive is damaged; archive names it in errors.
func Unpack(in io.Reader, archive string, wanted []string, f func(i int, name string, r io.Reader) error) error {
	z, err := gunzip(in)
	if err != nil {
		return &FileError{archive, 0, err.Error()}
	}
	missing := slices.Clone(wanted)
	for t := tar.NewReader(z); len(missing) > 0; {
		h, err := t.Next()
		if err != nil {
			what := fmt.Sprintf("the archive ends or breaks (%v) before %s", err, strings.Join(missing, ", "))
			return &FileError{archive, 0, what}
		}
		name := path.Base(h.Name)
		if h.Typeflag != tar.TypeReg || !slices.Contains(missing, name) {
			continue
		}
		missing = slices.DeleteFunc(missing, func(m string) bool { return m == name })
		if err := f(slices.Index(wanted, name), archive+": "+h.Name, t); err != nil {
			return err
		}
	}
	if _, err := io.Copy(io.Discard, z); err != nil { // the checksum comes last
		return &FileError{archive, 0, err.Error()}
	}
	return nil
}
