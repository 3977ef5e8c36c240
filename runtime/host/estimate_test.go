package host

import (
	"context"
	"fmt"
	"path/filepath"
	goruntime "runtime"
	"testing"

	"brood/models/engine"
	"brood/models/longtest"
	"brood/runtime/event"
	"brood/runtime/view"
)

// many returns a job with the given number of candidates on glyphs, whose rounds are short.
func many(t *testing.T, members, workers int, rounds uint64, set ...string) *Job {
	t.Helper()
	o := tiny(rounds)
	o.Algorithm, o.Members, o.Workers, o.Threads = "openai-es", members, workers, 2
	o.Set = []event.Setting{{Knob: "batch", Expr: "8"}}
	for i := 0; i < len(set); i += 2 {
		o.Set = append(o.Set, event.Setting{Knob: set[i], Expr: set[i+1]})
	}
	return prepare(t, o)
}

func dryRunOf(t *testing.T, j *Job) dryRunResult {
	t.Helper()
	r, err := j.dryRun()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestLiveOfManyCandidates compares the estimated live memory of a run with the heap at its end, most of which is the
// points of every candidate.
func TestLiveOfManyCandidates(t *testing.T) {
	heap := func() int64 {
		var m goruntime.MemStats
		goruntime.GC()
		goruntime.GC()
		goruntime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for _, c := range []struct {
		members int
		rounds  uint64
	}{{32, 200}, {1000, 20}, {3000, 100}, {10000, 70}} {
		t.Run(fmt.Sprintf("%d members, %d rounds", c.members, c.rounds), func(t *testing.T) {
			if !longtest.On(longtest.Studies) && uint64(c.members)*c.rounds > 100_000 {
				t.Skip("set BROOD_LONG=studies: evaluates hundreds of thousands of candidates")
			}
			j := many(t, c.members, 2, c.rounds, "rank", "1")
			r := dryRunOf(t, j)
			single, err := j.single(nil)
			if err != nil {
				t.Fatal(err)
			}
			predicted := j.live(r, single).host - j.Samples.Bytes()
			for _, members := range r.reports.series {
				_, encoded := view.EstimateMemory(members, float64(c.rounds))
				predicted -= encodedCopies * encoded
			}
			var held int64
			before := heap()
			train(t, filepath.Join(t.TempDir(), "s"), j, nil, func(_ *Run, rec event.Record) {
				if rec.State != nil && rec.State.Phase == event.Finished {
					held = heap() - before
				}
			})
			const small = 4 << 20 // the log, its compressor, the control socket
			if d := predicted - held; d > held/10+small || -d > held/10+small {
				t.Errorf("predicted %d bytes, on the heap %d", predicted, held)
			}
			t.Logf("predicted %d bytes, on the heap %d", predicted, held)
		})
	}
}

// TestDryRunWorkers: each worker has its own copy of shared blocks and its own engine. If seeds are distributed, each
// also draws the noise of all candidates.
func TestDryRunWorkers(t *testing.T) {
	for _, c := range []struct {
		distribution string
		noise        float64 // of four workers, as a multiple of one worker's
	}{{"seed", 4}, {"chromosome", 1}} {
		one, four := dryRunOf(t, many(t, 40, 1, 9, "distribution", c.distribution)),
			dryRunOf(t, many(t, 40, 4, 9, "distribution", c.distribution))
		if got := four.round.normals / one.round.normals; got < 0.99*c.noise || got > 1.01*c.noise {
			t.Errorf("%s: four workers draw %.2f times the noise of one, want %.0f", c.distribution, got, c.noise)
		}
		if four.round.candidates != one.round.candidates {
			t.Errorf("%s: four workers evaluate %.0f samples, one %.0f", c.distribution, four.round.candidates,
				one.round.candidates)
		}
		if four.blocks != 4*one.blocks {
			t.Errorf("%s: shared blocks of four workers take %d bytes, of one %d", c.distribution, four.blocks, one.blocks)
		}
		if len(four.works) != 4 || four.works[3].Candidates != 10 || four.works[3].Sums != 20 {
			t.Errorf("%s: the workers' engines get the tasks %+v", c.distribution, four.works)
		}
		if want := (map[string]int{"fitness": 40, "centre.loss": 1}); fmt.Sprint(four.reports.series) != fmt.Sprint(want) ||
			four.reports.points != 40 || four.reports.records != 1 {
			t.Errorf("%s: reports %+v, want one record with 40 points in each round, and series %v", c.distribution,
				four.reports, want)
		}
	}
	rows := func(workers int) int64 {
		o := tiny(9)
		o.Workers = workers
		return dryRunOf(t, prepare(t, o)).blocks
	}
	if a, b := rows(1), rows(4); b < a || b > a+a/100 {
		t.Errorf("rows of members take %d bytes on one worker and %d on four", a, b)
	}
}

// TestDryRunNoise: a generation of CR-FM-NES draws the noise of each pair five times: to evaluate it and for four sums.
// Its distribution has one direction. A generation of LM-MA-ES draws the noise of each candidate to evaluate it, and
// that of the better half again for a sum. It computes the length of each candidate and its distances to 30 directions,
// a number that depends on the size of the model; the lengths of these directions; and their distances to one direction
// and to the sum. The component of a candidate along the directions counts as terms, once for a pair.
func TestDryRunNoise(t *testing.T) {
	for algorithm, want := range map[string]struct{ normals, lengths, terms, entry float64 }{
		"cr-fm-nes": {20 * 5, 20*2 + 4, 20*(2+1) + 20 + 2 + 6*3, 3},
		"lm-ma-es":  {40 + 20, 40*(1+30) + 3*30 + 2, 40*(2+30) + 40 + 1 + (3 + 30) + 3*31, 2},
	} {
		o := tiny(9)
		o.Algorithm, o.Members, o.Workers, o.Set = algorithm, 40, 1, nil
		if r := twoRounds(t, prepare(t, o)); r.normals != want.normals || r.lengths != want.lengths ||
			r.terms != want.terms+want.entry/2 {
			t.Errorf("a round of %s draws %g vectors of noise, takes %g lengths and has %g terms, want %+v", algorithm,
				r.normals, r.lengths, r.terms, want)
		}
	}
}

// largestTasks records the largest tasks that price times on it. It computes nothing.
type largestTasks struct {
	memory
	candidates engine.Candidates
	sum        engine.NoiseSum
}

func (a *largestTasks) Do(_ context.Context, tasks ...engine.Task) error {
	for _, t := range tasks {
		switch t := t.(type) {
		case engine.Candidates:
			if len(t.IDs) > len(a.candidates.IDs) {
				a.candidates = t
			}
		case engine.NoiseSum:
			if len(t.IDs) > len(a.sum.IDs) {
				a.sum = t
			}
		}
	}
	return nil
}

// TestPriceTasks: price times tasks with as many candidates as a round has, since they take no time, and with the
// noise, scales and batches of the round.
func TestPriceTasks(t *testing.T) {
	for _, c := range []struct {
		algorithm string
		set       []string
		batches   int
		scaled    bool
		vectors   int
	}{
		{"openai-es", []string{"rank", "1"}, 1, false, 150},
		{"openai-es", []string{"noise", "integer"}, 1, false, 150},
		{"snes", nil, 1, true, 300},
		{"snes", []string{"samples", "member"}, 300, true, 300},
	} {
		o := tiny(5)
		o.Algorithm, o.Members, o.Workers, o.Set = c.algorithm, 300, 1, nil
		for i := 0; i < len(c.set); i += 2 {
			o.Set = append(o.Set, event.Setting{Knob: c.set[i], Expr: c.set[i+1]})
		}
		j := prepare(t, o)
		r, a := dryRunOf(t, j), &largestTasks{}
		if _, err := j.price(t.Context(), r.round, a); err != nil {
			t.Fatal(err)
		}
		got, kind := a.candidates, engine.Noise{}
		if len(c.set) > 0 {
			kind = engine.Noise{Integer: c.set[0] == "noise", Rank: map[bool]int{true: 1}[c.set[0] == "rank"]}
		}
		if len(got.IDs) != 300 || len(got.Batches) != c.batches || (got.Scale.Rows > 0) != c.scaled || got.Noise != kind ||
			got.Antithetic == c.scaled {
			t.Errorf("%s %v: timed on %d candidates with %d batches, scale of %d rows, noise %+v, antithetic %v",
				c.algorithm, c.set, len(got.IDs), len(got.Batches), got.Scale.Rows, got.Noise, got.Antithetic)
		}
		if len(a.sum.IDs) != c.vectors || a.sum.Noise != kind {
			t.Errorf("%s %v: timed on a sum of %d vectors of %+v, want %d", c.algorithm, c.set, len(a.sum.IDs), a.sum.Noise,
				c.vectors)
		}
	}
}

// TestGCPercent: garbage may grow up to the estimated memory, and by leastPercent if nothing of that remains. A run of
// a protocol, whose rounds are short, is not collected continuously.
func TestGCPercent(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		memory, held int64
		want         int
	}{
		{processBytes + 140*mb, 100 * mb, 40},
		{processBytes + 164*mb, 100 * mb, 64},
		{processBytes + 100*mb, 100 * mb, leastPercent},
		{processBytes + 300*mb, 100 * mb, 99},
		{processBytes + 164*mb, 0, 64},
		{0, 0, 99},
	} {
		if got := gcPercent(c.memory, c.held); got != c.want {
			t.Errorf("%d bytes, of which %d are live: %d %%, want %d", c.memory, c.held, got, c.want)
		}
	}
	j := weigh(t, Options{
		Algorithm: "leader",
		Members:   3,
		Workers:   2,
		Threads:   2,
		Limit:     event.Limit{Rounds: 100},
		By:        "test",
	})
	if got := gcPercent(j.Config.Memory, j.kept); !j.Modelless() || got != 99 {
		t.Errorf("a run of a protocol has %d %%, want 99", got)
	}
}

// twoRounds returns the mean work of the first two rounds. A dry run executes as many rounds as its time limit allows.
func twoRounds(t *testing.T, j *Job) operations {
	t.Helper()
	c, err := j.count(excerpt{evaluate: event.NoTest, rounds: 2, limit: j.Limit.Rounds})
	if err != nil {
		t.Fatal(err)
	}
	return operations{}.add(c.operations, 0.5)
}
