package archive

import (
	"maps"
	"math"
	"slices"
	"strings"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/machine"
	"brood/runtime/session"
	"brood/runtime/view"
)

// Tally folds records into a [Result]: those of a training process, or those of a whole log. Unlike a view, it removes
// the data of rounds that a plan takes back exactly, and stores nothing to draw.
type Tally struct {
	Sum    Result       // so far; what [Tally.Finish] adds is zero before it
	Config event.Config // of the run
	Goal   coordinator.Goal
	Phase  event.Phase
	// Edits are the edits of knobs: those of the newest plan and those since. Moved reports whether the algorithm, the
	// population or its placement changed since the first plan of this process.
	Edits []event.Edit
	Moved bool
	// Candidates reports whether the training loss is minus the mean fitness of the last candidates.
	Candidates bool
	// Diverged reports whether a block was not finite, and no commit followed.
	Diverged bool

	sent, predicted collective.Ledger
	evaluated       collective.Ledger
	planned         bool
	times           []committed    // commits that were not taken back
	from            uint64         // number of rounds before the first plan
	before          event.Progress // see [Tally.Before]
	live            bool           // records after before arrive during training
	losses          map[engine.Member]float64
	centre          *float64            // validation loss of the centre in the last probe
	fitness         []float64           // of the members in the last probe
	spread          []float64           // of the members in the last probe
	trainError      *float64            // of the centre, if the run ended by its limit
	tests           []*event.Evaluation // of rounds that were not taken back
	means           map[string]*mean    // by series, over rounds and members
}

// committed is the wall time of a commit.
type committed struct {
	to     uint64
	nanos  int64
	waited int64 // part of nanos in which a worker waited for frames
}

// mean is a running mean.
type mean struct{ sum, count float64 }

// NewTally returns a tally without records.
func NewTally() *Tally {
	return &Tally{sent: collective.Ledger{}, predicted: collective.Ledger{}, evaluated: collective.Ledger{},
		losses: map[engine.Member]float64{}, means: map[string]*mean{}}
}

// ReadTally returns the tally of the whole log of the session in dir. It fails if the log cannot be read.
func ReadTally(dir string) (*Tally, error) {
	t := NewTally()
	for rec, err := range session.Records(dir) {
		if err != nil {
			return nil, err
		}
		t.Record(rec)
	}
	t.Finish(coordinator.Exit{})
	return t, nil
}

// Resumed is the state that a run continues from: a checkpoint, and the limit that counts from its progress.
type Resumed struct {
	Checkpoint event.Checkpoint
	Limit      event.Limit
}

// Begin is called before the first record by a process that trains, with the run's configuration and the directory of
// its session; from is nil for a new run.
func (t *Tally) Begin(c event.Config, dir string, from *Resumed) {
	t.live = true
	t.Sum = Result{Event: "summary", Kernels: c.Kernels, Session: dir, MemoryPredicted: c.Memory}
	t.Config, t.Goal = c, coordinator.Goal{Limit: c.Limit}
	if from != nil {
		t.before = from.Checkpoint.Progress
		t.Sum.Rounds, t.Sum.Steps, t.Sum.Samples = t.before.Rounds, t.before.Steps, t.before.Samples
		t.Sum.Evaluations, t.Sum.Epochs, t.Sum.ParamsHash = t.before.Evaluations, t.before.Epochs, from.Checkpoint.Hash
		t.Goal = coordinator.Goal{Limit: from.Limit, Progress: t.before}
		t.tests = tests(dir)
	}
}

// Join is called before the first record by a process that follows a live run from the position of a view. Where the
// run has a limit of seconds, the time left is unknown: the view does not have the start of the training process.
func (t *Tally) Join(v *view.View) {
	if v.Config != nil {
		t.Record(event.Record{Config: v.Config})
	}
	t.before, t.live = v.Progress, v.Limit.Seconds == 0
	t.Goal.Limit, t.Goal.Progress = v.Limit, v.Progress
}

// tests returns the evaluations in the log of a session, without those of rounds that were taken back. It returns those
// before the first record that cannot be read.
func tests(dir string) []*event.Evaluation {
	t := &Tally{}
	for rec, err := range session.Records(dir) {
		if err == nil {
			t.evaluation(rec)
		}
	}
	return t.tests
}

// evaluation adds an evaluation, and removes those of rounds that a plan takes back.
func (t *Tally) evaluation(r event.Record) {
	switch {
	case r.Plan != nil:
		t.tests = slices.DeleteFunc(t.tests, func(e *event.Evaluation) bool { return e.Round > r.Plan.At })
	case r.Evaluation != nil:
		t.tests = append(t.tests, r.Evaluation)
	}
}

