package session

import (
	"errors"
	"fmt"
	"io/fs"
)

// ErrClosed is returned by the methods of a closed Session or Reader.
var ErrClosed = errors.New("session: already closed")

// ErrShortened is returned by a Reader that did not read records before they were removed from the log.
var ErrShortened = errors.New("session: the next records were removed from the log meanwhile: open the session again")

// DiskError reports a full or failing disk. The run should pause. Missing is the number of essential records of the
// call that are not in the log. They are always the last ones, and can be appended again when there is space. If
// Missing is 0, all records are in the log: in the reserved space, or not yet on stable storage.
type DiskError struct {
	Op      string // open, write, sync
	Path    string
	Missing int
	Err     error
}

func (e *DiskError) Error() string {
	return fmt.Sprintf("session: %s %s: %v: free some space, or find out why the file cannot be written, then "+
		"resume the run", e.Op, e.Path, e.Err)
}

func (e *DiskError) Unwrap() error { return e.Err }

// onDisk wraps err in a *DiskError; it returns nil if err is nil.
func onDisk(op, path string, missing int, err error) error {
	if err == nil {
		return nil
	}
	var at *fs.PathError
	if errors.As(err, &at) && at.Path == path {
		err = at.Err // the text of DiskError has the path already
	}
	return &DiskError{Op: op, Path: path, Missing: missing, Err: err}
}

// CorruptError reports damage in the middle of a log. Records before it can be read.
type CorruptError struct {
	Segment string // file name
	Offset  int64  // of the damaged frame, bytes into the segment
	Frame   int    // frames of the segment before it
	Reason  string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("session: %s is damaged at byte %d (frame %d): %s: restore that file from a copy; brood log shows "+
		"the records before the damage",
		e.Segment, e.Offset, e.Frame, e.Reason)
}

// VersionError reports a log of another format version.
type VersionError struct{ Found, Known int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("session: the log has format version %d, but this brood reads version %d: use the brood version "+
		"that wrote it", e.Found, e.Known)
}

// LockedError reports that another process writes the session.
type LockedError struct {
	Dir string
	PID int // of that process; 0 if unknown
}

func (e *LockedError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("session: %s is being written by %s: attach to it, or stop it first", e.Dir, who)
}

// Recovered describes the incomplete tail of a log whose writer was killed. The next writer truncates it.
type Recovered struct {
	Segment string `json:"segment"` // file name
	Offset  int64  `json:"offset"`  // end of the last complete frame
	Lost    int64  `json:"bytes"`   // number of bytes after it
}

func (r Recovered) String() string {
	return fmt.Sprintf("%s ended in the middle of a frame: %d bytes from byte %d on were cut off",
		r.Segment, r.Lost, r.Offset)
}
