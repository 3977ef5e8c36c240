package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"brood/models/usererr"
	"brood/runtime/checkpoint"
	"brood/runtime/event"
	"brood/runtime/session"
	"brood/runtime/verify"
	"brood/runtime/worker"
)

// Verified is the result of recomputing a log.
type Verified struct {
	verify.Result
	From   uint64             // the round after which the log begins, see [event.Beginning]; 0: it has all records
	Open   bool               // the log has no end of the run: it is still running, was killed, or its log was truncated
	Alerts []string           // recorded alerts about missing or varying results of the objective
	Torn   *session.Recovered // bytes after the last complete frame; nil for none
	// Checkpoints counts those whose files match the digests in the log, Removed those whose files a run has removed or
	// never wrote.
	Checkpoints, Removed int
	// Signed counts saved files with a valid signature; Signers are the keys, as [event.Signature.Node], in the order of
	// the log
	Signed  int
	Signers [][32]byte
}

// Verify recomputes the whole log of dir and compares every commit. A log whose older records were removed is executed
// from the checkpoint at its beginning. It also compares the files of all checkpoints with
// their digests.
func Verify(ctx context.Context, dir string, threads int, progress func(event.Commit)) (Verified, error) {
	return (*Own)(nil).Verify(ctx, dir, threads, progress)
}

// Verify is [Verify] for a session of this graph, objective or program.
func (o *Own) Verify(ctx context.Context, dir string, threads int, progress func(event.Commit)) (Verified, error) {
	return o.VerifyWithin(ctx, dir, threads, 0, progress)
}

// VerifyWithin is [Own.Verify]; with a share above 0 it compares saved parameters in place of hashes, and returns a
// [verify.DistanceError] if the error of one of them, as a share of its distance from the start of the run, is above
// it; see [verify.Tolerance]. Points and evaluations are not compared then, and the program may compute with another
// library or device than the session. It returns an error for a session without a program of the user.
func (o *Own) VerifyWithin(
	ctx context.Context, dir string, threads int, share float64, progress func(event.Commit),
) (out Verified, err error) {
	h, err := read(dir, 0)
	if err != nil {
		return out, err
	}
	out.Torn = h.torn
	if b := h.config.Begins; b != nil {
		out.From = b.Round
	}
	out.Open = !slices.Contains([]event.Phase{event.Finished, event.Stopped, event.Failed}, h.phase)
	var tolerance *verify.Tolerance
	var store worker.Store = &checkpoint.Files{Dir: dir}
	if share > 0 {
		if h.config.Program == "" && h.config.Objective == "" {
			return out, usererr.Errorf("within %g: the kernels of brood give the same bits everywhere: omit --within", share)
		}
		capture := &verify.Capture{Store: store}
		saved := slices.DeleteFunc(slices.Clone(h.cps), func(cp event.Checkpoint) bool { return intact(dir, &cp) != nil })
		if len(saved) == 0 {
			return out, errors.New("the session has no saved state to compare with")
		}
		tolerance, store = &verify.Tolerance{MaxError: share, Store: capture, Saved: saved}, capture
		if o != nil {
			relaxed := *o
			relaxed.anyKernels = true
			o = &relaxed
		}
	}
	j, err := o.FromSession(dir, h.config)
	if err != nil {
		return out, err
	}
	w, err := j.singleWorker(store, threads, true)
	if err != nil {
		return out, err
	}
	defer w.Free()
	config := verify.Config{
		Worker:   w,
		Measured: tolerance == nil,
		Within:   tolerance,
		Limit:    h.config.Limit,
		Tests:    h.config.Test,
		Held:     len(j.validation()),
		Progress: progress,
	}
	out.Result, err = recomputeLog(ctx, config, dir, 0)
	if err == nil {
		err = out.checkpoints(dir, h)
	}
	for _, a := range h.objectiveAlerts {
		out.Alerts = append(out.Alerts, fmt.Sprintf("round %d: %s", a.Round, a.Text))
	}
	return out, h.explainMismatch(err)
}

// checkpoints compares the files of all checkpoints with their digests in the log. A damaged checkpoint is an error; a
// missing one is not, since a run removes older checkpoints.
func (out *Verified) checkpoints(dir string, h history) error {
	kept, err := session.Checkpoints(dir)
	if err != nil {
		return err
	}
	for _, cp := range h.cps {
		if err := out.signatures(&cp); err != nil {
			return err
		}
	}
	out.Removed = h.checkpoints
	newer := map[string]bool{} // files of newer checkpoints: a resumed session may have overwritten a file
	for _, cp := range slices.Backward(h.cps) {
		again := slices.ContainsFunc(cp.Files, func(f event.File) bool { return newer[f.Path] })
		for _, f := range cp.Files {
			newer[f.Path] = true
		}
		if again {
			continue
		}
		err := intact(dir, &cp)
		switch {
		case err == nil:
			out.Checkpoints++
			out.Removed--
		case slices.Contains(kept, cp.Round):
			return fmt.Errorf("%w; all %d rounds are correct, and an older checkpoint replaces this one", err, out.Rounds)
		}
	}
	return nil
}

// signatures checks the signatures of a checkpoint.
func (out *Verified) signatures(cp *event.Checkpoint) error {
	if len(cp.Signatures) > 0 && len(cp.Signatures) != len(cp.Files) {
		return fmt.Errorf("the checkpoint of round %d has %d signatures for %d files",
			cp.Round, len(cp.Signatures), len(cp.Files))
	}
	for i, s := range cp.Signatures {
		if s == (event.Signature{}) {
			continue // of the coordinator's process
		}
		if !s.Signs(event.Statement(cp.Round, cp.Epoch, cp.Hash, cp.Files[i])) {
			return fmt.Errorf("the signature of %s, of the checkpoint of round %d, is not valid: the log or the file was "+
				"changed since a worker signed it", cp.Files[i].Path, cp.Round)
		}
		out.Signed++
		if !slices.Contains(out.Signers, s.Node()) {
			out.Signers = append(out.Signers, s.Node())
		}
	}
	return nil
}

// explainMismatch adds the recorded alerts about the objective to a mismatch: they may explain it.
func (h *history) explainMismatch(err error) error {
	var m *verify.MismatchError
	if !errors.As(err, &m) {
		return err
	}
	for _, a := range h.objectiveAlerts {
		switch a.Kind {
		case event.AlertVaries:
			return fmt.Errorf("%w; its program gives different results for the same input, as the session reported at round "+
				"%d, so it cannot be verified exactly: give --within 0.01 to compare saved parameters", err, a.Round)
		case event.AlertMissing:
			err = fmt.Errorf("%w; results of the objective were missing from round %d on, and another execution may miss "+
				"other ones", err, a.Round)
		}
	}
	return err
}