// restarted stores the last alert on restarts of each worker. The text begins with the worker and a comma.
func (t *Tally) restarted(text string) {
	worker, _, _ := strings.Cut(text, ",")
	for i, was := range t.Sum.Restarts {
		if strings.HasPrefix(was, worker+",") {
			t.Sum.Restarts[i] = text
			return
		}
	}
	t.Sum.Restarts = append(t.Sum.Restarts, text)
}

// Tested returns the last evaluation; nil if there is none.
func (t *Tally) Tested() *event.Evaluation {
	if len(t.tests) == 0 {
		return nil
	}
	return t.tests[len(t.tests)-1]
}

// Bare reports whether the run trains no model: it then has a distance instead of a loss, and no samples.
func (t *Tally) Bare() bool { return t.Config.Data == "" }

// Record folds the next record, which must not change afterwards.
func (t *Tally) Record(r event.Record) {
	t.evaluation(r)
	t.Goal.Take(r)
	if p := r.Points; p != nil {
		m := t.means[p.Series]
		if m == nil {
			m = &mean{}
			t.means[p.Series] = m
		}
		for _, x := range p.Values {
			m.sum, m.count = m.sum+x, m.count+1
		}
	}
	switch {
	case r.Config != nil:
		t.Config = *r.Config.WithoutView()
	case r.Plan != nil:
		t.Sum.Algorithm, t.Sum.Members = r.Plan.Algorithm, len(r.Plan.New.Members)
		t.times = slices.DeleteFunc(t.times, func(c committed) bool { return c.to > r.Plan.At })
		clear(t.losses)
		t.Edits, t.Moved = slices.Clone(r.Plan.Timeline), t.Moved || t.planned && r.Plan.Cause != event.CauseKnob
		if !t.planned {
			t.planned, t.from = true, r.Plan.At
		}
	case r.Edit != nil:
		t.Edits = append(t.Edits, *r.Edit)
	case r.Alert != nil && r.Alert.Kind == event.AlertNonFinite:
		t.Diverged = true
	case r.Alert != nil && r.Alert.Kind == event.AlertRestarts:
		t.restarted(r.Alert.Text)
	case r.Commit != nil:
		c := r.Commit
		t.Diverged = false
		if t.from > 0 && t.before.Rounds == 0 && len(t.times) == 0 {
			t.before = part(c.Progress, float64(t.from)/float64(max(t.from, c.To)))
		}
		t.times = append(t.times, committed{c.To, c.Nanos, c.Waited})
		t.Sum.Rounds, t.Sum.Steps, t.Sum.Samples = c.Progress.Rounds, c.Progress.Steps, c.Progress.Samples
		t.Sum.Evaluations, t.Sum.Epochs, t.Sum.ParamsHash = c.Progress.Evaluations, c.Progress.Epochs, c.Hash
		t.sent.Add(c.Sent)
		t.predicted.Add(c.Predicted)
		t.evaluated.Add(c.Evaluation)
		t.Sum.OverheadBytes += c.Overhead
		t.Sum.Audits += len(c.Audited)
	case r.Points != nil && r.Points.Series == view.CentreLoss:
		t.centre = &r.Points.Values[0]
	case r.Points != nil && r.Points.Series == view.Spread:
		t.spread = r.Points.Values
	case r.Points != nil && r.Points.Series == event.SeriesTrainError:
		t.trainError = &r.Points.Values[0]
	case r.Points != nil && (r.Points.Series == "loss" || r.Points.Series == view.Fitness):
		if r.Points.Series == view.Fitness {
			t.fitness = r.Points.Values
		}
		sign := 1.0
		if r.Points.Series == "fitness" {
			if len(t.losses) > 0 && t.Sum.Steps > 0 {
				return // the training loss is known already
			}
			sign = -1
		}
		t.Candidates = sign < 0
		for i, m := range r.Points.Members {
			t.losses[m] = sign * r.Points.Values[i]
		}
	case r.Checkpoint != nil && !t.planned && len(t.times) == 0: // the initial state of the run
		t.before = r.Checkpoint.Progress
	case r.State != nil:
		t.Phase = r.State.Phase
	}
}

// Before returns the progress at the start, which the seconds and bytes of the tally do not include: that of the
// session before this process, and for a fork that of its parent. If the log does not contain it, it is estimated from
// the first commit, as if all earlier rounds had done as much work as each of that commit.
func (t *Tally) Before() event.Progress { return t.before }

// part returns a progress multiplied by share.
func part(p event.Progress, share float64) event.Progress {
	of := func(n uint64) uint64 { return uint64(math.Round(float64(n) * share)) }
	return event.Progress{Rounds: of(p.Rounds), Steps: of(p.Steps), Samples: of(p.Samples),
		Evaluations: of(p.Evaluations), Epochs: p.Epochs * share}
}

