package host

import (
	"cmp"
	"encoding/hex"
	"maps"
	"path/filepath"
	"slices"

	"github.com/fxamacker/cbor/v2"
	"github.com/zeebo/blake3"

	"brood/models"
	"brood/models/data"
	"brood/models/usererr"
	"brood/runtime/event"
	"brood/runtime/option"
	"brood/runtime/session"
)

// beginning is what the first records of a session say about the command that began it.
type beginning struct {
	config event.Config
	first  *event.Plan // nil if the session begins with a checkpoint
}

// readBeginning reads the log of the session in dir up to its first plan or checkpoint. It returns nil if there is
// none: dir holds no session, or its run ended while it waited for workers.
func readBeginning(dir string) (*beginning, error) {
	if !session.Exists(dir) {
		return nil, nil
	}
	var b beginning
	for rec, err := range session.Records(dir) {
		switch {
		case err != nil:
			return nil, err
		case rec.Config != nil:
			b.config = *rec.Config
		case rec.Plan != nil, rec.Checkpoint != nil:
			b.first = rec.Plan
			return &b, nil
		}
	}
	return nil, nil
}

// Begun reports whether dir holds a session with a plan or a checkpoint, which can be resumed.
func Begun(dir string) (bool, error) {
	b, err := readBeginning(dir)
	return b != nil, err
}

// commandDigest identifies the settings of a new run: equal commands have equal digests. It covers everything that a
// resumed session keeps, and the content of a model file; the options that may change when a session is resumed, such
// as its limit and its workers, are left out.
func commandDigest(o Options) (string, error) {
	for _, x := range option.With(option.Again) {
		x.Copy(&o, Options{})
	}
	o.Limit, o.Wait, o.Unattended, o.By = event.Limit{}, 0, false, ""
	if data.IsPath(o.Data) {
		path, err := filepath.Abs(o.Data)
		if err != nil {
			return "", err
		}
		o.Data = path
	}
	var model []byte
	if o.Model != "" {
		var err error
		if model, err = models.Source(o.Model); err != nil {
			return "", err
		}
	}
	mode, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		return "", err
	}
	p, err := mode.Marshal([]any{o, model})
	if err != nil {
		return "", err
	}
	sum := blake3.Sum256(p)
	return "blake3:" + hex.EncodeToString(sum[:]), nil
}

// Continues reports whether dir holds a session that a command with these options continues: false if there is none
// that has begun. It returns an error if a command with other settings began the session.
func Continues(dir string, o Options) (bool, error) {
	b, err := readBeginning(dir)
	if b == nil || err != nil {
		return false, err
	}
	digest, err := commandDigest(o)
	if err != nil || digest == b.config.Command {
		return true, err
	}
	return true, b.difference(dir, o)
}

// difference returns the error for a command whose settings differ. It names the algorithm or a knob if that differs.
func (b *beginning) difference(dir string, o Options) error {
	what, was, now := "", "", ""
	begun, repeated := map[string]string{}, map[string]string{}
	for _, e := range initialEdits(b.first) {
		begun[e.Knob] = cmp.Or(e.Typed, e.Expr)
	}
	for _, s := range slices.Concat(o.Base, o.Set) {
		repeated[s.Knob] = s.Expr
	}
	for _, knob := range slices.Sorted(maps.Keys(begun)) { // only to name a difference
		if what == "" && repeated[knob] != "" && repeated[knob] != begun[knob] {
			what, was, now = knob, begun[knob], repeated[knob]
		}
	}
	if first := b.first; first != nil && o.Algorithm != "" && o.Algorithm != first.Algorithm {
		what, was, now = "algorithm", first.Algorithm, o.Algorithm
	}
	if what == "" {
		return usererr.Errorf("session %s was begun by a command with other settings: give another --session, or resume "+
			"it with --resume", dir)
	}
	return usererr.Errorf("session %s was begun with %s = %s, and this command has %s: give another --session, or "+
		"resume it with --resume", dir, what, was, now)
}

// initialEdits returns the edits of a first plan that the command made; nil for no plan.
func initialEdits(first *event.Plan) (out []event.Edit) {
	if first == nil {
		return nil
	}
	for _, e := range first.Timeline {
		if e.Algorithm == first.Algorithm && (e.By == "preset" || e.By == "flag") {
			out = append(out, e)
		}
	}
	return out
}
