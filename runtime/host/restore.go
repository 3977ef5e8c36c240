package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	goruntime "runtime"
	"slices"

	"brood/models/usererr"
	"brood/optim"
	"brood/optim/catalog"
	"brood/runtime/checkpoint"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/session"
	"brood/runtime/timeline"
	"brood/runtime/verify"
	"brood/runtime/worker"
)

// history is the result of one pass over a log, which executes no rounds.
type history struct {
	config          event.Config
	goal            coordinator.Goal
	epoch           uint32
	last            *event.Commit
	files           []uint64           // rounds whose checkpoint files still exist; the log may name thousands more
	cps             []event.Checkpoint // of files, up to the requested round, not undone by later plans, oldest first
	edits           []event.Edit       // edits of the newest plan and after it
	hosts           int                // workers of the newest plan
	lastGood        coordinator.Sane
	asked           event.Pending // commands accepted but not yet applied
	count           uint64        // records read
	alg             string        // algorithm of the newest plan before the requested round
	beyond          uint32        // epoch of the newest plan that continues from the requested round; 0 means none
	torn            *session.Recovered
	phase           event.Phase   // newest
	objectiveAlerts []event.Alert // first alert of each kind about an objective: missing or varying results
	checkpoints     int           // checkpoint records in the log
	skipped         []error       // why newer checkpoints are skipped, see nearest
	settled         uint64        // index of the record of the last plan that rolled back to before the requested round
}

// read reads the log of the session in dir. at is the requested round, which bounds the checkpoints to consider; 0
// means the last commit.
func read(dir string, at uint64) (h history, err error) {
	r, err := session.OpenReader(dir)
	if err != nil {
		return h, err
	}
	defer r.Close()
	h.files, _ = session.Checkpoints(dir) // on an error the session is recomputed from its first round
	first := true
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return h, err
		}
		if first && rec.Config == nil {
			return h, fmt.Errorf("%s does not begin with a configuration: it is no session of brood", dir)
		}
		first = false
		h.take(rec, at)
		h.count++
	}
	h.torn = r.Torn()
	if first {
		return h, fmt.Errorf("%s contains no records: the run ended before its first record was written", dir)
	}
	return h, nil
}

func (h *history) take(rec event.Record, at uint64) {
	h.asked.Take(rec)
	h.lastGood.Take(rec)
	h.goal.Take(rec)
	switch {
	case rec.Config != nil:
		h.config = *rec.Config
	case rec.Plan != nil:
		h.epoch = max(h.epoch, rec.Plan.Epoch)
		if at == 0 || rec.Plan.At < at {
			h.alg = rec.Plan.Algorithm
		} else if rec.Plan.At == at {
			h.beyond = rec.Plan.Epoch
		}
		h.edits, h.hosts = rec.Plan.Timeline, len(rec.Plan.New.Workers())
		h.cps = slices.DeleteFunc(h.cps, func(cp event.Checkpoint) bool { return cp.Round > rec.Plan.At })
		if at > rec.Plan.At && h.last != nil && h.last.To > rec.Plan.At {
			h.settled = h.count
		}
	case rec.Edit != nil:
		h.edits = append(h.edits[:len(h.edits):len(h.edits)], *rec.Edit)
	case rec.Commit != nil:
		h.last = rec.Commit
	case rec.Checkpoint != nil:
		h.checkpoints++
		// A checkpoint saved after such a plan may have the state of another algorithm or population.
		round, behind := rec.Checkpoint.Round, h.beyond > 0 && rec.Checkpoint.Epoch == h.beyond
		if (at == 0 || round <= at) && !behind && slices.Contains(h.files, round) {
			h.cps = append(h.cps, *rec.Checkpoint)
		}
	case rec.Alert != nil && (rec.Alert.Kind == event.AlertMissing || rec.Alert.Kind == event.AlertVaries):
		if !slices.ContainsFunc(h.objectiveAlerts, func(a event.Alert) bool { return a.Kind == rec.Alert.Kind }) {
			h.objectiveAlerts = append(h.objectiveAlerts, *rec.Alert)
		}
	case rec.State != nil:
		h.phase = rec.State.Phase
	}
}

// saved returns the checkpoint to recompute from; nil means that the run starts from its seed.
func (h *history) saved() *event.Checkpoint {
	if n := len(h.cps); n > 0 {
		return &h.cps[n-1]
	}
	return nil
}

// nearest removes the newest checkpoints from h while they are missing or damaged, and appends the causes to skipped.
// The rounds after the remaining checkpoint are recomputed.
func (h *history) nearest(dir string) {
	for len(h.cps) > 0 {
		err := intact(dir, h.saved())
		if err == nil {
			return
		}
		h.skipped = append(h.skipped, err)
		h.cps = h.cps[:len(h.cps)-1]
	}
}

