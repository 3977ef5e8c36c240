package session

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
)

// ProcessLogFile is the process log of a session. Its processes append what they print for the user: workers that join,
// are rejected or leave, and how each process ended. It is for diagnosis only: no state of the run depends on it.
const ProcessLogFile = "process.log"

const (
	processLogMost = 256 << 10 // maximum bytes of the file: a longer file loses its first half
	lineMost       = 2 << 10   // maximum bytes of a line: a truncated line ends with the constant cut
	cut            = "… (cut)"
	stamp          = "2006-01-02T15:04:05.000Z07:00"
)

// Line is one line of the process log.
type Line struct {
	At   int64  `cbor:"0,keyasint"` // Unix nanoseconds, with millisecond resolution; 0 if unknown
	Text string `cbor:"1,keyasint"`
	Late bool   `cbor:"2,keyasint,omitempty"` // the time is At or earlier: the file has no times
}

// AppendProcessLog appends the lines of a text to the process log, with the time now. Several processes may append at
// once; lines that one appends while another truncates a file that is too long may be lost.
func AppendProcessLog(dir, text string, now time.Time) error {
	path := filepath.Join(dir, ProcessLogFile)
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
	if err = errors.Join(err, failed, f.Close()); err != nil || stat.Size() <= processLogMost {
		return err
	}
	rest, err := tailOf(path, processLogMost/2)
	if err != nil {
		return err
	}
	rest = rest[:bytes.LastIndexByte(rest, '\n')+1]         // another process may not have finished the last line
	shorter, err := os.CreateTemp(dir, ProcessLogFile+"~*") // several processes may do this at once
	if err != nil {
		return err
	}
	_, err = shorter.Write(rest)
	if err = errors.Join(err, shorter.Close()); err == nil {
		err = os.Rename(shorter.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(shorter.Name()))
	}
	return err
}

// printable returns a line in a form that is safe to print on a terminal.
func printable(line string) string {
	end := ""
	if len(line) > lineMost {
		line, end = line[:lineMost-len(cut)], cut
	}
	line = strings.ToValidUTF8(line, "")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, line)) + end
}

// tailOf returns at most the last most bytes of a file, starting at the beginning of a line.
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
