package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"brood/runtime/archive"

	"github.com/fxamacker/cbor/v2"

	"brood/runtime/view"
)

// railCurves is the CBOR message with the curves of a run that `brood sessions --curves` writes.
type railCurves struct {
	Version int             `cbor:"0,keyasint"`
	Fold    int             `cbor:"1,keyasint"` // view.Fold of the writer
	Run     cbor.RawMessage `cbor:"2,keyasint"`
}

// maxCurvesBytes is the largest accepted message with the curves of a run; typical messages have a few hundred
// kilobytes.
const maxCurvesBytes = 8 << 20

// writeCurves writes the curves of a session of this machine. name must be a session directly in home.
func writeCurves(w io.Writer, lib *archive.Library, home, name string) error {
	if !isRailName(name) {
		return usage("--curves %q: give the name of a session", name)
	}
	entries, err := lib.Scan(home)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name != name || e.Folder != "" || filepath.Dir(e.Dir) != filepath.Clean(home) {
			continue
		}
		run, err := lib.Run(e)
		if err != nil {
			return err
		}
		text, err := cbor.Marshal(run)
		if err != nil {
			return err
		}
		return cbor.NewEncoder(exact(w)).Encode(railCurves{railVersion, view.Fold, text})
	}
	return usage("--curves %s: there is no such session in %s", name, home)
}

// readCurves reads the message of [writeCurves] from another machine. It fails if the message is too large, damaged or
// of another version. The returned run has the name and directory of e.
func readCurves(r io.Reader, e archive.Entry) (*archive.Run, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxCurvesBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the curves of %s: %w", e.Name, err)
	}
	var curves railCurves
	switch {
	case len(text) > maxCurvesBytes:
		return nil, fmt.Errorf("the curves of %s take more than %d MB: enter opens it there", e.Name, maxCurvesBytes>>20)
	case len(text) == 0:
		return nil, errors.New("empty answer")
	case cbor.Unmarshal(text, &curves) != nil:
		return nil, fmt.Errorf("the answer has no curves of %s: %.40q", e.Name, text)
	case curves.Version != railVersion || curves.Fold != view.Fold:
		return nil, errors.New("its brood uses another format for curves: use one version on both machines")
	}
	run := &archive.Run{}
	if err := cbor.Unmarshal(curves.Run, run); err != nil {
		return nil, fmt.Errorf("the curves of %s are damaged: %w", e.Name, err)
	}
	run.Name, run.Dir = e.Name, e.Dir
	return run, nil
}

// curves requests the curves of a run from its machine. For a run with a URL it returns those of the last answer. It
// blocks for at most askTimeout.
func (h *hosts) curves(e archive.Entry) (*archive.Run, error) {
	l, name, ok := h.line(e.Dir)
	switch {
	case ok && l.URL != "":
		return h.lastCurves(l)
	case !ok || name == "":
		return nil, fmt.Errorf("%s is not a run", e.Name)
	}
	ctx, cancel := context.WithTimeout(h.ctx, askTimeout)
	defer cancel()
	var run *archive.Run
	err := l.runRemote(ctx, func(out io.Reader) (err error) {
		run, err = readCurves(out, e)
		return err
	}, "sessions", "--curves", name)
	if err != nil {
		return nil, fmt.Errorf("request the curves of %s from %s: %w", e.Name, l.Name, err)
	}
	return run, nil
}
