// Package wrongfile recognises files that are often given by mistake instead of data or a model: Git LFS pointers, HTML
// pages from download links, and Python pickles, which brood does not read since reading one may run code. It imports
// no other package of brood.
//
//	err := wrongfile.Check(f, "net.safetensors", "its tensors as safetensors")
package wrongfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// Check returns an error that names the kind of the file at path and what to do; nil for other files and for those
// without random access, such as pipes. save names what to save instead of a pickle, and in which format.
func Check(file io.ReaderAt, path, save string) error {
	head := start(file)
	switch {
	case isPointer(head):
		return pointer(path)
	case isPage(head):
		return fmt.Errorf("%s is an HTML page: its link led to a page about the file, "+
			"so download the file itself", path)
	case isPickle(head):
		return fmt.Errorf("%s is a Python pickle, which may run code when it is read: load it in Python and save %s", path,
			save)
	}
	return nil
}

// CheckPointer is Check for Git LFS pointers only: a text may be an HTML page.
func CheckPointer(file io.ReaderAt, path string) error {
	if isPointer(start(file)) {
		return pointer(path)
	}
	return nil
}

func pointer(path string) error {
	return fmt.Errorf("%s is a Git LFS pointer, not the file itself: run \"git lfs pull\" in its repository", path)
}

// start returns the first bytes that the checks need, without moving the file's offset.
func start(file io.ReaderAt) []byte {
	head := make([]byte, 512)
	n, _ := file.ReadAt(head, 0)
	return head[:n]
}

func isPointer(head []byte) bool {
	return bytes.HasPrefix(head, []byte("version https://git-lfs.github.com/spec/v1"))
}

func isPage(head []byte) bool {
	text := bytes.ToLower(bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\ufeff"))))
	return bytes.HasPrefix(text, []byte("<!doctype html")) || bytes.HasPrefix(text, []byte("<html"))
}

// isPickle recognises pickles of protocol 2 to 5, and the zip archives in which PyTorch stores one as its first file.
func isPickle(head []byte) bool {
	const (
		proto    = 0x80
		nameSize = 26 // offset of the size of the name of a zip's first file
		name     = 30 // offset of that name
	)
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")) && len(head) > name:
		n := int(binary.LittleEndian.Uint16(head[nameSize:]))
		return bytes.HasSuffix(head[name:min(name+n, len(head))], []byte("/data.pkl"))
	case len(head) < 3 || head[0] != proto || head[1] < 2 || head[1] > 5 || head[2] == 0:
		return false
	}
	return len(head) < 9 || head[8] != '{' // the length of a safetensors header may begin with the same bytes
}
