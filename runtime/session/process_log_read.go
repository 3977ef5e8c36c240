package session

import (
	"cmp"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ProcessLog returns the process log of a session, oldest line first, followed by the standard error of the last
// process without a terminal ([HostLog]) without the lines that are in the process log already.
func ProcessLog(dir string) ([]Line, error) {
	lines, err := logged(dir)
	if err != nil {
		return nil, err
	}
	late, err := unlogged(dir, lines)
	return append(lines, late...), err
}

// logged returns the lines of ProcessLogFile.
func logged(dir string) (lines []Line, err error) {
	p, err := tailOf(filepath.Join(dir, ProcessLogFile), processLogMost)
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
	return lines, nil
}

// sameLine is the maximum time between the two copies of the last line of a process, in ProcessLogFile and in HostLog.
const sameLine = time.Minute

// unlogged returns the lines of HostLog that are not among the recent lines of ProcessLogFile, which logged contains.
// The last line of a process, the reason why it ended, is in both files, but without the prefix "brood: " in
// ProcessLogFile.
func unlogged(dir string, logged []Line) (lines []Line, err error) {
	path := filepath.Join(dir, HostLog)
	p, err := tailOf(path, processLogMost)
	stat, failed := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err = cmp.Or(err, failed); err != nil {
		return nil, err
	}
	at := stat.ModTime().UnixNano()
	recent := map[string]bool{}
	for _, l := range slices.Backward(logged) {
		if l.At < at-int64(sameLine) {
			break
		}
		recent[l.Text] = true
	}
	for text := range strings.SplitSeq(string(p), "\n") {
		if text = printable(text); text != "" && !recent[strings.TrimPrefix(text, "brood: ")] {
			lines = append(lines, Line{At: at, Text: text, Late: true})
		}
	}
	return lines, nil
}

// ProcessLog returns the process log of the session, see [ProcessLog].
func (r *Reader) ProcessLog() ([]Line, error) { return ProcessLog(r.dir) }

// KeepHostLog appends the standard error of the last process without a terminal to the process log, since the next such
// process overwrites its file. It does nothing if the session has no such file.
func KeepHostLog(dir string) error {
	if !holdsLog(dir) {
		return nil
	}
	lines, err := logged(dir)
	if err != nil {
		return err
	}
	late, err := unlogged(dir, lines)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, l := range late {
		text.WriteString(l.Text + "\n")
	}
	if len(late) > 0 {
		if err := AppendProcessLog(dir, text.String(), time.Unix(0, late[0].At)); err != nil {
			return err
		}
	}
	if err := os.Remove(filepath.Join(dir, HostLog)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// KnownLines identifies the part of the process log that a client already has: its first lines, of those with times.
type KnownLines struct {
	Lines  int    `cbor:"0,keyasint"`
	Digest uint64 `cbor:"1,keyasint"` // of them, FNV-1a
}

// KnownLinesOf returns the KnownLines of a client that has the given lines.
func KnownLinesOf(lines []Line) KnownLines {
	n := slices.IndexFunc(lines, func(l Line) bool { return l.Late })
	if n < 0 {
		n = len(lines)
	}
	return KnownLines{n, digest(lines[:n])}
}

// After returns how many of the lines the client already has: all of h.Lines, or 0 if the file was truncated since.
func (h KnownLines) After(lines []Line) int {
	if h.Lines <= 0 || h.Lines > len(lines) || digest(lines[:h.Lines]) != h.Digest {
		return 0
	}
	return h.Lines
}

func digest(lines []Line) uint64 {
	h := fnv.New64a()
	var p []byte
	for _, l := range lines {
		p = append(binary.LittleEndian.AppendUint64(p[:0], uint64(l.At)), l.Text...)
		_, _ = h.Write(append(p, '\n')) // writing to a hash does not fail
	}
	return h.Sum64()
}
