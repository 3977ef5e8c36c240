package fetch

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"brood/models/data"
	"brood/models/usererr"
)

// File is a published file.
type File struct {
	Name   string
	Size   int64
	SHA256 string
}

// Set describes the published files of a data set.
type Set struct {
	Name   string
	URL    string // folder of the files
	Files  []File
	Folder string   // if not empty, the only file is a tar.gz from which the files Wanted of this folder are kept
	Wanted []string // files of Folder
}

// Bytes returns the total size of a download.
func (s Set) Bytes() (n int64) {
	for _, f := range s.Files {
		n += f.Size
	}
	return n
}

// Lookup returns the published files of a set of the catalogue.
func Lookup(name string) (Set, error) {
	k, err := data.Lookup(name)
	if err != nil {
		return Set{}, err
	}
	s := Set{Name: name, Folder: k.Folder, Wanted: k.Files}
	switch name {
	case "mnist":
		s.URL = "https://storage.googleapis.com/cvdf-datasets/mnist"
		s.Files = []File{
			{"train-images-idx3-ubyte.gz", 9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
			{"train-labels-idx1-ubyte.gz", 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
			{"t10k-images-idx3-ubyte.gz", 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
			{"t10k-labels-idx1-ubyte.gz", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"},
		}
	case "cifar10":
		s.URL = "https://www.cs.toronto.edu/~kriz"
		s.Files = []File{{k.Archive, 170052171, "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}}
	case "cifar100":
		s.URL = "https://www.cs.toronto.edu/~kriz"
		s.Files = []File{{k.Archive, 168513733, "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"}}
	default:
		return Set{}, usererr.Errorf("data %s is built in: there is nothing to fetch", name)
	}
	return s, nil
}

// unpack replaces the archive in dir by its folder, since reading the archive would take seconds at every start. It
// deletes the archive last.
func (s Set) unpack(dir string) (err error) {
	archive := filepath.Join(dir, s.Files[0].Name)
	in, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer in.Close()
	tmp, err := os.MkdirTemp(dir, ".unpack-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	err = data.Unpack(in, archive, s.Wanted, func(i int, _ string, r io.Reader) error {
		return write(filepath.Join(tmp, s.Wanted[i]), r)
	})
	if err != nil {
		return err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	folder := filepath.Join(dir, s.Folder)
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.Rename(tmp, folder); err != nil {
		return err
	}
	in.Close()
	return os.Remove(archive)
}

func write(path string, r io.Reader) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, r)
	return errors.Join(err, out.Sync(), out.Close())
}
