package archive

import (
	"math"
	"testing"
	"time"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/runtime/coordinator"
	"brood/runtime/event"
	"brood/runtime/view"
)

func commit(to, samples uint64, took time.Duration) event.Record {
	return event.Record{Commit: &event.Commit{To: to, Progress: event.Progress{Rounds: to, Samples: samples},
		Nanos: int64(took)}}
}

// TestSpeedOfRounds: the speed is that of the rounds, without waits for workers or pauses.
func TestSpeedOfRounds(t *testing.T) {
	m := NewTally()
	m.Config.Data = "glyphs"
	m.Record(event.Record{Plan: &event.Plan{}})
	m.Record(commit(1, 300, time.Second))
	m.Record(commit(2, 600, 2*time.Second))
	if got, unit := m.Rate(event.Progress{Rounds: 2, Samples: 600}); got != 200 || unit != "samples/s" {
		t.Errorf("%g %s, want 200 samples/s", got, unit)
	}
	m.Record(commit(3, 900, 3*time.Second))
	m.Record(event.Record{Plan: &event.Plan{At: 2}}) // the next round is repeated, faster
	m.Record(commit(3, 900, time.Second))
	if got, unit := m.Rate(event.Progress{Rounds: 3, Samples: 900}); got != 225 || unit != "samples/s" {
		t.Errorf("%g %s after a rollback, want 225 samples/s", got, unit)
	}
	if sum := m.Finish(coordinator.Exit{}); sum.SamplesPerSecond != 225 || sum.Seconds != 4 {
		t.Errorf("%v samples/s in %v s, want 225 in 4 s", sum.SamplesPerSecond, sum.Seconds)
	}
}

