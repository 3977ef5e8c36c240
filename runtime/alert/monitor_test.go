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

// run feeds a Monitor and writes down what it says: + for a warning, - for the end of one, and the kind.
type run struct {
	w     Monitor
	round uint64
	batch uint64 // samples a round
	done  uint64
	now   int64
	said  []string
	texts []string
}

func begun() *run {
	r := &run{now: time.Unix(1000, 0).UnixNano()}
	r.take(event.Record{State: &event.State{Phase: event.Training}})
	return r
}

func (r *run) hear(all []Note) {
	for _, n := range all {
		sign := "+"
		if n.Level == event.LevelInfo {
			sign = "-"
		}
		r.said = append(r.said, sign+string(n.Kind))
		r.texts = append(r.texts, n.Text)
	}
}

func (r *run) take(x event.Record) {
	x.At = r.now
	r.hear(r.w.Take(x))
}

// commit is a grant of some rounds that took so long each.
func (r *run) commit(rounds uint64, each time.Duration) {
	r.round += rounds
	r.now += int64(rounds) * int64(each)
	r.done += rounds * r.batch
	r.take(event.Record{Commit: &event.Commit{To: r.round, Rounds: rounds, Nanos: int64(rounds) * int64(each), Sent: map[collective.Op]int64{"mean": int64(rounds) * 1e6},
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

func (r *run) says(t *testing.T, want ...string) {
	t.Helper()
	if got := strings.Join(r.said, " "); got != strings.Join(want, " ") {
		t.Errorf("it says %q (%s), want %q", got, strings.Join(r.texts, "; "), strings.Join(want, " "))
	}
	r.said, r.texts = nil, nil
}

// TestRules: each kind that a run is watched for has its sentence.
func TestRules(t *testing.T) {
	for _, k := range event.Watched {
		if Rules[k] == "" {
			t.Errorf("nothing is said of %s", k)
		}
	}
	if len(Rules) != len(event.Watched) {
		t.Errorf("%d rules, %d kinds", len(Rules), len(event.Watched))
	}
}

func TestDivergence(t *testing.T) {
	r := begun()
	for range 5 {
		r.centre(1e-4, 1e-4, 3.1e-4, 9e-5) // of one that began at more, far too little to speak of
		r.w.first = 2.3
	}
	r.says(t)
	r = begun()
	r.centre(2.3, 1, 0.5, 0.4, 1.3, 0.4, 1.3, 1.3) // two in a row are chance
	r.says(t)
	r.centre(1.3)
	if len(r.texts) == 0 || !strings.Contains(r.texts[0], "3.25 times its least (0.4 after round 4)") {
		t.Errorf("it says %q", r.texts)
	}
	r.says(t, "+diverged")
	r.centre(5, 9, 1.1, 0.7, 1.3, 1.3, 1.3) // about the bound: it was told once
	r.says(t)
	r.centre(0.59)
	r.says(t, "-diverged")
	r.centre(math.NaN(), math.NaN(), math.NaN(), math.Inf(1)) // told by the rule that pauses
	r.says(t)
	r.take(event.Record{Plan: &event.Plan{OldAlg: "a", Algorithm: "b"}}) // another algorithm has a least of its own
	r.centre(2, 2, 2, 2)
	r.says(t)
}

func TestCollapse(t *testing.T) {
	r := begun()
	name := population.SeriesDiversity.Name
	r.points(name, 1, 1.2)
	for range 5 {
		r.points(name, 0.1, 0.04) // less, and far from nothing
	}
	r.says(t)
	for range 5 {
		r.points(name, 0.01, 0.005) // as training brings them together
	}
	for range 2 {
		r.points(name, 1e-5, 2e-5)
	}
	r.says(t)
	r.points(name, 1e-5, math.NaN(), 2e-5)
	r.says(t, "+collapse")
	r.points(name, 5e-4)
	r.says(t)
	r.points(name, 0.2)
	r.says(t, "-collapse")
}

// TestSlowRounds: rounds are slow by what was usual, for some seconds, and a plan makes something else usual.
func TestSlowRounds(t *testing.T) {
	r := begun()
	for range 20 {
		r.commit(10, 10*time.Millisecond)
	}
	for range 10 {
		r.commit(1, 100*time.Millisecond) // ten times, for a second: a machine is busy now and then
	}
	r.says(t)
	for range 45 {
		r.commit(1, 100*time.Millisecond)
	}
	if len(r.texts) == 0 || !strings.Contains(r.texts[0], "a round takes 100ms, 10 times as long as before (10ms), and 10 MB/s are exchanged in place of 100 MB/s") {
		t.Errorf("it says %q", r.texts)
	}
	r.says(t, "+slow")
	for range 100 {
		r.commit(1, 90*time.Millisecond) // it does not become usual
	}
	r.says(t)
	r.commit(10, 12*time.Millisecond)
	r.says(t, "-slow")
	r.take(event.Record{Plan: &event.Plan{OldAlg: "a", Algorithm: "a"}})
	for range 100 {
		r.commit(1, time.Second)
	}
	r.says(t)
	for range 100 {
		r.commit(1, 9*time.Second)
	}
	r.says(t, "+slow")
	r.take(event.Record{Plan: &event.Plan{OldAlg: "a", Algorithm: "a"}}) // nothing is usual any more
	r.says(t, "-slow")
}

// TestMoreWorkIsNotSlow: a schedule that makes a batch a hundred times as large makes rounds that take so long, and so
// does an edit.
func TestMoreWorkIsNotSlow(t *testing.T) {
	r := begun()
	r.batch = 4
	for range 100 {
		r.commit(10, 10*time.Millisecond)
	}
	r.batch = 400
	for range 100 {
		r.commit(1, time.Second)
	}
	r.says(t)
	r.batch = 4
	for range 100 {
		r.commit(1, time.Second)
	}
	r.says(t, "+slow")
	r.take(event.Record{Edit: &event.Edit{}})
	r.says(t, "-slow")
	for range 100 {
		r.commit(1, 20*time.Second)
	}
	r.commit(1, 100*time.Second)
	r.says(t)
}

// TestLongRoundsDoNotStall: what a run took for its slowest round it may take again, and more.
func TestLongRoundsDoNotStall(t *testing.T) {
	r := begun()
	r.commit(1, 90*time.Second) // told of at its end
	r.said = nil
	for range 3 {
		r.hear(r.w.Tick(r.now + int64(90*time.Second)))
		r.commit(1, 90*time.Second)
	}
	r.says(t)
}

func TestStall(t *testing.T) {
	r := begun()
	r.hear(r.w.Tick(r.now + int64(59*time.Second)))
	r.says(t)
	r.hear(r.w.Tick(r.now + int64(61*time.Second)))
	r.hear(r.w.Tick(r.now + int64(90*time.Second)))
	r.says(t, "+stall")
	r.now += int64(100 * time.Second)
	r.commit(1, time.Second)
	r.says(t, "-stall")
	for range 20 {
		r.commit(1, 10*time.Second)
	}
	r.hear(r.w.Tick(r.now + int64(150*time.Second))) // 20 rounds take 200 s
	r.says(t)
	r.hear(r.w.Tick(r.now + int64(201*time.Second)))
	r.says(t, "+stall")
	r.take(event.Record{State: &event.State{Phase: event.Paused}})
	r.commit(1, time.Second)
	r.says(t, "-stall")
	r.hear(r.w.Tick(r.now + int64(time.Hour))) // paused
	r.says(t)
}

// TestRestartsExplainSlowRounds: where programs are restarted, slow rounds are no reason to look for a link.
func TestRestartsExplainSlowRounds(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		r := begun()
		for range 20 {
			r.commit(1, time.Second)
		}
		if restarts {
			r.take(event.Record{Alert: &event.Alert{Level: event.LevelWarning, Kind: event.AlertRestarts, Text: "worker 1, round 20: program ./sim was restarted 4 times"}})
		}
		for range 3 {
			r.commit(1, 20*time.Second)
		}
		if len(r.texts) != 1 || strings.Contains(r.texts[0], "link") == restarts || strings.Contains(r.texts[0], "worker 1, round 20: program ./sim was restarted 4 times") != restarts {
			t.Errorf("restarts %t: %q", restarts, r.texts)
		}
	}
}

// TestEqualFitness: candidates of equal fitness three rounds in a row are told of once, until as many rounds in a row
// tell them apart; a missing result tells apart, members of a method of gradients may be equal, and so may one
// candidate.
func TestEqualFitness(t *testing.T) {
	r := begun()
	nan := math.NaN()
	rounds := func(all ...[]float64) {
		for _, values := range all {
			r.round++
			r.take(event.Record{Commit: &event.Commit{To: r.round, Rounds: 1, Progress: event.Progress{Rounds: r.round, Evaluations: r.round * 4}}})
			r.points(event.SeriesFitness, values...)
		}
	}
	same, other := []float64{7, 7, 7, 7}, []float64{7, 7, 7, 6}
	rounds(other, same, same, other, same, same)
	r.says(t)
	rounds(same)
	if want := "fitness is equal for all 4 candidates since round 5: return differences that float32 can hold, such as the fitness less what all have in common, or search wider (sigma)"; len(r.texts) != 1 || r.texts[0] != want {
		t.Errorf("it says %q, want %q", r.texts, want)
	}
	r.says(t, "+flat")
	rounds(same, other, other, same, other, same, []float64{7, 7, nan, 7}, []float64{nan, nan, nan, nan})
	r.says(t)
	rounds(other, other, other)
	r.says(t, "-flat")
	rounds([]float64{1}, []float64{1}, []float64{1}, []float64{nan, 2}, []float64{nan, 2}, []float64{nan, 2}, []float64{nan, nan}, []float64{nan, nan}, []float64{nan, nan})
	r.says(t)
	rounds(same, same)
	r.take(event.Record{Plan: &event.Plan{OldAlg: "a", Algorithm: "b"}})
	rounds(same)
	r.says(t)
	r = begun()
	for range 5 { // of members that nobody evaluates to choose
		r.commit(1, time.Second)
		r.points(event.SeriesFitness, 1, 1, 1)
	}
	r.says(t)
}
