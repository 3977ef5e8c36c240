package alert

import (
	"math"
	"strings"
	"testing"
	"time"

	"brood/models/engine"
	"brood/optim/collective"
	"brood/optim/population"
	"brood/runtime/event"
)

// run feeds a Monitor and collects its notes as texts: + for a warning, - for its end, and the kind.
type run struct {
	w     Monitor
	round uint64
	batch uint64 // samples a round
	done  uint64
	now   int64
	notes []string
	texts []string
}

func newRun() *run {
	r := &run{now: time.Unix(1000, 0).UnixNano()}
	r.take(event.Record{State: &event.State{Phase: event.Training}})
	return r
}

func (r *run) collect(all []Note) {
	for _, n := range all {
		sign := "+"
		if n.Level == event.LevelInfo {
			sign = "-"
		}
		r.notes = append(r.notes, sign+string(n.Kind))
		r.texts = append(r.texts, n.Text)
	}
}

func (r *run) take(x event.Record) {
	x.At = r.now
	r.collect(r.w.Take(x))
}

// commit records a commit of some rounds that each took a time.
func (r *run) commit(rounds uint64, each time.Duration) {
	r.round += rounds
	r.now += int64(rounds) * int64(each)
	r.done += rounds * r.batch
	r.take(event.Record{Commit: &event.Commit{To: r.round, Rounds: rounds, Nanos: int64(rounds) * int64(each),
		Sent:     map[collective.Op]int64{"mean": int64(rounds) * 1e6},
		Progress: event.Progress{Rounds: r.round, Samples: r.done}}})
}

func (r *run) points(series string, values ...float64) {
	p := &event.Points{Round: r.round, Series: series, Values: values}
	for i := range values {
		p.Members = append(p.Members, engine.Member(i))
	}
	if series == event.SeriesCentre {
		p.Members[0] = engine.None
	}
	r.take(event.Record{Points: p})
}

func (r *run) centre(values ...float64) {
	for _, x := range values {
		r.round++
		r.points(event.SeriesCentre, x)
	}
}

func (r *run) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := strings.Join(r.notes, " "); got != strings.Join(want, " ") {
		t.Errorf("notes %q (%s), want %q", got, strings.Join(r.texts, "; "), strings.Join(want, " "))
	}
	r.notes, r.texts = nil, nil
}

// TestRules: each watched kind has a description.
func TestRules(t *testing.T) {
	for _, k := range event.Watched {
		if Rules[k] == "" {
			t.Errorf("%s has no description", k)
		}
	}
	if len(Rules) != len(event.Watched) {
		t.Errorf("%d rules, %d kinds", len(Rules), len(event.Watched))
	}
}

func TestDivergence(t *testing.T) {
	r := newRun()
	for range 5 {
		r.centre(1e-4, 1e-4, 3.1e-4, 9e-5) // small values of a run that began at a greater loss
		r.w.first = 2.3
	}
	r.expect(t)
	r = newRun()
	r.centre(2.3, 1, 0.5, 0.4, 1.3, 0.4, 1.3, 1.3) // two values in a row do not count
	r.expect(t)
	r.centre(1.3)
	if len(r.texts) == 0 || !strings.Contains(r.texts[0], "3.25 times its least (0.4 after round 4)") {
		t.Errorf("notes %q", r.texts)
	}
	r.expect(t, "+diverged")
	r.centre(5, 9, 1.1, 0.7, 1.3, 1.3, 1.3) // values about the bound raise no second warning
	r.expect(t)
	r.centre(0.59)
	r.expect(t, "-diverged")
	r.centre(math.NaN(), math.NaN(), math.NaN(), math.Inf(1)) // the run pauses on these
	r.expect(t)
	r.take(event.Record{Plan: &event.Plan{OldAlg: "a", Algorithm: "b"}}) // another algorithm has another minimum
	r.centre(2, 2, 2, 2)
	r.expect(t)
}