// TestSecondsAddUp checks that the seconds of a fork, of a process that resumes it, and of its whole log are on one
// clock.
func TestSecondsAddUp(t *testing.T) {
	plan := func(at uint64) event.Record {
		return event.Record{Plan: &event.Plan{At: at, Algorithm: "a", New: collective.Place(collective.IDs(1), []int{0}),
			From: event.Saved}}
	}
	config := event.Config{Data: "glyphs", ParentAt: 20}
	records := []event.Record{{Config: &config}, plan(20), commit(21, 2100, 770*time.Millisecond), plan(21),
		commit(22, 2200, 30*time.Millisecond)}
	seconds := func(from uint64, records ...event.Record) float64 {
		m := NewTally()
		m.Begin(config, t.TempDir(), &Resumed{Checkpoint: event.Checkpoint{Progress: event.Progress{Rounds: from}}})
		for _, r := range records {
			m.Record(r)
		}
		return m.Finish(coordinator.Exit{}).Seconds
	}
	forked, resumed := seconds(20, records[1:3]...), seconds(21, records[3:]...)
	whole, err := fold("fork", func(yield func(event.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var listed Summary
	listed.Follow(whole)
	if all := whole.Figures["seconds"]; forked != 0.77 || resumed != 0.03 || all != 0.8 || listed.Seconds != all {
		t.Errorf("%v s and %v s, of the whole log %v, in lists %v", forked, resumed, all, listed.Seconds)
	}
}

// TestWaited: Waited is the share of the rounds' time spent waiting for frames, without rounds that a plan took back.
func TestWaited(t *testing.T) {
	m := NewTally()
	m.Record(event.Record{Plan: &event.Plan{}})
	for _, c := range []struct{ to, seconds, waited int64 }{{1, 1, 0}, {2, 2, 1}, {3, 9, 9}, {3, 1, 1}} {
		if m.Sum.Rounds == 3 {
			m.Record(event.Record{Plan: &event.Plan{At: 2}})
		}
		r := commit(uint64(c.to), 1, time.Duration(c.seconds)*time.Second)
		r.Commit.Waited = c.waited * int64(time.Second)
		m.Record(r)
	}
	if got := m.Finish(coordinator.Exit{}).Waited; got != .5 {
		t.Errorf("a worker waited %g of the time, want half", got)
	}
}

// TestSpeedOfAFork: samples count from the start of the parent, seconds and bytes from the fork. Ratios of these use
// the fork's samples only, whether or not its log has the initial checkpoint.
func TestSpeedOfAFork(t *testing.T) {
	for name, head := range map[string][]event.Record{
		"with a checkpoint": {{Checkpoint: &event.Checkpoint{Round: 20, Progress: event.Progress{Rounds: 20, Samples: 6000}}}},
		"without":           nil,
	} {
		m := NewTally()
		m.Config.Data = "glyphs"
		for _, r := range append(head, event.Record{Plan: &event.Plan{At: 20, From: event.Saved}},
			commit(22, 6600, 3*time.Second),
			event.Record{Plan: &event.Plan{At: 22}}, event.Record{Checkpoint: &event.Checkpoint{Round: 22}},
			commit(24, 7200, 3*time.Second)) {
			m.Record(r)
		}
		m.sent.Add(map[collective.Op]int64{"sum": 2400})
		m.Finish(coordinator.Exit{})
		if x, _ := m.Metric("samples_per_s"); x != 200 {
			t.Errorf("%s: %g samples/s, want 200", name, x)
		}
		if x, _ := m.Metric("bytes_per_sample"); x != 2 {
			t.Errorf("%s: %g bytes per sample, want 2", name, x)
		}
		if got := m.Before(); got.Rounds != 20 || got.Samples != 6000 {
			t.Errorf("%s: started from %+v", name, got)
		}
	}
}

// TestNodeSamples: node_samples is the number of samples per member when the target was met. A run without a target
// does not have it; a run that missed its target has infinity.
func TestNodeSamples(t *testing.T) {
	tally := func(target string, fitness float64) *Tally {
		m := NewTally()
		for _, r := range []event.Record{
			{Config: &event.Config{Limit: event.Limit{Rounds: 8, Target: target}}},
			{Plan: &event.Plan{Algorithm: "pesgd", New: collective.Place(collective.IDs(4), []int{0})}},
			{Commit: &event.Commit{To: 3, Progress: event.Progress{Rounds: 3, Samples: 1200, Epochs: 2}}},
			{Points: &event.Points{Round: 3, Series: event.SeriesJudged, Members: collective.IDs(4), Values: []float64{-0.5, fitness, -0.7, -0.9}}},
		} {
			m.Record(r)
		}
		m.Finish(coordinator.Exit{Phase: event.Finished})
		return m
	}
	run := func(target string, fitness float64) (float64, bool) {
		return tally(target, fitness).Metric("node_samples")
	}
	epochs := func(target string) (float64, bool) { return tally(target, -0.1).Metric("epochs") }
	if x, ok := run("fitness=-0.2", -0.1); !ok || x != 300 {
		t.Errorf("four nodes that met their target with 1200 samples have %g each, %v, want 300", x, ok)
	}
	if x, ok := run("fitness=-0.05", -0.1); !ok || !math.IsInf(x, 1) {
		t.Errorf("a run that missed its target met it after %g samples, %v, want +Inf", x, ok)
	}
	if x, ok := epochs("fitness=-0.05"); !ok || !math.IsInf(x, 1) {
		t.Errorf("a run that missed its target met it after %g epochs, %v, want +Inf", x, ok)
	}
	if x, ok := epochs(""); !ok || x != 2 {
		t.Errorf("a run without a target has %g epochs, %v, want 2", x, ok)
	}
	if x, ok := run("", -0.1); ok {
		t.Errorf("a run without a target met it after %g samples", x)
	}
}

// tallied returns the tally of a run with simple numbers.
func tallied() *Tally {
	t := NewTally()
	for _, r := range []event.Record{
		{Plan: &event.Plan{Algorithm: "parle", New: collective.Place(collective.IDs(2), []int{0})}},
		{Commit: &event.Commit{Progress: event.Progress{Rounds: 5, Steps: 10, Samples: 200},
			Sent: map[collective.Op]int64{"couple": 300, "other": 100}}},
		{Points: &event.Points{Series: "loss", Members: []engine.Member{0, 1}, Values: []float64{0.1, 0.3}}},
		{Points: &event.Points{Series: "fitness", Members: []engine.Member{0, 1}, Values: []float64{-0.5, -0.7}}},
		{Points: &event.Points{Series: "centre.loss", Members: []engine.Member{engine.None}, Values: []float64{0.4}}},
		{Points: &event.Points{Series: "memory", Members: []engine.Member{engine.None}, Values: []float64{1}}},
		{Points: &event.Points{Series: "memory", Members: []engine.Member{engine.None}, Values: []float64{0.25}}},
		{Evaluation: &event.Evaluation{TestError: 2.5, TestLoss: 0.3}},
		{Points: &event.Points{Round: 20, Series: event.SeriesSpread, Members: []engine.Member{0, 1}, Values: []float64{9, 9}}},
		{Points: &event.Points{Round: 21, Series: event.SeriesSpread, Members: []engine.Member{0, 1}, Values: []float64{0.2, 0.4}}},
		{Points: &event.Points{Round: 21, Series: event.SeriesTrainError, Members: []engine.Member{engine.None}, Values: []float64{4.5}}},
	} {
		t.Record(r)
	}
	t.Finish(coordinator.Exit{Phase: event.Finished})
	return t
}

func TestMetrics(t *testing.T) {
	m := tallied()
	for name, want := range map[string]float64{"test_error": 2.5, "test_loss": 0.3, "train_loss": 0.2, "memory": 0.625,
		"bytes": 400, "bytes_per_sample": 2, "samples": 200, "centre_loss": 0.4, "centre_advance": 0.2,
		"spread": 0.3, "train_error": 4.5} {
		if x, ok := m.Metric(name); !ok || math.Abs(x-want) > 1e-12 {
			t.Errorf("%s = %g, %v, want %g", name, x, ok, want)
		}
	}
	if _, ok := m.Metric("bytes_per_eval"); ok {
		t.Error("bytes per evaluation without evaluations")
	}
	if _, ok := m.Metric("diversity"); ok {
		t.Error("a diversity without a report")
	}
	for _, name := range []string{"test_error", "test_loss", "train_loss", "bytes", "bytes_per_sample", "epochs",
		"seconds", "memory", "centre_loss", "centre_advance", "spread", "train_error"} {
		if x, ok := NewTally().Metric(name); ok {
			t.Errorf("%s without records is %g", name, x)
		}
	}
}

// TestLeft: the time left follows from the rounds that this process committed; a resumed run counts from its start.
func TestLeft(t *testing.T) {
	limit := event.Limit{Rounds: 40}
	for _, c := range []struct {
		what  string
		limit event.Limit
		from  *Resumed
		at    uint64
		took  time.Duration // time of the rounds so far
		want  float64       // seconds; 0 means unknown
	}{
		{"half of the rounds", limit, nil, 20, 10 * time.Second, 10},
		{"the first second", limit, nil, 20, time.Second, 0},
		{"the last round", limit, nil, 40, 10 * time.Second, 0},
		{"a limit of time that comes first", event.Limit{Rounds: 4000, Seconds: 13}, nil, 20, 10 * time.Second, 3},
		{"a limit of time alone", event.Limit{Seconds: 13}, nil, 20, 10 * time.Second, 3},
		{"a limit of time that is over", event.Limit{Seconds: 13}, nil, 20, 14 * time.Second, 0},
		{"no limit", event.Limit{}, nil, 20, 10 * time.Second, 0},
		{"resumed in the middle", limit, &Resumed{Limit: limit, Checkpoint: event.Checkpoint{Progress: event.Progress{Rounds: 20}}}, 30, 5 * time.Second, 5},
	} {
		m := NewTally()
		m.Begin(event.Config{Limit: c.limit}, "", c.from)
		m.Record(commit(c.at, c.at, c.took))
		got, ok := m.Left(event.Progress{Rounds: c.at})
		if ok != (c.want > 0) || math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s: %g s are left (%v), want %g", c.what, got, ok, c.want)
		}
	}
	joined := NewTally()
	joined.Join(&view.View{Config: &event.Config{}, Limit: limit, Progress: event.Progress{Rounds: 20}})
	joined.Record(commit(30, 30, 5*time.Second))
	if got, ok := joined.Left(event.Progress{Rounds: 30}); !ok || got != 5 {
		t.Errorf("joined in the middle: %g s are left (%v), want 5", got, ok)
	}
	replayed := NewTally()
	replayed.Record(event.Record{Config: &event.Config{Limit: limit}})
	replayed.Record(commit(20, 20, 10*time.Second))
	if got, ok := replayed.Left(event.Progress{Rounds: 20}); ok {
		t.Errorf("a recorded run has %g s left", got)
	}
}

// TestRestartsOfPrograms: the result has the last alert about restarts of each worker.
func TestRestartsOfPrograms(t *testing.T) {
	m := NewTally()
	for _, text := range []string{"worker 1, round 3: 4 times", "worker 10, round 3: 5 times",
		"worker 1, round 9: 8 times"} {
		m.Record(event.Record{Alert: &event.Alert{Level: event.LevelWarning, Kind: event.AlertRestarts, Text: text}})
	}
	if got := m.Finish(coordinator.Exit{}).Restarts; len(got) != 2 || got[0] != "worker 1, round 9: 8 times" ||
		got[1] != "worker 10, round 3: 5 times" {
		t.Errorf("%q", got)
	}
}