// Loss returns the mean of the last training losses of the members, or of minus their fitness if there are none. ok is
// false before the first. It omits missing results of an objective.
func (t *Tally) Loss() (float64, bool) {
	s, n := 0.0, 0
	for _, m := range slices.Sorted(maps.Keys(t.losses)) {
		if l := t.losses[m]; l == l || !t.Config.Maximises() {
			s, n = s+l, n+1
		}
	}
	return s / float64(n), n > 0
}

// Shown returns Loss in the form for screens, with its name: for an objective the mean fitness of the last candidates.
func (t *Tally) Shown() (word string, x float64, ok bool) {
	x, ok = t.Loss()
	switch {
	case t.Bare():
		return "distance", x, ok
	case t.Config.Maximises():
		return t.Config.Fitness(), -x, ok
	}
	return "train loss", x, ok
}

// Rate returns the samples per second of [Tally.Spent] up to p, or rounds per second without samples.
func (t *Tally) Rate(p event.Progress) (x float64, unit string) {
	done, unit := since(p.Samples, t.before.Samples), "samples/s"
	if t.Bare() {
		done, unit = since(p.Rounds, t.before.Rounds), "rounds/s"
	}
	return done / max(t.Spent(), 1e-9), unit
}

// since returns now - before; 0 if the run went back beyond before.
func since(now, before uint64) float64 { return float64(max(now, before) - before) }

// Left returns the seconds until the first limit of a run that is followed live (see [Tally.Begin] and [Tally.Join]),
// at the mean speed since then; ok is false without a limit, for the first seconds, and once a limit is reached.
func (t *Tally) Left(at event.Progress) (seconds float64, ok bool) {
	const known = 2 // seconds
	limit, spent := t.Goal.Limit, t.Spent()
	if !t.live || spent < known || limit.Reached(at) {
		return 0, false
	}
	seconds, ok = limit.Left(at, spent, since(at.Rounds, t.before.Rounds)/spent, (at.Epochs-t.before.Epochs)/spent)
	return seconds, ok && seconds > 0
}

// Spent returns the seconds of the committed rounds: waits for workers, pauses, and rounds that were taken back do not
// count.
func (t *Tally) Spent() float64 {
	var nanos int64
	for _, c := range t.times {
		nanos += c.nanos
	}
	return float64(nanos) / 1e9
}

// waited returns the share of that time in which a worker waited for frames of others.
func (t *Tally) waited() float64 {
	var nanos int64
	for _, c := range t.times {
		nanos += c.waited
	}
	return float64(nanos) / 1e9 / max(t.Spent(), 1e-9)
}

// Finish completes and returns the result. exit is how the run ended.
func (t *Tally) Finish(exit coordinator.Exit) Result {
	s := t.Sum
	s.Seconds = t.Spent()
	s.SamplesPerSecond = since(s.Samples, t.before.Samples) / max(s.Seconds, 1e-9)
	s.Waited = t.waited()
	s.TestRound, s.CentreHash = nil, ""
	scores := s.scores()
	for _, x := range scores {
		*x = nil
	}
	if e := t.Tested(); e != nil {
		s.TestRound, s.CentreHash = &e.Round, e.Centre
		for _, score := range append(t.Config.Scores(), t.Config.ValidationScores()...) {
			if x := score.Of(e); !math.IsNaN(x) && !math.IsInf(x, 0) {
				*scores[score.Key] = &x
			}
		}
	}
	if l, ok := t.Loss(); ok && !math.IsNaN(l) && !math.IsInf(l, 0) {
		if s.TrainLoss = &l; t.Config.Maximises() {
			best := 0 - l
			s.TrainLoss, s.MeanFitness = nil, &best
		}
	}
	s.BytesSent, s.BytesPredicted, s.EvaluationBytes = t.sent, t.predicted, t.evaluated
	s.Phase, s.Reason, s.MemoryMeasured = exit.Phase, exit.Reason, machine.PeakMemory()
	t.Sum = s
	return s
}

// scores returns the fields of scores by their keys.
func (s *Result) scores() map[string]**float64 {
	return map[string]**float64{event.KeyTestError: &s.TestError, event.KeyTestRMSE: &s.TestRMSE,
		event.KeyTestR2:      &s.TestR2,
		event.KeyTestBits:    &s.TestBits,
		event.KeyTestHamming: &s.TestHamming,
		event.KeyTestFitness: &s.TestFitness, event.KeyTestLoss: &s.TestLoss,
		event.KeyValidationError: &s.HeldError, event.KeyValidationRMSE: &s.HeldRMSE, event.KeyValidationBits: &s.HeldBits,
		event.KeyValidationHamming: &s.HeldHamming, event.KeyValidationLoss: &s.HeldLoss}
}

// Scored returns a score by its key; nil if the run does not have it.
func (s *Result) Scored(key string) *float64 {
	if x := s.scores()[key]; x != nil {
		return *x
	}
	return nil
}
