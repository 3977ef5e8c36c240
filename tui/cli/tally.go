package cli

import (
	"maps"
	"slices"
	"time"

	"brood/models/engine"
	"brood/optim"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/host"
	"brood/runtime/session"
	"brood/runtime/view"
)

// summary is the last line of --json.
type summary struct {
	Event            string             `json:"event"`
	Algorithm        string             `json:"algorithm"`
	Rounds           uint64             `json:"rounds"`
	Steps            uint64             `json:"steps"`
	Samples          uint64             `json:"samples"`
	Epochs           float64            `json:"epochs"`
	Seconds          float64            `json:"seconds"`
	SamplesPerSecond float64            `json:"samples_per_second"`
	Evaluations      uint64             `json:"evaluations"`
	TrainLoss        *float64           `json:"train_loss"`
	TestError        *float64           `json:"test_error"`
	TestRound        *uint64            `json:"test_round"` // that it is of, which may lie before the last
	BytesSent        map[optim.Op]int64 `json:"bytes_sent"`
	BytesPredicted   map[optim.Op]int64 `json:"bytes_predicted"`
	EvaluationBytes  map[optim.Op]int64 `json:"evaluation_bytes"`
	OverheadBytes    int64              `json:"overhead_bytes"`
	ParamsHash       string             `json:"params_hash"`
	CentreHash       string             `json:"centre_hash"`
	Kernels          string             `json:"kernels"`
	Members          int                `json:"members"`
	Phase            event.Phase        `json:"phase"`
	Reason           string             `json:"reason"`
	MemoryPredicted  int64              `json:"memory_predicted"`
	MemoryMeasured   int64              `json:"memory_measured"`
	SecondsPredicted float64            `json:"seconds_predicted,omitempty"`
	Session          string             `json:"session"`
}

// tally folds the records of this process into a summary.
type tally struct {
	sum             summary
	sent, predicted optim.Ledger
	apart           optim.Ledger
	began           time.Time // of the first plan: before it there is nobody to train
	planned         bool
	times           []committed    // of the rounds that are still part of the run
	before          event.Progress // of the session before this process
	config          event.Config
	losses          map[engine.Member]float64
	centre          *float64  // validation loss of the centre at the last probe
	fitness         []float64 // of the members at the last probe
	diverged        bool      // the last that was heard of it: a block was not finite
	phase           event.Phase
	reason          string              // of the phase
	tests           []*event.Evaluation // of rounds that are still part of the run
	means           map[string]*mean    // of series, over rounds and members
}

// committed is the wall time of a commit.
type committed struct {
	to    uint64
	nanos int64
}

// mean is a running one.
type mean struct{ sum, count float64 }

func newTally() *tally {
	return &tally{sent: optim.Ledger{}, predicted: optim.Ledger{}, apart: optim.Ledger{}, losses: map[engine.Member]float64{}, means: map[string]*mean{}, began: time.Now()}
}

func (t *tally) begin(p prepared) {
	t.began = time.Now()
	t.sum = summary{Event: "summary", Kernels: p.job.Config.Kernels, Session: p.sess.Dir(), MemoryPredicted: p.job.Config.Memory, SecondsPredicted: p.job.Config.Seconds}
	t.config = p.job.Config
	if p.from != nil { // the session's estimate was of all its rounds
		t.before, t.sum.SecondsPredicted = p.from.Checkpoint.Progress, 0
		t.sum.Rounds, t.sum.Steps, t.sum.Samples = t.before.Rounds, t.before.Steps, t.before.Samples
		t.sum.Evaluations, t.sum.Epochs, t.sum.ParamsHash = t.before.Evaluations, t.before.Epochs, p.from.Checkpoint.Hash
		t.tests = tests(p.sess.Dir())
	}
}

// tests are the evaluations that a session's log holds of rounds that are part of the run; what cannot be read is as if
// it were not there.
func tests(dir string) []*event.Evaluation {
	t := &tally{}
	r, err := session.OpenReader(dir)
	if err != nil {
		return nil
	}
	defer r.Close()
	for {
		rec, err := r.Next()
		if err != nil {
			return t.tests
		}
		t.evaluation(rec)
	}
}

// evaluation keeps evaluations, and forgets those of rounds that a plan goes back before.
func (t *tally) evaluation(r event.Record) {
	switch {
	case r.Plan != nil:
		t.tests = slices.DeleteFunc(t.tests, func(e *event.Evaluation) bool { return e.Round > r.Plan.At })
	case r.Evaluation != nil:
		t.tests = append(t.tests, r.Evaluation)
	}
}

