package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	goruntime "runtime"
	"slices"

	"brood/models/usererr"
	"brood/optim"
	"brood/optim/catalog"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/message"
	"brood/runtime/session"
	"brood/runtime/timeline"
	"brood/runtime/verify"
	"brood/runtime/worker"
	"brood/transport/local"
)

// history is what one pass over a log finds, without executing anything.
type history struct {
	config      event.Config
	goal        coordinator.Goal
	epoch       uint32
	last        *event.Commit
	files       []uint64           // rounds whose checkpoints have files: the log may name thousands
	cps         []event.Checkpoint // of those, at or before the round asked for, not undone by later plans, oldest first
	edits       []event.Edit       // of the newest plan and after it
	hosts       int                // workers of the newest plan
	sane        coordinator.Sane
	asked       event.Pending // commands accepted and not obeyed
	count       uint64        // records read
	alg         string        // of the newest plan before the round asked for
	beyond      uint32        // epoch of the newest plan that went on from that round; 0: none did
	torn        *session.Recovered
	phase       event.Phase   // newest
	told        []event.Alert // of an objective: results that were missing, or that vary
	checkpoints int           // records of them
	skipped     []error       // why the newest checkpoints are not taken, see nearest
	// settled is the record of the last plan that went back behind the round asked for
	settled uint64
}

// read walks the records; at limits the checkpoint and commits considered, 0 takes the newest.
func read(dir string, at uint64) (h history, err error) {
	r, err := session.OpenReader(dir)
	if err != nil {
		return h, err
	}
	defer r.Close()
	h.files, _ = session.Checkpoints(dir) // without, it is executed from its start
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
		return h, fmt.Errorf("%s holds no records: the run ended before it began", dir)
	}
	return h, nil
}

func (h *history) take(rec event.Record, at uint64) {
	h.asked.Take(rec)
	h.sane.Take(rec)
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
		// What was saved behind such a plan is the round's state no more: another algorithm's, or another population's.
		round, behind := rec.Checkpoint.Round, h.beyond > 0 && rec.Checkpoint.Epoch == h.beyond
		if (at == 0 || round <= at) && !behind && slices.Contains(h.files, round) {
			h.cps = append(h.cps, *rec.Checkpoint)
		}
	case rec.Alert != nil && (rec.Alert.Kind == event.AlertMissing || rec.Alert.Kind == event.AlertVaries):
		if !slices.ContainsFunc(h.told, func(a event.Alert) bool { return a.Kind == rec.Alert.Kind }) {
			h.told = append(h.told, *rec.Alert)
		}
	case rec.State != nil:
		h.phase = rec.State.Phase
	}
}

// saved is the checkpoint to begin with, nil for the seed.
func (h *history) saved() *event.Checkpoint {
	if n := len(h.cps); n > 0 {
		return &h.cps[n-1]
	}
	return nil
}

// nearest drops the newest checkpoints as long as they are lost or damaged: the rounds after the one that is left are
// executed again.
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

// Checkpointed is the round that is asked for, and where that is 0 the one of the session's newest checkpoint that is
// whole, or without one of its last commit, so that a run that goes on is not followed.
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

// Askable refuses a session whose parameters can be asked about no samples.
func Askable(dir string) error {
	r, err := session.OpenReader(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	first, err := r.Next()
	switch c := first.Config; {
	case err != nil || c == nil: // whoever reads on says it
		return nil
	case c.Objective != "":
		return fmt.Errorf("%s maximises %s, and no data set can score its parameters: what they are worth is its fitness", filepath.Base(dir), c.Objective)
	case c.Data == "":
		return fmt.Errorf("%s trained no model: there is nothing to ask about samples", filepath.Base(dir))
	}
	return nil
}

// intact compares the files of a checkpoint with their digests in the log.
func intact(dir string, cp *event.Checkpoint) error {
	_, err := (&Files{Dir: dir}).Load(*cp, func(string) bool { return false })
	return err
}

// Restored is a recorded session, ready to go on.
type Restored struct {
	Job        *Job
	Checkpoint event.Checkpoint // of exactly the round asked for
	Executed   uint64           // rounds that were executed again to get there
	Skipped    []error          // why newer checkpoints were not taken: they are lost or damaged
	Epoch      uint32
	Late       []event.Edit  // acknowledged, in force in no round so far
	Asked      event.Pending // accepted, without a round so far
	Limit      event.Limit
	Hosts      int // workers that hosted it last

	met      string // how it met the target of its limit
	finished bool   // the log says so
	branch   bool   // it begins a log of its own
}

// Settable says whether knobs can be set on the session in dir after round at (0: the last commit), before anything is
// executed.
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
		here, h.alg = timeline.Position{Round: cp.Round, Epochs: cp.Progress.Epochs, Steps: cp.Progress.Steps}, cmp.Or(h.alg, cp.Algorithm)
	}
	if h.alg == "" { // there is nothing to go on from: Restore says so
		return nil
	}
	alg, err := catalog.Lookup(h.alg)
	if err != nil {
		return err
	}
	_, err = edits(alg, nil, set, "", optim.Shape{}, here)
	return err
}

