package cli

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"

	"brood/runtime/archive"

	"github.com/fxamacker/cbor/v2"
)

// railRun is the CBOR message for a run in the output of `brood sessions --rail`: what the list of runs shows.
type railRun struct {
	Version int
	Name    string
	Bytes   int64 // of its log
	Written int64 // last write to its log, in Unix nanoseconds
	Running bool
	Summary archive.Summary // without its directory, and without settings at their default, which are most
}

const (
	railVersion = 2
	maxRailRuns = 10_000   // accepted from another machine
	maxRailSize = 16 << 20 // accepted from another machine, in bytes
)

// railOf returns the message that describes a run of this machine.
func railOf(e archive.Entry, s archive.Summary) railRun {
	s.Dir = ""
	s.Settings = slices.DeleteFunc(slices.Clone(s.Settings), func(x archive.Setting) bool { return x.Default })
	return railRun{railVersion, e.Name, e.Bytes, e.Written.UnixNano(), e.Running, s}
}

// writeRail writes the runs of this machine. It omits runs in folders, which belong to sweeps
// and studies.
func writeRail(w io.Writer, lib *archive.Library, home string) error {
	entries, err := lib.Scan(home)
	if err != nil {
		return err
	}
	out := cbor.NewEncoder(exact(w))
	for _, e := range entries {
		if e.Folder != "" {
			continue
		}
		if err := out.Encode(railOf(e, lib.Summary(e))); err != nil {
			return err
		}
	}
	return lib.Save()
}

// isRailName reports whether the name of a session is accepted from another machine. The pattern does not count, since
// one that does takes long to compile.
func isRailName(name string) bool { return len(name) <= 128 && railName.MatchString(name) }

var railName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+=@-]*$`)

// readRail reads the output of [writeRail] from another machine, which is untrusted: it skips runs with invalid names
// or sizes, and fails on too much data, on text that is not CBOR and on another version. host becomes part of the
// directory names. sums is keyed by these names.
func readRail(r io.Reader, host string) (entries []archive.Entry, sums map[string]archive.Summary, err error) {
	limited := &io.LimitedReader{R: r, N: maxRailSize}
	in := cbor.NewDecoder(limited)
	sums = map[string]archive.Summary{}
	for {
		var x railRun
		switch err := in.Decode(&x); {
		case limited.N == 0:
			return nil, nil, fmt.Errorf("its list of runs is larger than %d MB: prune some runs there", maxRailSize>>20)
		case errors.Is(err, io.EOF):
			archive.SortEntries(entries)
			return entries, sums, nil
		case err != nil:
			return nil, nil, fmt.Errorf("the answer is not a list of runs: %w", err)
		case x.Version != railVersion:
			return nil, nil, errors.New("its brood uses another format for runs: use one version on both machines")
		case len(entries) == maxRailRuns:
			return nil, nil, fmt.Errorf("it has more than %d runs: prune some there", maxRailRuns)
		}
		s := x.Summary
		if !isRailName(x.Name) || x.Bytes < 0 || s.Size < 0 || s.Members < 0 || len(s.Curve) > archive.CurvePoints ||
			s.About.Check() != nil {
			continue
		}
		e := archive.Entry{
			Name:    x.Name,
			Dir:     sshScheme + host + "/" + x.Name,
			Host:    host,
			Bytes:   x.Bytes,
			Written: time.Unix(0, x.Written),
			Running: x.Running,
		}
		s.Name, s.Dir, s.Running = e.Name, e.Dir, e.Running
		entries, sums[e.Dir] = append(entries, e), s
	}
}