// tested is the last evaluation, nil without any.
func (t *tally) tested() *event.Evaluation {
	if len(t.tests) == 0 {
		return nil
	}
	return t.tests[len(t.tests)-1]
}

// bare says that the run trains no model: there is a distance in place of a loss, and no samples.
func (t *tally) bare() bool { return t.config.Data == "" }

func (t *tally) record(r event.Record) {
	t.evaluation(r)
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
		t.config = *r.Config
	case r.Plan != nil:
		t.sum.Algorithm, t.sum.Members = r.Plan.Algorithm, len(r.Plan.New.Members)
		t.times = slices.DeleteFunc(t.times, func(c committed) bool { return c.to > r.Plan.At })
		clear(t.losses)
		if !t.planned {
			t.planned, t.began = true, time.Now()
		}
	case r.Alert != nil && r.Alert.Kind == event.AlertNonFinite:
		t.diverged = true
	case r.Commit != nil:
		c := r.Commit
		t.diverged = false
		t.times = append(t.times, committed{c.To, c.Nanos})
		t.sum.Rounds, t.sum.Steps, t.sum.Samples = c.Progress.Rounds, c.Progress.Steps, c.Progress.Samples
		t.sum.Evaluations, t.sum.Epochs, t.sum.ParamsHash = c.Progress.Evaluations, c.Progress.Epochs, c.Hash
		t.sent.Add(c.Sent)
		t.predicted.Add(c.Predicted)
		t.apart.Add(c.Apart)
		t.sum.OverheadBytes += c.Overhead
	case r.Points != nil && r.Points.Series == view.CentreLoss:
		t.centre = &r.Points.Values[0]
	case r.Points != nil && (r.Points.Series == "loss" || r.Points.Series == view.Fitness):
		if r.Points.Series == view.Fitness {
			t.fitness = r.Points.Values
		}
		sign := 1.0
		if r.Points.Series == "fitness" {
			if len(t.losses) > 0 && t.sum.Steps > 0 {
				return // the training loss says it
			}
			sign = -1
		}
		for i, m := range r.Points.Members {
			t.losses[m] = sign * r.Points.Values[i]
		}
	case r.State != nil:
		t.phase, t.reason = r.State.Phase, r.State.Reason
	}
}

func (t *tally) loss() (float64, bool) {
	var s float64
	for _, m := range slices.Sorted(maps.Keys(t.losses)) {
		s += t.losses[m]
	}
	return s / float64(len(t.losses)), len(t.losses) > 0
}

// word is what the series loss is called.
func (t *tally) word() string {
	if t.bare() {
		return "distance"
	}
	return "loss"
}

// rate is how fast the rounds that this process committed went: waits for workers, pauses, and rounds that were undone are no part of it.
func (t *tally) rate(p event.Progress) string {
	done, unit := since(p.Samples, t.before.Samples), "samples/s"
	if t.bare() {
		done, unit = since(p.Rounds, t.before.Rounds), "rounds/s"
	}
	return grouped(int64(done/max(t.spent(), 1e-9))) + " " + unit
}

// since is what was counted after before; 0 of a run that went back beyond that.
func since(now, before uint64) float64 { return float64(max(now, before) - before) }

// spent is the seconds that the committed rounds took.
func (t *tally) spent() float64 {
	var nanos int64
	for _, c := range t.times {
		nanos += c.nanos
	}
	return float64(nanos) / 1e9
}

func (t *tally) finish(exit coordinator.Exit) summary {
	s := t.sum
	s.Seconds = time.Since(t.began).Seconds()
	s.SamplesPerSecond = since(s.Samples, t.before.Samples) / max(t.spent(), 1e-9)
	s.TestError, s.TestRound, s.CentreHash = nil, nil, ""
	if e := t.tested(); e != nil {
		s.TestError, s.TestRound, s.CentreHash = &e.TestError, &e.Round, e.Centre
	}
	if l, ok := t.loss(); ok && finite(l) != nil {
		s.TrainLoss = &l
	}
	s.BytesSent, s.BytesPredicted, s.EvaluationBytes = t.sent, t.predicted, t.apart
	s.Phase, s.Reason, s.MemoryMeasured = exit.Phase, exit.Reason, host.PeakMemory()
	t.sum = s
	return s
}
