package host

import (
	"cmp"
	"fmt"
	"slices"

	"brood/runtime/checkpoint"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/session"
)

// history is the result of one pass over a log, which executes no rounds. Its field here is the state after the
// requested round as far as the log has it, without files.
type history struct {
	config          event.Config
	goal            coordinator.Goal
	epoch           uint32
	last            *event.Commit
	files           []uint64           // rounds whose checkpoint files still exist; the log may name thousands more
	cps             []event.Checkpoint // of files, up to the requested round, not undone by later plans, oldest first
	edits           []event.Edit       // edits of the newest plan and after it
	first           *event.Plan        // nil before the first plan
	plan            *event.Plan        // newest
	hosts           int                // workers of the newest plan
	lastGood        coordinator.LastGood
	asked           event.Pending // commands accepted but not yet applied
	count           uint64        // number of the next record
	here            event.Checkpoint
	end             uint64        // newest committed round that was not taken back, or with which a fork begins
	next            *event.Commit // the first one beyond the requested round, if that is within its rounds
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
	h.count = r.At()
	h.files, _ = session.Checkpoints(dir) // on an error the session is recomputed from its first round
	first := true
	for rec, err := range r.Rest() {
		if err != nil {
			return h, err
		}
		if first && rec.Config == nil {
			return h, fmt.Errorf("%s does not begin with a configuration: it is not a session of brood", dir)
		}
		first = false
		h.take(rec, at)
		h.count++
	}
	h.torn = r.Torn()
	h.here.Round, h.here.Progress = cmp.Or(at, h.end), h.progress(at)
	if first {
		return h, fmt.Errorf("%s contains no records: the run ended before its first record was written", dir)
	}
	return h, nil
}

// progress returns the progress after round at: between two commits, in proportion to the rounds.
func (h *history) progress(at uint64) event.Progress {
	p := h.here.Progress
	if h.next != nil {
		to := h.next.Progress
		part := float64(at-p.Rounds) / float64(to.Rounds-p.Rounds)
		p.Rounds, p.Epochs = at, p.Epochs+part*(to.Epochs-p.Epochs)
		p.Steps += uint64(part * float64(to.Steps-p.Steps))
	}
	return p
}

func (h *history) take(rec event.Record, at uint64) {
	h.asked.Take(rec)
	h.lastGood.Take(rec)
	h.goal.Take(rec)
	switch {
	case rec.Config != nil:
		h.config = *rec.Config.WithoutView()
	case rec.Plan != nil:
		h.epoch = max(h.epoch, rec.Plan.Epoch)
		if at == 0 || rec.Plan.At < at {
			h.here.Algorithm, h.here.Roster = rec.Plan.Algorithm, rec.Plan.New
			h.here.Timeline = slices.Clone(rec.Plan.Timeline)
			if h.next = nil; h.here.Progress.Rounds > rec.Plan.At { // a rollback, to a round whose progress is not known
				h.here.Progress = event.Progress{Rounds: rec.Plan.At}
			}
		} else if rec.Plan.At == at {
			h.beyond = rec.Plan.Epoch
		}
		h.first, h.end = cmp.Or(h.first, rec.Plan), rec.Plan.At
		h.plan, h.edits, h.hosts = rec.Plan, slices.Clone(rec.Plan.Timeline), len(rec.Plan.New.Workers())
		h.cps = slices.DeleteFunc(h.cps, func(cp event.Checkpoint) bool { return cp.Round > rec.Plan.At })
		if at > rec.Plan.At && h.last != nil && h.last.To > rec.Plan.At {
			h.settled = h.count
		}
	case rec.Edit != nil:
		h.edits = append(h.edits, *rec.Edit)
		if at == 0 || rec.Edit.At < at {
			h.here.Timeline = append(h.here.Timeline, *rec.Edit)
		}
	case rec.Commit != nil:
		h.last, h.end = rec.Commit, rec.Commit.To
		for _, edits := range [][]event.Edit{h.edits, h.here.Timeline} {
			for i := range edits {
				if e := &edits[i]; e.At == h.last.To {
					e.Epochs, e.Steps = h.last.Progress.Epochs, h.last.Progress.Steps
				}
			}
		}
		if at == 0 || h.last.To <= at {
			h.here.Progress = h.last.Progress
		} else if h.next == nil && h.here.Progress.Rounds < at {
			h.next = h.last
		}
	case rec.Checkpoint != nil:
		h.checkpoints++
		if h.first == nil { // the log begins with it
			h.here, h.end = *rec.Checkpoint, rec.Checkpoint.Round
			h.here.Files, h.here.Signatures = nil, nil
		}
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

// holds reports whether the nearest checkpoint is of exactly round at (0: the last commit).
func (h *history) holds(at uint64) bool {
	cp := h.saved()
	return cp != nil && (at > 0 && cp.Round == at || h.last != nil && cp.Round == h.last.To && cp.Hash == h.last.Hash)
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

// intact returns an error if a file of the checkpoint is missing or does not match its digest in the log.
func intact(dir string, cp *event.Checkpoint) error {
	_, err := (&checkpoint.Files{Dir: dir}).Load(*cp, func(string) bool { return false })
	return err
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
		return h.end, nil
	}
	return h.saved().Round, nil
}
