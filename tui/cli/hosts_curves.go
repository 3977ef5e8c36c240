package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/fxamacker/cbor/v2"

	"brood/runtime/compare"
	"brood/runtime/library"
	"brood/runtime/view"
)

// railCurves is what one brood tells another of the curves of a run.
type railCurves struct {
	Version int             `cbor:"0,keyasint"`
	Fold    int             `cbor:"1,keyasint"` // see view.Fold
	Run     cbor.RawMessage `cbor:"2,keyasint"`
}

// curvesBytes is the most that is taken of another machine for the curves of one run; such runs take some hundred
// kilobytes.
const curvesBytes = 8 << 20

// writeCurves tells of the curves of a run of this machine.
func writeCurves(w io.Writer, lib *library.Library, home, name string) error {
	if !railName.MatchString(name) {
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

// readCurves takes what another machine tells of a run.
func readCurves(r io.Reader, e library.Entry) (*compare.Run, error) {
	text, err := io.ReadAll(io.LimitReader(r, curvesBytes+1))
	if err != nil {
		return nil, fmt.Errorf("the curves of %s cannot be read: %w", e.Name, err)
	}
	var told railCurves
	switch {
	case len(text) > curvesBytes:
		return nil, fmt.Errorf("the curves of %s take more than %d MB: enter opens it there", e.Name, curvesBytes>>20)
	case len(text) == 0:
		return nil, errors.New("it tells nothing")
	case cbor.Unmarshal(text, &told) != nil:
		return nil, fmt.Errorf("it does not tell of the curves of %s: %.40q", e.Name, text)
	case told.Version != railVersion || told.Fold != view.Fold:
		return nil, errors.New("its brood tells of curves in another way: bring both to one version")
	}
	run := &compare.Run{}
	if err := cbor.Unmarshal(told.Run, run); err != nil {
		return nil, fmt.Errorf("what it tells of %s is damaged: %w", e.Name, err)
	}
	run.Name, run.Dir = e.Name, e.Dir
	return run, nil
}

// curves asks a machine for those of one of its runs; of a run with a URL they came when it was looked at.
func (h *hosts) curves(e library.Entry) (*compare.Run, error) {
	l, name, ok := h.line(e.Dir)
	switch {
	case ok && l.URL != "":
		return h.seen(l)
	case !ok || name == "":
		return nil, fmt.Errorf("%s is no run", e.Name)
	}
	ctx, cancel := context.WithTimeout(h.ctx, askFor)
	defer cancel()
	var run *compare.Run
	err := l.runRemote(ctx, func(out io.Reader) (err error) {
		run, err = readCurves(out, e)
		return err
	}, "sessions", "--curves", name)
	if err != nil {
		return nil, fmt.Errorf("%s does not tell of %s: %w", l.Name, e.Name, err)
	}
	return run, nil
}
