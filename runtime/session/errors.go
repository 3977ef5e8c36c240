package session

import (
	"errors"
	"fmt"
	"io/fs"
)

// ErrClosed is the answer of a closed Session or Reader.
var ErrClosed = errors.New("session: already closed")

// DiskError says that the disk is full or fails: the run should pause. Missing counts the essential records of the call
// that are not in the log: always the last ones, which may be appended again once there is space. It may be 0: the
// records are in the log, in space that was reserved for this moment or not yet on stable storage.
type DiskError struct {
	Op      string // open, write, sync
	Path    string
	Missing int
	Err     error
}

func (e *DiskError) Error() string {
	return fmt.Sprintf("session: %s %s: %v: make room there, or see why it cannot be written, then resume the run", e.Op, e.Path, e.Err)
}

func (e *DiskError) Unwrap() error { return e.Err }

// onDisk is nil for nil, else a *DiskError.
func onDisk(op, path string, missing int, err error) error {
	if err == nil {
		return nil
	}
	var at *fs.PathError
	if errors.As(err, &at) && at.Path == path {
		err = at.Err // the sentence names the path already
	}
	return &DiskError{Op: op, Path: path, Missing: missing, Err: err}
}

// CorruptError names damage in the middle of a log. Records before it can be read.
type CorruptError struct {
	Segment string // file name
	Offset  int64  // of the damaged frame, bytes into the segment
	Frame   int    // frames of the segment before it
	Reason  string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("session: %s is damaged at byte %d (frame %d): %s: put back a copy of that file; brood log tells what stands before it",
		e.Segment, e.Offset, e.Frame, e.Reason)
}

// VersionError refuses a log of another format version.
type VersionError struct{ Found, Known int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("session: the log has format version %d and this brood reads version %d: use the brood that wrote it", e.Found, e.Known)
}

// LockedError says who writes the session.
type LockedError struct {
	Dir string
	PID int // 0 when it could not be read
}

func (e *LockedError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("session: %s is being written by %s: attach to it, or stop it first", e.Dir, who)
}

// Recovered says what a writer cut off: the torn tail of a log whose writer died.
type Recovered struct {
	Segment string `json:"segment"` // file name
	Offset  int64  `json:"offset"`  // where the whole frames end
	Lost    int64  `json:"bytes"`   // behind them
}

func (r Recovered) String() string {
	return fmt.Sprintf("%s ended in the middle of a frame: %d bytes from byte %d on were cut off", r.Segment, r.Lost, r.Offset)
}