// TestResumeKeepsExtremes: a resumed run has the parameters of its last round, so that rules compare with the values
// before. A rollback and a fork compare with their own.
func TestResumeKeepsExtremes(t *testing.T) {
	diverging := func(cause event.Cause) *run {
		r := newRun()
		r.centre(2.3, 0.4, 1.3, 1.3, 1.3)
		r.expect(t, "+diverged")
		r.take(event.Record{Plan: &event.Plan{From: event.Saved, Cause: cause, At: r.round}})
		r.centre(1.3)
		return r
	}
	r := diverging(event.CauseResume)
	r.expect(t)
	r.centre(0.5)
	r.expect(t, "-diverged")
	r.centre(1.3, 1.3, 1.3)
	r.expect(t, "+diverged")
	r = diverging(event.CauseRollback)
	r.expect(t, "-diverged")
	r.centre(1.3, 1.3, 1.3)
	r.expect(t)
}

func TestCollapse(t *testing.T) {
	r := newRun()
	name := population.SeriesDiversity.Name
	r.points(name, 1, 1.2)
	for range 5 {
		r.points(name, 0.1, 0.04) // less, and far from nothing
	}
	r.expect(t)
	for range 5 {
		r.points(name, 0.01, 0.005) // as training brings them together
	}
	for range 2 {
		r.points(name, 1e-5, 2e-5)
	}
	r.expect(t)
	r.points(name, 1e-5, math.NaN(), 2e-5)
	r.expect(t, "+collapse")
	r.points(name, 5e-4)
	r.expect(t)
	r.points(name, 0.2)
	r.expect(t, "-collapse")
}

// TestSlowRounds: a round is slow against the usual time, for some seconds; a plan resets the usual time.
func TestSlowRounds(t *testing.T) {
	r := newRun()
	for range 20 {
		r.commit(10, 10*time.Millisecond)
	}
	for range 10 {
		r.commit(1, 100*time.Millisecond) // ten times as slow, but only for a second
	}
	r.expect(t)
	for range 45 {
		r.commit(1, 100*time.Millisecond)
	}
	if len(r.texts) == 0 || !strings.Contains(r.texts[0],
		"a round takes 100ms, 10 times as long as before (10ms), and 10 MB/s are exchanged instead of 100 MB/s") {
		t.Errorf("notes %q", r.texts)
	}
	r.expect(t, "+slow")
	for range 100 {
		r.commit(1, 90*time.Millisecond) // a slow round does not change the usual time
	}
	r.expect(t)
	r.commit(10, 12*time.Millisecond)
	r.expect(t, "-slow")
	r.take(event.Record{Plan: &event.Plan{OldAlg: "a", Algorithm: "a"}})
	for range 100 {
		r.commit(1, time.Second)
	}
	r.expect(t)
	for range 100 {
		r.commit(1, 9*time.Second)
	}
	r.expect(t, "+slow")
	r.take(event.Record{Plan: &event.Plan{OldAlg: "a", Algorithm: "a"}}) // no time is usual after a plan
	r.expect(t, "-slow")
}

// TestMoreWorkIsNotSlow: a round with a hundred times as many samples may take a hundred times as long; an edit resets
// the usual time.
func TestMoreWorkIsNotSlow(t *testing.T) {
	r := newRun()
	r.batch = 4
	for range 100 {
		r.commit(10, 10*time.Millisecond)
	}
	r.batch = 400
	for range 100 {
		r.commit(1, time.Second)
	}
	r.expect(t)
	r.batch = 4
	for range 100 {
		r.commit(1, time.Second)
	}
	r.expect(t, "+slow")
	r.take(event.Record{Edit: &event.Edit{}})
	r.expect(t, "-slow")
	for range 100 {
		r.commit(1, 20*time.Second)
	}
	r.commit(1, 100*time.Second)
	r.expect(t)
}

