package data

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"brood/models/wrongfile"
)

// IsText reports whether path is a text: FILE.txt, gzipped or not, a folder of only such files, or a folder whose
// entries train and test are texts.
func IsText(path string) bool {
	return isTextFile(path) || textsIn(path) != nil || isSplit(path)
}

// isSplit reports whether path is a folder with the texts train and test.
func isSplit(path string) bool {
	train, test := splitTexts(path)
	return train != "" && test != ""
}

func isTextFile(path string) bool {
	return filepath.Ext(strings.TrimSuffix(strings.ToLower(path), ".gz")) == ".txt"
}

// textsIn returns the files of a folder of texts, sorted by name; nil if the folder is empty or contains anything else.
func textsIn(dir string) (paths []string) {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasPrefix(name, "."):
		case e.IsDir() || !isTextFile(name):
			return nil
		default:
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	return paths
}

// splitTexts returns the paths of the texts train and test of a folder, each a file or a folder. A missing one is
// empty; both are empty if the folder contains anything but texts.
func splitTexts(dir string) (train, test string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", ""
	}
	for _, e := range entries {
		name, path := strings.ToLower(e.Name()), filepath.Join(dir, e.Name())
		if strings.HasPrefix(name, ".") {
			continue
		}
		if e.IsDir() && textsIn(path) == nil || !e.IsDir() && !isTextFile(name) {
			return "", ""
		}
		switch strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".txt") {
		case "train":
			train = path
		case "test":
			test = path
		}
	}
	return train, test
}

// readText reads a text and returns the number of bytes at its end that are for testing: the length of test for a
// folder with train and test, else testShare of the text. The files of a folder are joined in the order of their names.
func readText(path string) (text []byte, tests int, err error) {
	if first, second := splitTexts(path); first != "" && second != "" {
		if text, err = joinFiles(path, first); err != nil {
			return nil, 0, err
		}
		last, err := joinFiles(path, second)
		if err != nil {
			return nil, 0, err
		}
		for i, half := range []string{first, second} {
			if len([][]byte{text, last}[i]) == 0 {
				return nil, 0, fmt.Errorf("%s is empty: give it some text, or take train and test out of %s", half, path)
			}
		}
		if text = append(text, last...); len(text) > maxBytes {
			return nil, 0, tooLong(path)
		}
		return text, len(last), nil
	}
	if text, err = joinFiles(path, path); err != nil {
		return nil, 0, err
	}
	return text, max(1, validationCount(len(text), testShare)), nil
}

// joinFiles reads the file at path, or the joined texts of the folder at path. whole is the path named in the error for
// too long a text.
func joinFiles(whole, path string) (text []byte, err error) {
	files := textsIn(path)
	if files == nil {
		files = []string{path}
	}
	for _, file := range files {
		part, err := readBytes(file)
		if err != nil {
			return nil, err
		}
		if text = append(text, part...); len(text) > maxBytes {
			return nil, tooLong(whole)
		}
	}
	return text, nil
}

func tooLong(path string) error {
	return fmt.Errorf("%s is too large: more than %d bytes of text; give a part of it", path, maxBytes)
}

// readBytes reads at most maxBytes+1 bytes of a file, gzipped or not, so that the caller detects too long a text.
func readBytes(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, withAdvice(err)
	}
	defer f.Close()
	if err := wrongfile.CheckPointer(f, path); err != nil {
		return nil, err
	}
	plain, err := gunzip(f)
	if err != nil {
		return nil, &FileError{path, 0, err.Error()}
	}
	text, err := io.ReadAll(io.LimitReader(plain, maxBytes+1))
	if err != nil {
		return nil, &FileError{path, int64(len(text)), err.Error()}
	}
	return text, nil
}