// edits are settings as edits from a position on, after those before, or what is wrong with the first that cannot be
// one. shape is that of the run, empty where it is not known yet.
func edits(alg *optim.Algorithm, before []event.Edit, set []event.Setting, by string, shape optim.Shape, from timeline.Position) (out []event.Edit, err error) {
	for _, s := range set {
		if _, ok := alg.Knob(s.Knob); !ok {
			return nil, timeline.UnknownKnob(alg, s.Knob)
		}
		out = append(out, event.Edit{Algorithm: alg.Name, Knob: s.Knob, Expr: s.Expr, By: by})
	}
	return out, timeline.AcceptAll(alg, before, out, shape, from)
}

// Restore brings back the state of the session in dir after round at (0: the last commit). It is saved through store,
// or into dir itself when store is nil. Rounds since the nearest checkpoint are executed again and compared with the
// recorded commits.
func Restore(ctx context.Context, dir string, at uint64, store worker.Store, threads int, progress func(event.Commit)) (*Restored, error) {
	return (*Own)(nil).Restore(ctx, dir, at, store, threads, progress)
}

// Restore is [Restore] for a session of this graph.
func (o *Own) Restore(ctx context.Context, dir string, at uint64, store worker.Store, threads int, progress func(event.Commit)) (*Restored, error) {
	j, h, err := o.past(dir, at)
	if err != nil {
		return nil, err
	}
	out := &Restored{Job: j, Epoch: h.epoch, Limit: h.goal.Limit, Hosts: h.hosts, finished: h.phase == event.Finished}
	out.Skipped = h.skipped
	toEnd := at == 0 || at == h.end()
	if cp := h.saved(); store == nil && cp != nil && toEnd && cp.Epoch == h.epoch && cp.Round == h.end() && (h.last == nil || cp.Hash == h.last.Hash) {
		out.Checkpoint = *cp
	} else if err := out.execute(ctx, dir, at, h, store, threads, progress); err != nil {
		return nil, err
	}
	if toEnd {
		out.Asked, out.met = h.asked, h.goal.Met
		for _, e := range append(h.untold(out.Checkpoint), h.edits...) {
			if e.At >= out.Checkpoint.Round && !slices.ContainsFunc(out.Checkpoint.Timeline, e.Same) {
				out.Late = append(out.Late, e)
			}
		}
	}
	j.Alg, err = j.lookup(out.Checkpoint.Algorithm)
	j.Members = len(out.Checkpoint.Roster.Members)
	return out, err
}

// end is the newest round that there is: of the last commit; before the first, of the checkpoint that a branch begins
// with; 0 of a run that has done none.
func (h *history) end() uint64 {
	switch cp := h.saved(); {
	case h.last != nil:
		return h.last.To
	case cp != nil:
		return cp.Round
	}
	return 0
}

// untold are the edits that a branch was to begin with, and of which no edit of its log tells: it was killed before.
func (h *history) untold(cp event.Checkpoint) (out []event.Edit) {
	if h.last != nil {
		return nil
	}
	for _, s := range h.config.Set {
		e := event.Edit{At: cp.Round, Algorithm: cp.Algorithm, Knob: s.Knob, Expr: timeline.Absolute(s.Expr, cp.Round), By: h.config.By}
		if !slices.ContainsFunc(h.edits, func(x event.Edit) bool {
			return x.At >= e.At && x.Algorithm == e.Algorithm && x.Knob == e.Knob && x.Expr == e.Expr
		}) {
			out = append(out, e)
		}
	}
	return out
}