// TestLongRoundsDoNotStall: a run may take several times its slowest round.
func TestLongRoundsDoNotStall(t *testing.T) {
	r := newRun()
	r.commit(1, 90*time.Second) // an alert on the long round is possible here
	r.notes = nil
	for range 3 {
		r.collect(r.w.Tick(r.now + int64(90*time.Second)))
		r.commit(1, 90*time.Second)
	}
	r.expect(t)
}

func TestStall(t *testing.T) {
	r := newRun()
	r.collect(r.w.Tick(r.now + int64(59*time.Second)))
	r.expect(t)
	r.collect(r.w.Tick(r.now + int64(61*time.Second)))
	r.collect(r.w.Tick(r.now + int64(90*time.Second)))
	r.expect(t, "+stall")
	r.now += int64(100 * time.Second)
	r.commit(1, time.Second)
	r.expect(t, "-stall")
	for range 20 {
		r.commit(1, 10*time.Second)
	}
	r.collect(r.w.Tick(r.now + int64(150*time.Second))) // 20 rounds take 200 s
	r.expect(t)
	r.collect(r.w.Tick(r.now + int64(201*time.Second)))
	r.expect(t, "+stall")
	r.take(event.Record{State: &event.State{Phase: event.Paused}})
	r.commit(1, time.Second)
	r.expect(t, "-stall")
	r.collect(r.w.Tick(r.now + int64(time.Hour))) // paused
	r.expect(t)
}

// TestRestartsExplainSlowRounds: the warning of slow rounds names restarted programs instead of a link.
func TestRestartsExplainSlowRounds(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		r := newRun()
		for range 20 {
			r.commit(1, time.Second)
		}
		if restarts {
			r.take(event.Record{Alert: &event.Alert{Level: event.LevelWarning, Kind: event.AlertRestarts,
				Text: "worker 1, round 20: program ./sim was restarted 4 times"}})
		}
		for range 3 {
			r.commit(1, 20*time.Second)
		}
		if len(r.texts) != 1 || strings.Contains(r.texts[0], "link") == restarts ||
			strings.Contains(r.texts[0], "worker 1, round 20: program ./sim was restarted 4 times") != restarts {
			t.Errorf("restarts %t: %q", restarts, r.texts)
		}
	}
}

// TestEqualFitness: equal fitness in three rounds in a row raises one warning, which different fitness in as many
// rounds ends. A missing result is different. Members of a gradient method and a single candidate may have equal
// fitness.
func TestEqualFitness(t *testing.T) {
	r := newRun()
	nan := math.NaN()
	rounds := func(all ...[]float64) {
		for _, values := range all {
			r.round++
			r.take(event.Record{Commit: &event.Commit{To: r.round, Rounds: 1,
				Progress: event.Progress{Rounds: r.round, Evaluations: r.round * 4}}})
			r.points(event.SeriesFitness, values...)
		}
	}
	same, other := []float64{7, 7, 7, 7}, []float64{7, 7, 7, 6}
	rounds(other, same, same, other, same, same)
	r.expect(t)
	rounds(same)
	if want := "fitness is equal for all 4 candidates since round 5: return differences that float32 can hold, " +
		"such as the fitness minus a constant, or increase sigma"; len(r.texts) != 1 || r.texts[0] != want {
		t.Errorf("notes %q, want %q", r.texts, want)
	}
	r.expect(t, "+flat")
	rounds(same, other, other, same, other, same, []float64{7, 7, nan, 7}, []float64{nan, nan, nan, nan})
	r.expect(t)
	rounds(other, other, other)
	r.expect(t, "-flat")
	rounds([]float64{1}, []float64{1}, []float64{1}, []float64{nan, 2}, []float64{nan, 2}, []float64{nan, 2},
		[]float64{nan, nan}, []float64{nan, nan}, []float64{nan, nan})
	r.expect(t)
	rounds(same, same)
	r.take(event.Record{Plan: &event.Plan{OldAlg: "a", Algorithm: "b"}})
	rounds(same)
	r.expect(t)
	r = newRun()
	for range 5 { // members of a gradient method
		r.commit(1, time.Second)
		r.points(event.SeriesFitness, 1, 1, 1)
	}
	r.expect(t)
}