// Checkpointed returns at if it is not 0. Otherwise it returns the round of the newest intact checkpoint, or of the
// last commit if there is none. With this fixed round a caller does not chase a run that is still training.
func Checkpointed(dir string, at uint64) (uint64, error) {
	if at > 0 {
		return at, nil
	}
	h, err := read(dir, 0)
	if err != nil {
		return 0, err
	}
	if h.nearest(dir); h.saved() == nil {
		return h.end(), nil
	}
	return h.saved().Round, nil
}

// intact returns an error if a file of the checkpoint is missing or does not match its digest in the log.
func intact(dir string, cp *event.Checkpoint) error {
	_, err := (&checkpoint.Files{Dir: dir}).Load(*cp, func(string) bool { return false })
	return err
}

// Restored is a recorded session that is ready to be resumed or forked.
type Restored struct {
	Job        *Job
	Checkpoint event.Checkpoint // of exactly the requested round
	Executed   uint64           // rounds that were recomputed to reach it
	Skipped    []error          // why newer checkpoints were skipped: missing or damaged
	Epoch      uint32
	Late       []event.Edit  // acknowledged edits that are not yet in effect
	Asked      event.Pending // accepted commands that have no round yet
	Limit      event.Limit
	Hosts      int // workers of the newest plan

	met      string // how the run met the target of its limit; "" if it did not
	finished bool   // the log records that the run finished
	branch   bool   // a fork, which starts a new log
}

// Settable returns an error if the knobs cannot be set on the session in dir after round at (0: the last commit). It
// executes no rounds.
func Settable(dir string, at uint64, set []event.Setting) error {
	if len(set) == 0 {
		return nil
	}
	h, err := read(dir, at)
	if err != nil {
		return err
	}
	here := timeline.Position{Round: at}
	if l := h.last; l != nil && (at == 0 || at == l.To) {
		here = timeline.Position{Round: l.To, Epochs: l.Progress.Epochs, Steps: l.Progress.Steps}
	} else if cp := h.saved(); l == nil && cp != nil {
		here = timeline.Position{Round: cp.Round, Epochs: cp.Progress.Epochs, Steps: cp.Progress.Steps}
		h.alg = cmp.Or(h.alg, cp.Algorithm)
	}
	if h.alg == "" { // nothing to resume from: Restore returns the error
		return nil
	}
	alg, err := catalog.Lookup(h.alg)
	if err != nil {
		return err
	}
	_, err = edits(alg, nil, set, "", optim.Shape{}, here)
	return err
}

// edits converts settings to edits that take effect at a position, after the edits in before. It returns the error of
// the first invalid setting. shape is the shape of the run, or zero if it is not yet known.
func edits(
	alg *optim.Algorithm, before []event.Edit, set []event.Setting, by string, shape optim.Shape, from timeline.Position,
) (out []event.Edit, err error) {
	for _, s := range set {
		if _, ok := alg.Knob(s.Knob); !ok {
			return nil, timeline.UnknownKnob(alg, s.Knob)
		}
		out = append(out, event.Edit{Algorithm: alg.Name, Knob: s.Knob, Expr: s.Expr, By: by})
	}
	return out, timeline.AcceptAll(alg, before, out, shape, from)
}

// Restore recovers the state of the session in dir after round at (0: the last commit) and saves it through store, or
// into dir if store is nil. Rounds since the nearest checkpoint are recomputed and compared with the recorded commits;
// progress is called after each of them and may be nil. threads 0 means one per processor.
func Restore(
	ctx context.Context, dir string, at uint64, store worker.Store, threads int, progress func(event.Commit),
) (*Restored, error) {
	return (*Own)(nil).Restore(ctx, dir, at, store, threads, progress)
}

// Restore is [Restore] for a session of this graph or objective.
func (o *Own) Restore(
	ctx context.Context, dir string, at uint64, store worker.Store, threads int, progress func(event.Commit),
) (*Restored, error) {
	p, err := o.Past(dir, at)
	if err != nil {
		return nil, err
	}
	j, h := p.Job, &p.h
	out := &Restored{
		Job:      j,
		Skipped:  h.skipped,
		Epoch:    h.epoch,
		Limit:    h.goal.Limit,
		Hosts:    h.hosts,
		finished: h.phase == event.Finished,
	}
	toEnd := at == 0 || at == h.end()
	if cp := h.saved(); store == nil && cp != nil && toEnd && cp.Epoch == h.epoch && cp.Round == h.end() &&
		(h.last == nil || cp.Hash == h.last.Hash) {
		out.Checkpoint = *cp
	} else if err := out.execute(ctx, p, store, threads, progress); err != nil {
		return nil, err
	}
	if toEnd {
		out.Asked, out.met = h.asked, h.goal.Met
		for _, e := range append(h.pendingForkEdits(out.Checkpoint), h.edits...) {
			if e.At >= out.Checkpoint.Round && !slices.ContainsFunc(out.Checkpoint.Timeline, e.Same) {
				out.Late = append(out.Late, e)
			}
		}
	}
	j.Alg, err = j.lookup(out.Checkpoint.Algorithm)
	j.Members = len(out.Checkpoint.Roster.Members)
	return out, err
}

