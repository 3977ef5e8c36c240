package ecdf

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brood/runtime/event"
	"brood/runtime/session"
)

func TestTargets(t *testing.T) {
	for k, want := range map[int]float64{0: 100, 5: 10, 10: 1, 50: 1e-8} {
		if got := Target(k); math.Abs(got/want-1) > 1e-12 {
			t.Errorf("target %d is %g, want %g", k, got, want)
		}
		if got := Nearest(want * 1.1); got != k {
			t.Errorf("nearest to %g is target %d, want %d", want*1.1, got, k)
		}
	}
	if Nearest(1e9) != 0 || Nearest(1e-20) != Targets-1 {
		t.Error("a distance beyond the targets has no nearest one")
	}
}

// record writes a session with the records of a run on f 3 in 5 dimensions, and reads it.
func record(t *testing.T, more map[string]string, records ...event.Record) (*Run, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	s, err := session.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	records = append([]event.Record{{Config: &event.Config{Seed: 9, More: more}}}, records...)
	for _, r := range records {
		if err := s.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return Read(dir)
}

func plan(at uint64) event.Record { return event.Record{Plan: &event.Plan{At: at, Algorithm: "snes"}} }

func points(round uint64, fitness ...float64) event.Record {
	return event.Record{Points: &event.Points{Round: round, Series: "fitness", Values: fitness}}
}

func commit(to, rounds, evaluations uint64) event.Record {
	return event.Record{Commit: &event.Commit{To: to, Rounds: rounds, Progress: event.Progress{Evaluations: evaluations}}}
}

var third = map[string]string{"bbob": "3", "dimension": "5", "instance": "2"}

// Targets are met in the round of the best candidate so far. A commit of several rounds divides its evaluations among
// them; rounds that a plan takes back and rounds after the last commit do not count.
func TestRead(t *testing.T) {
	r, err := record(t, third, plan(0), points(1, -2000, math.NaN(), -150), points(2, -99, -300), commit(2, 2, 16),
		points(3, -1e-9), commit(3, 1, 24), plan(2), points(3, -90, -5), points(4, -7), commit(4, 2, 32), points(5, -1e-8))
	if err != nil {
		t.Fatal(err)
	}
	if r.Algorithm != "snes" || r.Function != 3 || r.Dimension != 5 || r.Instance != 2 || r.Seed != 9 ||
		r.Evaluations != 32 {
		t.Errorf("read %+v", r)
	}
	want := make([]uint64, Targets)
	want[0] = 16
	for k := 1; Target(k) >= 5; k++ {
		want[k] = 24
	}
	if !slices.Equal(r.Hits[:], want) {
		t.Errorf("the targets are met after %v, want %v", r.Hits, want)
	}
}

func TestReadOther(t *testing.T) {
	if _, err := record(t, nil, plan(0), commit(1, 1, 8)); !errors.Is(err, ErrOther) {
		t.Errorf("%v", err)
	}
}

// TestReadShortened: targets that removed rounds met are unknown.
func TestReadShortened(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "short")
	s, err := session.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	config := event.Config{More: third, Begins: &event.Beginning{Round: 40, Head: 2}}
	if err := errors.Join(s.Append(event.Record{Config: &config}, plan(40), commit(41, 1, 410)), s.Close()); err != nil {
		t.Fatal(err)
	}
	if run, err := Read(dir); err == nil || !strings.Contains(err.Error(), "the log begins after round 40") {
		t.Errorf("%+v, %v", run, err)
	}
}

func TestShares(t *testing.T) {
	a, b := &Run{Algorithm: "a", Dimension: 2, Evaluations: 100}, &Run{Algorithm: "a", Dimension: 2, Evaluations: 40}
	a.Hits[0], a.Hits[1], b.Hits[0] = 10, 50, 30
	runs := []*Run{a, b}
	for within, met := range map[float64]float64{4: 0, 5: 1, 15: 2, 25: 3, math.Inf(1): 3} {
		if got := Share(runs, within); math.Abs(got-met/(2*Targets)) > 1e-12 {
			t.Errorf("share within %g is %g, want %g of %d", within, got, met, 2*Targets)
		}
	}
	for k, want := range []float64{20, 90, math.Inf(1)} {
		if got, hits := Expected(runs, k); got != want || hits != 2-k {
			t.Errorf("target %d is expected after %g with %d of 2 runs, want %g", k, got, hits, want)
		}
	}
	c := &Run{Algorithm: "c", Dimension: 2}
	for k := range c.Hits {
		c.Hits[k] = 1
	}
	if names, by := Algorithms(append(runs, c)); !slices.Equal(names, []string{"c", "a"}) || len(by["a"]) != 2 {
		t.Errorf("algorithms %v of %v", names, by)
	}
}
