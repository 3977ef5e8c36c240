package session

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
)

// SaidFile is the file of a session in which its processes keep what they say to whoever started them: who joins, is
// refused or is gone, and how each of them ended. It explains a run and is no part of it: no state depends on it.
const SaidFile = "said.log"

const (
	saidMost = 256 << 10 // bytes of the file: of a longer one the first half is dropped
	lineMost = 2 << 10   // bytes of a line
	stamp    = "2006-01-02T15:04:05.000Z07:00"
)

// Line is one of those that a process said.
type Line struct {
	At   int64  `cbor:"0,keyasint"` // Unix nanoseconds, to the millisecond; 0 where nothing tells it
	Text string `cbor:"1,keyasint"`
}

// Say adds a text to what was said, its lines with the time of now. Several processes may do so.
func Say(dir, text string, now time.Time) error {
	path := filepath.Join(dir, SaidFile)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if line = printable(line); line != "" {
			out.WriteString(now.UTC().Format(stamp) + " " + line + "\n")
		}
	}
	_, err = f.Write(out.Bytes())
	stat, failed := f.Stat()
	if err = errors.Join(err, failed, f.Close()); err != nil || stat.Size() <= saidMost {
		return err
	}
	rest, err := tailOf(path, saidMost/2)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+"~", rest, 0o600); err != nil {
		return err
	}
	return os.Rename(path+"~", path)
}

// printable is a line as a terminal can be shown it.
func printable(line string) string {
	line = strings.ToValidUTF8(line[:min(len(line), lineMost)], "")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, line))
}

// tailOf is the end of a file, from the beginning of a line on.
func tailOf(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, stat.Size()-most)
	p, err := io.ReadAll(io.NewSectionReader(f, from, most))
	if from > 0 {
		_, p, _ = bytes.Cut(p, []byte("\n"))
	}
	return p, err
}

// Said are the lines of a session, oldest first: those that were kept, and below them those of the last process without
// a terminal, which has its errors in [HostLog]. A session of which nothing was said has none.
func Said(dir string) (lines []Line, err error) {
	p, err := tailOf(filepath.Join(dir, SaidFile), saidMost)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for text := range strings.SplitSeq(string(p), "\n") {
		when, rest, _ := strings.Cut(text, " ")
		at, err := time.Parse(stamp, when)
		if err != nil {
			rest = text
		}
		if rest = printable(rest); rest != "" {
			l := Line{Text: rest}
			if err == nil {
				l.At = at.UnixNano()
			}
			lines = append(lines, l)
		}
	}
	path := filepath.Join(dir, HostLog)
	p, err = tailOf(path, saidMost)
	stat, failed := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return lines, nil
	} else if err = cmp.Or(err, failed); err != nil {
		return lines, err
	}
	for text := range strings.SplitSeq(string(p), "\n") {
		if text = printable(text); text != "" {
			lines = append(lines, Line{stat.ModTime().UnixNano(), text})
		}
	}
	return lines, nil
}

// Said are the lines that the processes of the session said, see [Said].
func (r *Reader) Said() ([]Line, error) { return Said(r.dir) }

// KeepSaid moves what a process without a terminal said on its standard error to what is kept of a session: the next
// one begins its file anew. Where none has begun yet, nothing is kept.
func KeepSaid(dir string) error {
	if !holdsLog(dir) {
		return nil
	}
	path := filepath.Join(dir, HostLog)
	stat, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && stat.Size() == 0 {
		return nil
	}
	p, failed := tailOf(path, saidMost/2)
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	return errors.Join(Say(dir, string(p), stat.ModTime()), os.Remove(path))
}