// probe records a probe of four replicas: the loss of the centre, their losses relative to it, and their mean spread.
func (r *run) probe(centre, relative, spread float64) {
	r.round++
	r.points(event.SeriesCentre, centre)
	f := -centre * relative
	r.points(event.SeriesFitness, f, f, f, f)
	r.points(event.SeriesSpread, spread*0.9, spread, spread, spread*1.1)
}

// TestReplicasThatCoincide checks the spread of a run of the preset mnist-parle: it grows in the first rounds and
// falls to 0.4 % of that, at which the cosine of two replicas is 0.99999996.
func TestReplicasThatCoincide(t *testing.T) {
	r := newRun()
	for _, x := range []float64{9.3e-4, 2.1e-3, 2.8e-3, 3.2e-3, 2.1e-3, 1.5e-3, 1e-3, 5.8e-4, 1.9e-4, 6.4e-5, 2.8e-5,
		1.7e-5} {
		r.probe(0.1, 1, x)
	}
	r.expect(t)
	for range 3 {
		r.probe(0.1, 1, 1.2e-5)
	}
	if len(r.texts) != 1 || !strings.Contains(r.texts[0],
		"the replicas coincide: their spread is 1.2e-05, 0.38 % of its greatest") {
		t.Errorf("notes %q", r.texts)
	}
	r.expect(t, "+collapse")
	r.probe(0.1, 1, 5e-5) // between the bounds
	r.expect(t)
	r.probe(0.1, 1, 1e-3)
	r.expect(t, "-collapse")
	for range 3 {
		r.probe(0.1, 1, 0)
	}
	r.expect(t, "+collapse")
	r.take(event.Record{Plan: &event.Plan{OldAlg: "a", Algorithm: "b"}})
	r.expect(t, "-collapse")
	for range 5 { // all replicas are set to their mean, as in LocalSGD
		r.probe(0.1, 1, 0)
	}
	r.expect(t)
}

// TestReplicasThatDoNotCouple checks the values of Parle without coupling: the spread grows in every probe, and the
// centre is worse than the replicas. Replicas that move apart at first, or whose centre is better, raise no alert.
func TestReplicasThatDoNotCouple(t *testing.T) {
	r := newRun()
	for i := range 12 { // growth to the range in which the coupling holds them
		r.probe(0.3, 1/1.4, 0.001*float64(min(i, 8)))
	}
	for i := range 40 { // a convex problem
		r.probe(0.3, 1.5, 0.01+0.001*float64(i))
	}
	r.expect(t)

	r = newRun()
	for i := range 11 {
		r.probe(0.3, 1/1.5, 0.0015*float64(i+1))
	}
	r.expect(t)
	r.probe(0.2, 1/1.66, 0.02)
	if len(r.texts) != 1 || !strings.Contains(r.texts[0],
		"spread has grown in 12 probes to 0.02, and the loss of the centre, 0.2, is 1.7 times that of the median") {
		t.Errorf("notes %q", r.texts)
	}
	r.expect(t, "+apart")
	r.probe(0.2, 1/1.15, 0.022)
	r.expect(t)
	r.probe(0.2, 1, 0.02)
	r.expect(t, "-apart")
}

// TestSpreadOfMembersThatBreed checks that the diversity alone decides for a population that measures it.
func TestSpreadOfMembersThatBreed(t *testing.T) {
	r := newRun()
	for i := range 20 {
		r.points(population.SeriesDiversity.Name, 1, 1.2)
		r.probe(0.3, 0.5, 0.01*float64(i+1))
	}
	for range 5 {
		r.probe(0.3, 0.5, 0)
	}
	r.expect(t)
}
