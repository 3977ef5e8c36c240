package safetensors

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// entry is a tensor in the header.
type entry struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

const metaKey = "__metadata__"

// Write writes f. Names must differ, be non-empty and not "__metadata__"; shapes must match the elements.
func Write(w io.Writer, f File) error {
	header, at := map[string]any{}, int64(0)
	if len(f.Meta) > 0 {
		header[metaKey] = f.Meta
	}
	for _, t := range f.Tensors {
		if t.Name == "" || t.Name == metaKey || header[t.Name] != nil {
			return bad("tensor name %q is reserved or used twice", t.Name)
		}
		if t.F != nil && t.U != nil {
			return bad("tensor %q has both F and U", t.Name)
		}
		n, err := elements(t.Name, t.Shape, math.MaxInt64/8)
		if err != nil {
			return err
		}
		if t.Pull == nil && n != int64(len(t.F)+len(t.U)) {
			return bad("tensor %q has %d elements for shape %v", t.Name, len(t.F)+len(t.U), t.Shape)
		}
		e := entry{"F32", append([]int{}, t.Shape...), [2]int64{at, at + 4*n}}
		if t.U != nil {
			e = entry{"U64", e.Shape, [2]int64{at, at + 8*n}}
		}
		header[t.Name], at = e, e.Offsets[1]
	}
	text, err := json.Marshal(header) // maps are encoded in the order of their keys
	if err != nil {
		return err
	}
	for len(text)%8 != 0 { // the format pads with spaces to align the data
		text = append(text, ' ')
	}
	if len(text) > MaxHeader {
		return bad("a header of %d bytes, at most %d", len(text), MaxHeader)
	}
	b := bufio.NewWriterSize(w, 1<<16)
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], uint64(len(text)))
	b.Write(word[:]) // a bufio.Writer keeps its first error for Flush
	b.Write(text)
	var pulled []byte
	for _, t := range f.Tensors {
		if t.Pull != nil {
			e := header[t.Name].(entry)
			for at, n := 0, int(e.Offsets[1]-e.Offsets[0])/4; at < n; at += piece {
				some := min(piece, n-at)
				pulled = slices.Grow(pulled[:0], 4*some)[:4*some]
				if err := t.Pull(pulled, at); err != nil {
					return err
				}
				b.Write(pulled)
			}
		}
		for _, v := range t.F {
			binary.LittleEndian.PutUint32(word[:], math.Float32bits(v))
			b.Write(word[:4])
		}
		for _, v := range t.U {
			binary.LittleEndian.PutUint64(word[:], v)
			b.Write(word[:])
		}
	}
	return b.Flush()
}

// piece is the number of elements pulled at a time: a row may be many times as large as a model.
const piece = 1 << 18

// Save writes f to path with WriteFile.
func Save(path string, f File) error {
	return WriteFile(path, func(w io.Writer) error { return Write(w, f) })
}

// WriteFile lets write fill the file at path, or the file that path links to, with the permissions of a new file. It
// writes and syncs a temporary file in the same directory and renames it, so that a crash leaves the old file or the
// new one. It refuses a device, pipe or socket, which the new file would remove. A file system error names path.
func WriteFile(path string, write func(io.Writer) error) (err error) {
	tmp, to, err := unfinished(path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			tmp.Close()
			os.Remove(tmp.Name())
		}
		var at *os.PathError
		if errors.As(err, &at) && at.Path == tmp.Name() {
			err = fmt.Errorf("%s cannot be written: %w", path, at.Err)
		}
	}()
	buffered := bufio.NewWriterSize(tmp, 1<<16)
	if err := errors.Join(write(buffered), buffered.Flush(), tmp.Sync()); err != nil {
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), to); err != nil {
		return fmt.Errorf("%s cannot be written: %w", path, withoutPath(err))
	}
	if d, err := os.Open(filepath.Dir(to)); err == nil { // makes the rename durable if directories can be synced
		_ = d.Sync()
		d.Close()
	}
	return nil
}

// Creatable returns the error with which WriteFile would not begin to write the file at path.
func Creatable(path string) error {
	tmp, _, err := unfinished(path)
	if err != nil {
		return err
	}
	return errors.Join(tmp.Close(), os.Remove(tmp.Name()))
}

// unfinished creates the temporary file for path, and returns the file that it replaces. os.CreateTemp would restrict
// its permissions to the owner.
func unfinished(path string) (tmp *os.File, to string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s cannot be written: %w", path, withoutPath(err))
		}
	}()
	to = path
	switch at, err := os.Stat(path); {
	case err != nil: // no file yet; what else is wrong shows when the temporary one is created
	case at.IsDir():
		return nil, "", syscall.EISDIR
	case !at.Mode().IsRegular():
		return nil, "", errors.New("it is not a regular file, and a new one in its place would remove it: name another file")
	default:
		if to, err = filepath.EvalSymlinks(path); err != nil {
			return nil, "", err
		}
	}
	for {
		name := filepath.Join(filepath.Dir(to), fmt.Sprintf(".%s.%08x", filepath.Base(to), rand.Uint32()))
		tmp, err = os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if !errors.Is(err, os.ErrExist) {
			return tmp, to, err
		}
	}
}

// withoutPath returns a file system error without file names.
func withoutPath(err error) error {
	var at *os.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &at):
		return at.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