// past is the job of the session in dir, and what its log says up to round at, which must be in it.
func (o *Own) past(dir string, at uint64) (j *Job, h history, err error) {
	if h, err = read(dir, at); err != nil {
		return nil, h, err
	}
	if h.last == nil && h.epoch == 0 && h.saved() == nil {
		return nil, h, fmt.Errorf("%s holds no committed round: nothing to go on from; start it anew", dir)
	}
	if at > h.end() {
		return nil, h, fmt.Errorf("round %d lies beyond the last committed round %d of %s", at, h.end(), dir)
	}
	h.nearest(dir)
	j, err = o.FromSession(dir, h.config)
	return j, h, err
}

// walk executes the log from the nearest checkpoint on one worker, until after round at. One that is removed meanwhile,
// as those of a run that goes on are, is no longer the nearest.
func walk(ctx context.Context, j *Job, dir string, at uint64, h history, store worker.Store, threads int, progress func(event.Commit)) (*worker.Worker, uint64, error) {
	for {
		w, rounds, err := walkFrom(ctx, j, dir, at, h, store, threads, progress)
		if err == nil || h.saved() == nil || ctx.Err() != nil || intact(dir, h.saved()) == nil {
			return w, rounds, err
		}
		h.nearest(dir)
	}
}

func walkFrom(ctx context.Context, j *Job, dir string, at uint64, h history, store worker.Store, threads int, progress func(event.Commit)) (*worker.Worker, uint64, error) {
	w, err := j.Worker(0, (&local.Hub{}).Link(0), nil, &Files{Dir: dir, Other: store}, cmp.Or(threads, goruntime.NumCPU()), false)
	if err != nil {
		return nil, 0, err
	}
	res, err := rewalk(ctx, verify.Config{Worker: w, From: h.saved(), Settled: h.settled, Progress: progress}, dir, at)
	if err != nil {
		w.Free()
		return nil, 0, fmt.Errorf("execute %s again: %w", dir, older(h.config.Kernels, err))
	}
	return w, res.Rounds, nil
}

func rewalk(ctx context.Context, c verify.Config, dir string, at uint64) (res verify.Result, err error) {
	r, err := session.OpenReader(dir)
	if err != nil {
		return res, err
	}
	defer r.Close()
	return verify.Run(ctx, c, r, at)
}

// execute saves where a walk ends.
func (out *Restored) execute(ctx context.Context, dir string, at uint64, h history, store worker.Store, threads int, progress func(event.Commit)) error {
	w, rounds, err := walk(ctx, out.Job, dir, at, h, store, threads, progress)
	if err != nil {
		return err
	}
	defer w.Free()
	out.Executed = rounds
	cp, err := w.State(ctx)
	if err != nil {
		return fmt.Errorf("%s up to round %d: %w", dir, at, err)
	}
	saved, ok := w.Handle(ctx, message.Save{Epoch: cp.Epoch, At: cp.Round}).(message.Saved)
	if !ok || saved.Err != "" {
		return fmt.Errorf("save round %d: %s", cp.Round, saved.Err)
	}
	cp.Files = saved.Files
	out.Checkpoint = cp
	return nil
}

// FromSession rebuilds the job of the session in dir: same model, data and kernels, or a sentence that says what
// differs.
func FromSession(dir string, c event.Config) (*Job, error) { return (*Own)(nil).FromSession(dir, c) }

// FromSession is [FromSession] for a session of this graph.
func (o *Own) FromSession(dir string, c event.Config) (*Job, error) {
	j, err := o.job(dir, c)
	return j, usererr.Recorded(err)
}

// Verified is what a log holds, executed again.
type Verified struct {
	verify.Result
	Open bool               // the log does not end with the end of the run: it goes on, was killed, or its log was cut
	Told []string           // what the session says of missing results of its objective, and of such that vary
	Torn *session.Recovered // what lies behind the last whole frame; nil for nothing
	// checkpoints whose files have the digests of the log, and those that a run has removed or that were never written
	Checkpoints, Removed int
}

// Verify executes the whole log of dir and compares every commit.
func Verify(ctx context.Context, dir string, threads int, progress func(event.Commit)) (Verified, error) {
	return (*Own)(nil).Verify(ctx, dir, threads, progress)
}

// Verify is [Verify] for a session of this graph.
func (o *Own) Verify(ctx context.Context, dir string, threads int, progress func(event.Commit)) (out Verified, err error) {
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
	w, err := j.Worker(0, (&local.Hub{}).Link(0), nil, &Files{Dir: dir}, cmp.Or(threads, goruntime.NumCPU()), true)
	if err != nil {
		return out, err
	}
	defer w.Free()
	r, err := session.OpenReader(dir)
	if err != nil {
		return out, err
	}
	defer r.Close()
	out.Result, err = verify.Run(ctx, verify.Config{Worker: w, Measured: true, Limit: h.config.Limit, Tests: h.config.Test, Progress: progress}, r, 0)
	if err == nil {
		err = out.checkpoints(dir, h)
	}
	for _, a := range h.told {
		out.Told = append(out.Told, fmt.Sprintf("round %d: %s", a.Round, a.Text))
	}
	return out, h.moody(older(h.config.Kernels, err))
}