// end returns the newest round: of the last commit, or, before the first commit, of the checkpoint that a fork starts
// with; 0 if there is neither.
func (h *history) end() uint64 {
	switch cp := h.saved(); {
	case h.last != nil:
		return h.last.To
	case cp != nil:
		return cp.Round
	}
	return 0
}

// pendingForkEdits returns the initial edits of a fork that its log does not contain yet, because the fork was killed
// before its first commit.
func (h *history) pendingForkEdits(cp event.Checkpoint) (out []event.Edit) {
	if h.last != nil {
		return nil
	}
	for _, s := range h.config.Set {
		e := event.Edit{
			At:        cp.Round,
			Algorithm: cp.Algorithm,
			Knob:      s.Knob,
			Expr:      timeline.Absolute(s.Expr, cp.Round),
			By:        h.config.By,
		}
		if !slices.ContainsFunc(h.edits, func(x event.Edit) bool {
			return x.At >= e.At && x.Algorithm == e.Algorithm && x.Knob == e.Knob && x.Expr == e.Expr
		}) {
			out = append(out, e)
		}
	}
	return out
}

// execute recomputes the state of p, saves it through store, and sets Executed and Checkpoint.
func (out *Restored) execute(
	ctx context.Context, p *Past, store worker.Store, threads int, progress func(event.Commit),
) error {
	w, rounds, err := p.recompute(ctx, store, threads, progress)
	if err != nil {
		return err
	}
	defer w.Free()
	out.Executed = rounds
	cp, err := w.State(ctx)
	if err != nil {
		return fmt.Errorf("%s up to round %d: %w", p.dir, p.at, err)
	}
	saved, ok := w.Handle(ctx, message.Save{Epoch: cp.Epoch, At: cp.Round}).(message.Saved)
	if !ok || saved.Err != "" {
		return fmt.Errorf("save round %d: %s", cp.Round, saved.Err)
	}
	cp.Files = saved.Files
	out.Checkpoint = cp
	return nil
}

// FromSession rebuilds the job of the session in dir. It returns an error if the model, the data or the kernels are not
// available as they were recorded.
func FromSession(dir string, c event.Config) (*Job, error) { return (*Own)(nil).FromSession(dir, c) }

// FromSession is [FromSession] for a session of this graph or objective.
func (o *Own) FromSession(dir string, c event.Config) (*Job, error) {
	j, err := o.job(dir, c)
	return j, usererr.Recorded(err)
}

// Verified is the result of recomputing a log.
type Verified struct {
	verify.Result
	Open bool               // the log has no end of the run: it is still running, was killed, or its log was truncated
	Told []string           // recorded alerts about missing or varying results of the objective
	Torn *session.Recovered // bytes after the last complete frame; nil for none
	// Checkpoints counts those whose files match the digests in the log, Removed those whose files a run has removed or
	// never wrote.
	Checkpoints, Removed int
}

// Verify recomputes the whole log of dir and compares every commit. It also compares the files of all checkpoints with
// their digests.
func Verify(ctx context.Context, dir string, threads int, progress func(event.Commit)) (Verified, error) {
	return (*Own)(nil).Verify(ctx, dir, threads, progress)
}

// Verify is [Verify] for a session of this graph or objective.
func (o *Own) Verify(
	ctx context.Context, dir string, threads int, progress func(event.Commit),
) (out Verified, err error) {
	h, err := read(dir, 0)
	if err != nil {
		return out, err
	}
	out.Torn = h.torn
	out.Open = !slices.Contains([]event.Phase{event.Finished, event.Stopped, event.Failed}, h.phase)
	j, err := o.FromSession(dir, h.config)
	if err != nil {
		return out, err
	}
	w, err := j.singleWorker(&checkpoint.Files{Dir: dir}, threads, true)
	if err != nil {
		return out, err
	}
	defer w.Free()
	config := verify.Config{
		Worker:   w,
		Measured: true,
		Limit:    h.config.Limit,
		Tests:    h.config.Test,
		Progress: progress,
	}
	out.Result, err = recomputeLog(ctx, config, dir, 0)
	if err == nil {
		err = out.checkpoints(dir, h)
	}
	for _, a := range h.objectiveAlerts {
		out.Told = append(out.Told, fmt.Sprintf("round %d: %s", a.Round, a.Text))
	}
	return out, h.explainMismatch(older(h.config.Kernels, err))
}

// checkpoints compares the files of all checkpoints with their digests in the log. A damaged checkpoint is an error; a
// missing one is not, since a run removes older checkpoints.
func (out *Verified) checkpoints(dir string, h history) error {
	kept, err := session.Checkpoints(dir)
	if err != nil {
		return err
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

// explainMismatch adds the recorded alerts about the objective to a mismatch: they may explain it.
func (h *history) explainMismatch(err error) error {
	var m *verify.MismatchError
	if !errors.As(err, &m) {
		return err
	}
	for _, a := range h.objectiveAlerts {
		switch a.Kind {
		case event.AlertVaries:
			return fmt.Errorf("%w; the objective depends on more than parameters and seed, as the session reported at round "+
				"%d, so it cannot be verified exactly", err, a.Round)
		case event.AlertMissing:
			err = fmt.Errorf("%w; results of the objective were missing from round %d on, and another execution may miss "+
				"other ones", err, a.Round)
		}
	}
	return err
}

// Continue applies the options that may change when a session is resumed, such as its workers, limit and device, and
// stages knob edits. A run that reached its limit but was killed before its log recorded the end is resumed to record
// it. Continue returns an error if the run is complete or an option does not fit.
func (out *Restored) Continue(o Options) error {
	j := out.Job
	j.Workers, j.Threads = max(out.Hosts, 1), goruntime.NumCPU()
	j.Retell(&j.Config, o)
	j.Limit, j.Unattended = o.Limit, o.Unattended
	if err := j.measurable(); err != nil {
		return err
	}
	if at := j.Device; at != "" && !j.Modelless() { // before anything is written
		kinds, err := j.own.Kernels(at)
		if err != nil {
			return err
		}
		if !slices.Contains(kinds, j.Config.Kernels) {
			return &otherKernelsError{at, kinds[0], j.Config.Kernels}
		}
	}
	p := out.Checkpoint.Progress
	if o.Limit != out.Limit {
		out.met = ""
	}
	l := o.Limit
	complete := l.Reached(p) || out.met != ""
	if complete && (out.finished || l != out.Limit) {
		return fmt.Errorf("the run is complete: %d rounds, %.4g epochs; give it more, such as --rounds %d",
			p.Rounds, p.Epochs, 2*p.Rounds)
	}
	check := j.Options
	check.Members = len(out.Checkpoint.Roster.Members)
	if err := check.Check(); err != nil {
		return err
	}
	return out.turn(o.Set, o.By)
}

// turn stages knob edits for the first round after the restored one, and validates the resulting coordinator
// configuration.
func (out *Restored) turn(set []event.Setting, by string) error {
	p := out.Checkpoint.Progress
	j := out.Job
	shape := optim.Shape{Roster: out.Checkpoint.Roster, Layout: j.Net.Layout, Data: j.size()}
	before := append(slices.Clone(out.Checkpoint.Timeline), out.Late...)
	from := timeline.Position{Round: out.Checkpoint.Round, Epochs: p.Epochs, Steps: p.Steps}
	late, err := edits(j.Alg, before, set, by, shape, from)
	if err != nil {
		return err
	}
	out.Late = append(out.Late, late...)
	core := out.Job.core()
	core.Edits, core.Resume, core.Late, core.Asked = nil, &out.Checkpoint, out.Late, out.Asked
	_, err = coordinator.New(core)
	return err
}

// Fork turns the restored state into the start of a new session with the given parent. It drops the parent's edits and
// commands for later rounds: which of them exist by now depends on how far the parent has run.
func (out *Restored) Fork(parent string, o Options) error {
	j := out.Job
	j.Config.Parent, j.Config.ParentAt, j.Config.Limit = parent, out.Checkpoint.Round, o.Limit
	out.branch, out.Epoch, out.Checkpoint.Epoch, out.Late = true, 0, 0, nil
	out.Checkpoint.Timeline = slices.DeleteFunc(slices.Clone(out.Checkpoint.Timeline),
		func(e event.Edit) bool { return e.At >= out.Checkpoint.Round })
	out.Asked, out.met, out.finished = event.Pending{}, "", true // commands and outcome belong to the parent
	if err := out.Continue(o); err != nil {
		return err
	}
	for _, e := range out.Late { // expressions are in the units of the log, like those of its edits
		j.Config.Set = append(j.Config.Set, event.Setting{Knob: e.Knob, Expr: e.Expr})
	}
	j.Config.By = o.By
	return nil
}