// checkpoints compares the files of all checkpoints with the log. One that is damaged is an error; a run removes older
// ones.
func (out *Verified) checkpoints(dir string, h history) error {
	kept, err := session.Checkpoints(dir)
	if err != nil {
		return err
	}
	out.Removed = h.checkpoints
	newer := map[string]bool{} // a session that went on may have written the same file again
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
			return fmt.Errorf("%w; all %d rounds hold, and what needs this checkpoint takes an older one", err, out.Rounds)
		}
	}
	return nil
}

// moody adds to a mismatch what the session itself says of its objective.
func (h *history) moody(err error) error {
	var m *verify.MismatchError
	if !errors.As(err, &m) {
		return err
	}
	for _, a := range h.told {
		switch a.Kind {
		case event.AlertVaries:
			return fmt.Errorf("%w; the objective is none of parameters and seed alone, as the session says of round %d, so that it cannot verify exactly", err, a.Round)
		case event.AlertMissing:
			err = fmt.Errorf("%w; results of the objective were missing first at round %d, and another execution may not miss the same ones", err, a.Round)
		}
	}
	return err
}

// Continue applies what may change when a session goes on: who hosts it, and until when. Zero fields keep what was. One
// that was at the end of its limit, and killed before its log said so, goes on to that end.
func (out *Restored) Continue(o Options) error {
	j := out.Job
	j.Workers, j.Threads = max(out.Hosts, 1), goruntime.NumCPU()
	if j.Retell(&j.Config, o); j.Config.Told != nil && j.Config.Objective == "" {
		j.Config.Version = logVersionTold
	}
	j.Limit, j.Unattended = o.Limit, o.Unattended
	if err := j.measurable(); err != nil {
		return err
	}
	if at := j.Device; at != "" && !j.bare() { // before anything is written
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
		return fmt.Errorf("the run is complete: %d rounds, %.4g epochs; give it more, such as --rounds %d", p.Rounds, p.Epochs, 2*p.Rounds)
	}
	check := j.Options
	check.Members = len(out.Checkpoint.Roster.Members)
	if err := check.Check(); err != nil {
		return err
	}
	return out.turn(o.Set, o.By)
}

// turn stages knobs for the first round after the restored one.
func (out *Restored) turn(set []event.Setting, by string) error {
	p := out.Checkpoint.Progress
	j := out.Job
	shape := optim.Shape{Roster: out.Checkpoint.Roster, Layout: j.Net.Layout, Data: j.size()}
	late, err := edits(j.Alg, append(slices.Clone(out.Checkpoint.Timeline), out.Late...), set, by, shape, timeline.Position{Round: out.Checkpoint.Round, Epochs: p.Epochs, Steps: p.Steps})
	if err != nil {
		return err
	}
	out.Late = append(out.Late, late...)
	core := out.Job.core()
	core.Edits, core.Resume, core.Late, core.Asked = nil, &out.Checkpoint, out.Late, out.Asked
	_, err = coordinator.New(core)
	return err
}

// Fork copies the restored state into a session of its own, whose parent is named. What the parent was told of the
// rounds after it is none of the branch's: which of it was known by now depends on how far the parent is.
func (out *Restored) Fork(parent string, o Options) error {
	j := out.Job
	j.Config.Parent, j.Config.ParentAt, j.Config.Limit = parent, out.Checkpoint.Round, o.Limit
	out.branch, out.Epoch, out.Checkpoint.Epoch, out.Late = true, 0, 0, nil
	out.Checkpoint.Timeline = slices.DeleteFunc(slices.Clone(out.Checkpoint.Timeline),
		func(e event.Edit) bool { return e.At >= out.Checkpoint.Round })
	out.Asked, out.met, out.finished = event.Pending{}, "", true // what was asked of the parent, and what became of it
	if err := out.Continue(o); err != nil {
		return err
	}
	for _, e := range out.Late { // in the units of a log, as its edits will be
		j.Config.Set = append(j.Config.Set, event.Setting{Knob: e.Knob, Expr: e.Expr})
	}
	j.Config.By = o.By
	return nil
}
